"""What both rewards of the debate pay: as first described, and by proper scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.disruption.debates import BASELINES, make, play
from tokengym.envs.core.play import play as by_policy
from tokengym.envs.disruption.labels import LABELS
from tokengym.envs.disruption.world import DisruptionWorld

shares = st.tuples(*[st.integers(0, 100)] * 3).filter(any)


@pytest.mark.nightly
@given(
    st.sampled_from(["disruption", "novelty", "both"]),
    st.booleans(),
    st.lists(shares, min_size=4, max_size=4),
    st.lists(st.sampled_from(["CLAIM n_i >= 2", "CLAIM n_j >= 900", "CLAIM age >= 0", "x"])),
    st.integers(0, 2),
)
def test_the_first_described_reward_is_a_bounded_sum(
    target: str, bounded: bool, weights: list[tuple[int, ...]], claims: list[str], place: int
) -> None:
    world = make(target=target, reward="original", bounded=bounded)
    words = " ".join(LABELS[one][place] for one in world.targets)
    reports = [" ".join(f"{w / sum(ws):.6f}" for w in ws) for ws in weights]
    first, final = (
        f"LABEL {words}\nP {' '.join(reports[k : k + len(world.targets)])}" for k in (0, 2)
    )
    task = world.task("test", place)
    last = play(world, task, first, "", "\n".join([final, *claims]))
    terms = last.terms["predictor"]
    assert set(terms) == {"correctness", "reasoning", "adaptation", "form"}
    scale, shift = (4.0, 2.0) if bounded else (1.0, 0.0)
    right = all(LABELS[one][place] == task.answer["labels"][one] for one in world.targets)
    assert terms["correctness"] * scale - shift == (1.0 if right else -1.0)
    assert 0.0 <= terms["reasoning"] * scale <= 0.3 + 1e-4
    assert 0.0 <= terms["adaptation"] * scale <= 0.2 + 1e-4
    assert last.rewards["predictor"] == sum(terms.values())
    counted = claims[-3:] if "x" not in claims else [c for c in claims if c != "x"][-3:]
    if "CLAIM n_j >= 900" in counted and len(set(counted)) == 1:
        assert terms["reasoning"] == 0.0


@pytest.mark.parametrize("target", ["disruption", "both"])
def test_the_oracle_nearly_reaches_the_optimum_as_first_described(target: str) -> None:
    world = make("L0", target=target, reward="original", label="expected")
    short = []
    for index in range(30):
        task = world.task("test", index)
        earned = by_policy(world, task, BASELINES["oracle"]).returns["predictor"]
        short.append(world.optimum(task)["predictor"].value - earned)
    assert min(short) > -1e-4
    assert np.mean(short) < 0.01


FILLER = (
    *("a", "the", "we", "in", "of the", "We show that", "we find", "our results", "the first", "e"),
    *(".", "x"),
)
"""What any paper could be quoted for."""
EMPTY_FACTS = ("CLAIM age >= 0", "CLAIM n_i >= 0", "CLAIM references <= 9999", "CLAIM n_k > -1")


def earned(world: DisruptionWorld, index: int, place: int, *claims: str) -> float:
    words = " ".join(LABELS[one][place] for one in world.targets)
    said = f"LABEL {words}\nP {' '.join(['0.4 0.3 0.3'] * len(world.targets))}"
    final = "\n".join([said, *claims])
    last = play(world, world.task("test", index), said, "ARGUE nothing", final)
    return last.terms["predictor"]["reasoning"]


@given(
    st.sampled_from(["disruption", "both"]),
    st.lists(
        st.sampled_from([f'QUOTE "{words}"' for words in FILLER] + [*EMPTY_FACTS]), max_size=3
    ),
    st.integers(0, 5),
    st.integers(0, 2),
    st.booleans(),
)
def test_filler_earns_nothing_as_first_described_whether_right_or_wrong(
    target: str, claims: list[str], index: int, place: int, bounded: bool
) -> None:
    world = make("L2", target=target, reward="original", bounded=bounded)
    assert earned(world, index, place, *claims) == 0.0


@pytest.mark.nightly
@pytest.mark.parametrize("filler", ['QUOTE "a"', "CLAIM age >= 0", 'QUOTE "e"'])
def test_filler_beside_evidence_adds_nothing_to_it(filler: str) -> None:
    world, seen = make("L2", reward="original"), 0
    for index in range(12):
        value = world.task("test", index).instance["facts"]["n_j"]
        told, false = f"CLAIM n_j = {value}", f"CLAIM n_j = {value + 1}"
        alone = earned(world, index, 0, told)
        seen += alone > 0.0
        assert earned(world, index, 0, told, filler) == alone
        assert earned(world, index, 0, told, false, filler) == earned(world, index, 0, told, false)
        assert earned(world, index, 0, told, told, false) == earned(world, index, 0, told, false)
        assert earned(world, index, 0, false, filler) == 0.0
    assert seen > 6
