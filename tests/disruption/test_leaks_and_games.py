"""Nothing leaks and nothing is gamed: each test pins a defect that earlier work had."""

import dataclasses
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.disruption.debates import BASELINES, FULL, make, play
from tests.every import every
from tokengym.envs.core.play import play as by_policy
from tokengym.envs.core.task import Task, canonical_json
from tokengym.envs.disruption.labels import LABELS
from tokengym.envs.disruption.oracle import true_claims
from tokengym.envs.disruption.world import DisruptionWorld

TIERS = ("L0", "L2")
WARM_UPS = ("L0", "examples")
TARGETS = ("disruption", "novelty", "both")
CHALLENGERS = ("null", "scripted", "noisy")
PLAYED_FAIR = [name for name in BASELINES if name != "oracle"]


def texts(
    world: DisruptionWorld, task: Task, predictor: str, challenger: str, seed: int = 0
) -> list[str]:
    """All that is shown and written in one debate, except the world's last text."""
    policies = {"predictor": BASELINES[predictor], "challenger": BASELINES[challenger]}
    record = by_policy(world, task, policies, seed=seed)
    pairs = zip(record.turns, record.replies, strict=False)
    return [said for turn, reply in pairs for said in (turn.text, reply)]


def returns(world: DisruptionWorld, task: Task, *replies: str) -> float:
    play(world, task, *replies)
    return world.returns["predictor"]


def swapped(task: Task, disruption: str, novelty: str) -> Task:
    """The Task with another gold label and nothing else known."""
    answer = {"source": "x", "labels": {"disruption": disruption, "novelty": novelty}}
    return dataclasses.replace(task, answer_json=canonical_json(answer))


@pytest.mark.nightly
@given(
    index=st.integers(0, 500),
    seed=st.integers(0, 99),
    level=st.sampled_from((*TIERS, "private")),
    target=st.sampled_from(TARGETS),
    predictor=st.sampled_from(PLAYED_FAIR),
    challenger=st.sampled_from(CHALLENGERS),
    gold=st.tuples(*(st.sampled_from(LABELS[target]) for target in LABELS)),
)
def test_every_text_is_identical_under_a_swapped_gold_label(
    index: int,
    seed: int,
    level: str,
    target: str,
    predictor: str,
    challenger: str,
    gold: tuple[str, str],
) -> None:
    world = make(level, target=target)
    task = world.task("train", index)
    played = texts(world, task, predictor, challenger, seed)
    assert played == texts(world, swapped(task, *gold), predictor, challenger, seed)


PAPER = dataclasses.replace(FULL, field_median=1.61803)
OPPOSITE = dataclasses.replace(
    PAPER,
    openalex_id="W1",
    cited_by_count=12,
    cd_index=-0.9,
    disruption_label="consolidating",
    novelty_score=2.0,
    conventionality_score=3.0,
    novelty_label="conventional",
)


@pytest.mark.parametrize("level", [*TIERS, "private"])
@pytest.mark.parametrize("target", TARGETS)
@every("challenger", CHALLENGERS)
def test_no_prompt_holds_scores_later_counts_or_ids(
    level: str, target: str, challenger: str
) -> None:
    world = make(level, target=target)
    played = texts(world, world.task_from_paper(PAPER), "noisy", challenger)
    for secret in ("98765", "0.437", "3.14", "27.18", "1.618", "2741809807"):
        assert not any(secret in text for text in played[::2])  # between them are replies
    # Label words stand in the rules, so whether one is singled out shows in a paper unlike it.
    other = world.task_from_paper(OPPOSITE)
    assert other.fingerprint == world.task_from_paper(PAPER).fingerprint
    assert played == texts(world, other, "noisy", challenger)


@pytest.mark.nightly
@given(index=st.integers(0, 500), level=st.sampled_from(WARM_UPS), target=st.sampled_from(TARGETS))
def test_the_scripted_challenger_says_only_true_things_against_the_label(
    index: int, level: str, target: str
) -> None:
    world = make(level, target=target)
    rng = np.random.default_rng(0)
    turn = world.start(world.task("train", index))
    answer = BASELINES["noisy"](world, turn, rng)
    turn = world.reply(answer)
    said = BASELINES["scripted"](world, turn, rng)
    label = said.splitlines()[0].removeprefix("ARGUE ")
    assert label not in answer.splitlines()[0].split()
    world.reply(said)
    last = world.reply(answer)
    assert last.metrics["challenge_validity"] == 1.0


@pytest.mark.nightly
def test_the_noisy_challenger_is_wrong_about_half_the_time() -> None:
    world = make()
    validity = []
    for index in range(100):
        rng = np.random.default_rng(index)
        turn = world.start(world.task("train", index))
        while not turn.done:
            policy = BASELINES["noisy"] if turn.role == "challenger" else BASELINES["logistic"]
            turn = world.reply(policy(world, turn, rng))
        validity.append(turn.metrics["challenge_validity"])
    assert 0.35 < np.mean(validity) < 0.65


# Games: all against the honest answer of one who knows the posterior, labels free of noise.


def honest_replies(world: DisruptionWorld, task: Task) -> list[str]:
    return [*by_policy(world, task, BASELINES["oracle"]).replies]


def as_believed(task: Task, final: str) -> Task:
    """The Task whose truth is what a final answer states: all that can be known by then."""
    report = [float(share) for share in final.splitlines()[1].split()[1:]]
    answer = dict(task.answer)
    answer["posteriors"] = {**answer["posteriors"], "disruption": report}
    return dataclasses.replace(task, answer_json=canonical_json(answer))


@cache  # finding the best claims takes most of a debate's time
def honest_debate(level: str, index: int) -> tuple[Task, list[str]]:
    """A training Task whose labels are free of noise, and its honest replies."""
    world = make(level, label="expected")
    task = world.task("train", index)
    replies = honest_replies(world, task)
    return as_believed(task, replies[-1]), replies


def head(answer: str) -> str:
    return "\n".join(answer.splitlines()[:2])


def all_true(world: DisruptionWorld) -> list[str]:
    return [claim.line for claim in true_claims(world.compiled.evidence, world.compiled.judge)]


def least_likely(world: DisruptionWorld) -> str:
    posterior = world.compiled.posteriors[0]
    return LABELS["disruption"][posterior.index(min(posterior))]


GAMES: dict[str, Callable[[DisruptionWorld, str], str]] = {
    "keyword stuffing": lambda w, a: (
        "novel groundbreaking paradigm because therefore evidence citation\n" * 30 + a
    ),
    "one claim three times": lambda w, a: "\n".join([head(a), *[all_true(w)[-1]] * 3]),
    "the whole abstract": lambda w, a: f'{head(a)}\nQUOTE "{w.compiled.evidence.abstract}"',
    "contradictory labels": lambda w, a: "\n".join(
        [*(f"LABEL {label}" for label in LABELS["disruption"]), a]
    ),
    "a contradictory last label": lambda w, a: f"{a}\nLABEL {least_likely(w)}",
    "a hundred claims": lambda w, a: "\n".join([a, *(all_true(w) * 100)[:100]]),
    "false claims": lambda w, a: "\n".join([head(a), *["CLAIM n_i >= 999"] * 3]),
    "empty claims": lambda w, a: f"{head(a)}\nCLAIM n_i >= 0\nCLAIM n_j >= 0\nCLAIM n_k >= 0",
    "no claims": lambda w, a: head(a),
    "a certain report": lambda w, a: "\n".join([a.splitlines()[0], "P 1 0 0", *a.splitlines()[2:]]),
}


@pytest.mark.parametrize("level", TIERS)
@pytest.mark.parametrize("name", GAMES)
def test_no_game_earns_more_than_the_honest_answer(name: str, level: str) -> None:
    world = make(level, label="expected")
    lead = []
    for index in range(20):
        task, (first, challenge, final) = honest_debate(world.level, index)
        honest = returns(world, task, first, challenge, final)
        gamed = returns(world, task, first, challenge, GAMES[name](world, final))
        # The search for the best claims is near-exact, so a lucky set may be a hair better.
        assert gamed <= honest + 0.003
        lead.append(honest - gamed)
    assert np.mean(lead) >= 0
