"""Laws of the level `private`: exact posteriors of both roles, selection but never falsehood."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokengym.envs.disruption import challengers
from tokengym.envs.disruption.claims import Fact
from tokengym.envs.disruption.evidence import CITER_FEATURES, Evidence
from tokengym.envs.disruption.generator import draw_evidence, draw_outcome
from tokengym.envs.disruption.grammar import Argument, PredictorAnswer, read_argument
from tokengym.envs.disruption.inference import face_value, one_sided, selection_posterior
from tokengym.envs.disruption.labels import DISRUPTION_LABELS
from tokengym.envs.disruption.literature import Probabilities, posterior
from tokengym.envs.disruption.oracle import likeliest
from tokengym.envs.disruption.world import DisruptionWorld
from tokengym.envs.registry import baselines, make_world
from tokengym.rewards.debate import half_brier

BASELINES = baselines("disruption")
papers = st.integers(0, 2**32).map(
    lambda seed: draw_evidence(np.random.default_rng(seed), "private")
)


def make(prompt: str = "full") -> DisruptionWorld:
    world = make_world("disruption", "private", label="expected", prompt=prompt)
    assert isinstance(world, DisruptionWorld)
    return world


def told(evidence: Evidence) -> tuple[int, Argument]:
    """The label a Bayesian chooses at first, and what the challenger says against it."""
    label = likeliest(posterior(evidence, "disruption"))
    return label, one_sided([evidence.private[name] for name in CITER_FEATURES], label)


def exchanges(count: int) -> Iterator[tuple[Probabilities, Probabilities, int]]:
    """Beliefs after a challenge, taken at face value and weighed, and the label that came true."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        evidence = draw_evidence(rng, "private")
        label, argument = told(evidence)
        outcome = draw_outcome(rng, evidence).labels()["disruption"]
        yield (
            face_value(evidence, argument.claims),
            selection_posterior(evidence, label, argument),
            DISRUPTION_LABELS.index(outcome),
        )


@settings(max_examples=40, deadline=None)
@given(evidence=papers)
def test_silence_leaves_the_prior_and_a_full_account_the_posterior(evidence: Evidence) -> None:
    own, known = (posterior(one, "disruption") for one in (evidence, evidence.known))
    whole = [Fact(name, "=", float(count)) for name, count in evidence.private.items()]
    assert face_value(evidence, ()) == pytest.approx(own, abs=1e-4)
    assert face_value(evidence, whole) == pytest.approx(known, abs=1e-4)


def test_weighing_is_calibrated_and_face_value_is_misled() -> None:
    naive, wise, came_true = map(np.array, zip(*exchanges(1500), strict=True))
    drawn = np.eye(3)[came_true]
    for low in np.arange(0.0, 1.0, 0.2):
        inside = (wise >= low) & (wise < low + 0.2)
        error = np.sqrt((wise * (1 - wise))[inside].sum()) / inside.sum()
        assert abs(drawn[inside].mean() - wise[inside].mean()) < 4 * error
    losses = [np.mean(half_brier(tuple(b.T), tuple(drawn.T))) for b in (naive, wise)]
    assert losses[1] < losses[0] - 0.02
    # Taken at face value, the label argued for seems likelier than it is.
    assert abs(naive - drawn).mean() > abs(wise - drawn).mean()


@settings(max_examples=60, deadline=None)
@given(evidence=papers)
def test_the_one_sided_challenger_says_only_true_things_against_the_label(
    evidence: Evidence,
) -> None:
    label, argument = told(evidence)
    assert all(claim.holds(evidence.known) for claim in argument.claims)
    assert argument.label != DISRUPTION_LABELS[label]
    assert (argument.label is None) == (not argument.claims)
    assert read_argument(argument.write(), ("disruption",)) == argument


def test_no_falsehood_reaches_the_predictor_and_each_costs() -> None:
    world = make(prompt="terse")
    for index in range(20):
        task = world.task("train", index)
        turn = world.start(task)
        answer = BASELINES["oracle"](world, turn, np.random.default_rng(index))
        world.reply(answer)
        n_i = task.instance["private"]["n_i"]
        said = f"ARGUE neutral\nCLAIM n_i >= {n_i + 1}\nCLAIM n_i <= {n_i}"
        assert world.reply(said).text == (
            f"Challenger: neutral, since n_i <= {n_i} (true, but chosen).\nFinal answer?"
        )
        last = world.reply(answer)
        assert last.terms["challenger"]["false_claims"] == -0.25
        assert last.metrics["challenge_validity"] == 0.5


def test_the_predictor_may_repeat_what_it_was_told_and_knows_no_more() -> None:
    world = make()
    task = world.task("train", 0)
    counts = task.instance["private"]
    claim = f"CLAIM n_j = {counts['n_j']}"
    report = "LABEL neutral\nP 0.3 0.3 0.4"
    for argument, false in ((f"ARGUE neutral\n{claim}", 0.0), ("ARGUE neutral", -0.125)):
        world.start(task)
        world.reply(report)
        world.reply(argument)
        last = world.reply(f"{report}\n{claim}")
        assert last.terms["predictor"]["false_claims"] == false
        assert (last.terms["predictor"]["reasoning"] != 0.0) == (false == 0.0)


@pytest.mark.parametrize(("level", "moved"), [("L2", False), ("private", True)])
def test_a_bayesian_is_moved_by_what_it_did_not_know_alone(level: str, moved: bool) -> None:
    world = make_world("disruption", level)
    gains = []
    for index in range(20):
        turn = world.start(world.task("train", index))
        rng = np.random.default_rng(index)
        while not turn.done:
            turn = world.reply(BASELINES["oracle"](world, turn, rng))
        gains.append(turn.metrics["brier_gain"])
    assert any(gains) == moved


def test_what_the_challenger_knows_is_no_part_of_what_the_predictor_reads() -> None:
    world = make()
    for index in range(10):
        task = world.task("train", index)
        text = world.start(task).text
        assert "First year: n_i" not in text
        turn = world.reply(PredictorAnswer((2,), ((0.2, 0.3, 0.5),), ()).write(world.targets))
        shown = ", ".join(f"{name} {task.instance['private'][name]}" for name in CITER_FEATURES)
        assert f"First year: {shown}" in turn.text
        assert challengers.scripted(world, turn, np.random.default_rng(0)).startswith("ARGUE")
