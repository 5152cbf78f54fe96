"""Laws of the tables of scores and losses: an entry is all that there is to add.

Each names itself, says what it is in words, keeps the range or the limits that it states, and one
that a test adds to the table alone works wherever the others do.
"""

import math
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import make_world
from tokengym.rewards.scoring import ORDERED_SCORES, SCORES, Forecast, Score, score_of

TABLES = {"SCORES": SCORES, "ORDERED_SCORES": ORDERED_SCORES}
needs_torch = pytest.mark.skipif(not find_spec("torch"), reason="losses need the extra `tinker`")


@st.composite
def reports(draw: st.DrawFn) -> tuple[Forecast, Forecast]:
    """A forecast and weights over the same outcomes."""
    count = draw(st.integers(2, 6))
    shares = st.lists(st.floats(0.0, 1.0), min_size=count, max_size=count).filter(sum)
    one, other = draw(shares), draw(shares)
    return (
        tuple(share / math.fsum(one) for share in one),
        tuple(share / math.fsum(other) for share in other),
    )


@pytest.mark.parametrize("name", TABLES)
@given(pair=reports())
def test_a_score_names_words_and_keeps_itself(name: str, pair: tuple[Forecast, Forecast]) -> None:
    for key, score in TABLES[name].items():
        assert key == score.name
        for yes_no in (True, False):
            said = score.says(yes_no=yes_no)
            assert said == said.strip(". ")
            assert "Your score" in said
        assert score.range.low - 1e-12 <= score(*pair) <= score.range.high + 1e-12
        # A world pays a share of it between what a malformed reply and what a perfect one earns.
        assert (score.range.low, score.range.high) == (0.0, 1.0)


def test_no_two_scores_say_the_same() -> None:
    said = [score.sentence for table in TABLES.values() for score in table.values()]
    assert len(set(said)) == len(said)


def hinted(text: str, score: Score) -> bool:
    return bool(score.hint) and score.hint in text


@pytest.mark.parametrize("level", ["easy", "expert", "update", "twins"])
def test_a_score_added_to_the_table_is_paid(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    linear = Score(
        "linear",
        lambda forecast, weights: sum(p * w for p, w in zip(forecast, weights, strict=True)),
        "Your score is the probability that you gave to the true answer",
        hint="Only the true answer counts.",
    )
    with pytest.raises(OptionError, match=r"score must be one of .*'linear'"):
        make_world("forecast", level, score="linear")
    monkeypatch.setitem(SCORES, linear.name, linear)
    world = make_world("forecast", level, score="linear", label="expected")
    task = world.task("test", 0)
    text = world.start(task).text
    assert linear.sentence in text
    assert not any(score.says(yes_no=True) in text for score in SCORES.values() if score != linear)
    question = world.compiled[0].question
    count = question.options or 2
    share = [0.25, 0.75] if count == 2 else [1 / count] * count
    letters = ", ".join(f"{letter} {p:.3f}" for letter, p in zip("ABCDEFGH", share, strict=False))
    reply = f"Probabilities: {letters}" if question.options else "Probability: 0.75"
    paid = world.reply(reply).metrics["score"]
    assert paid == pytest.approx(linear(tuple(share), question.predictive), abs=1e-3)
    terse = make_world("forecast", level, score="linear", prompt="terse")
    assert hinted(terse.start(terse.task("test", 0)).text, linear)


@pytest.mark.parametrize("ordered", [False, True])
def test_a_score_that_no_table_has_is_refused_by_name(ordered: bool) -> None:
    with pytest.raises(KeyError, match=r"score must be one of brier.*ranked_upper, got 'nonsense'"):
        score_of("nonsense", ordered=ordered)


@pytest.mark.nightly
@needs_torch
@given(
    rows=st.lists(
        st.tuples(st.floats(-6, 0), st.floats(-6, -0.01), st.floats(-3, 3)), min_size=1, max_size=12
    ),
    strength=st.floats(0.0, 2.0),
)
def test_a_loss_names_itself_and_is_finite_within_its_limits(
    rows: list[tuple[float, float, float]], strength: float
) -> None:
    import torch

    from tokengym.agents.service.engine.losses import LOSSES
    from tokengym.agents.service.errors import BadRequestError

    own, sampled, scale = (np.array(column, np.float32) for column in zip(*rows, strict=True))
    for key, loss in LOSSES.items():
        assert key == loss.name
        open_ones = {name for name, value in loss.settings.items() if value is None}
        settings = loss.configured(dict.fromkeys(open_ones, strength))
        assert settings.keys() == loss.settings.keys()
        for name in (*loss.settings, "nonsense"):
            with pytest.raises(BadRequestError, match=name):
                loss.configured({**dict.fromkeys(open_ones, strength), name: -1.0})
        inputs: dict[str, Any] = {"logprobs": sampled, loss.scale: scale}
        if loss.of_sequences is not None:
            inputs |= loss.of_sequences(own, inputs, np.zeros(len(own), np.int64))
        acts = loss.has_gradient(inputs)
        p = torch.from_numpy(own).requires_grad_()
        tensors = {name: torch.from_numpy(values) for name, values in inputs.items()}
        lost = loss.of_tokens(p, tensors, settings)
        lost.sum().backward()
        assert p.grad is not None
        assert torch.isfinite(lost).all()
        assert torch.isfinite(p.grad).all()
        assert not p.grad[~torch.from_numpy(acts)].any()
