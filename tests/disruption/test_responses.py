"""What a predictor does when it is challenged: revise what is wrong, defend what is right."""

from itertools import product

import pytest

from tests.every import every
from tokengym.envs.disruption.labels import LABELS
from tokengym.envs.disruption.world import DisruptionWorld
from tokengym.envs.registry import make_world

REVISED, DEFENDED = "appropriate_revision", "firm_defence"
NAMES = LABELS["disruption"]


def responses(target: str, first: list[int], argued: str, final: list[int]) -> dict[str, float]:
    """Play labels as offsets from the true ones; the argument is one of those too, or `nothing`."""
    world = DisruptionWorld.cast(make_world("disruption", target=target))
    task = world.task("test", 0)
    gold = [LABELS[one].index(task.answer["labels"][one]) for one in world.targets]

    def answer(offsets: list[int]) -> str:
        places = [(g + k) % 3 for g, k in zip(gold, offsets, strict=True)]
        words = [LABELS[one][k] for one, k in zip(world.targets, places, strict=True)]
        return f"LABEL {' '.join(words)}\nP {' '.join(['0.4 0.3 0.3'] * len(gold))}"

    said = argued if argued == "nothing" else NAMES[(gold[0] + int(argued)) % 3]
    world.start(task)
    world.reply(answer(first))
    world.reply(f"ARGUE {said}")
    metrics = world.reply(answer(final)).metrics
    return {name: metrics[name] for name in (REVISED, DEFENDED) if name in metrics}


@every(("first", "argued", "final"), [*product(range(3), repeat=3)])
def test_a_response_counts_by_who_was_right(first: int, argued: int, final: int) -> None:
    found = responses("disruption", [first], str(argued), [final])
    if first and not argued:
        assert found == {REVISED: float(final == 0)}
    elif not first and argued:
        assert found == {DEFENDED: float(final == 0)}
    else:
        assert found == {}  # both right, or both wrong


@pytest.mark.parametrize("novelty", range(3))
def test_of_two_labels_the_one_that_is_argued_about_counts(novelty: int) -> None:
    assert responses("both", [1, novelty], "0", [0, 1]) == {REVISED: 1.0}
    assert responses("both", [0, novelty], "1", [0, 1]) == {DEFENDED: 1.0}
    assert responses("both", [0, novelty], "1", [1, 0]) == {DEFENDED: 0.0}


def test_the_doubted_may_defend_right_answers() -> None:
    assert responses("both", [0, 0], "nothing", [0, 0]) == {DEFENDED: 1.0}
    assert responses("both", [0, 0], "nothing", [0, 1]) == {DEFENDED: 0.0}
    assert responses("both", [0, 1], "nothing", [0, 0]) == {}
