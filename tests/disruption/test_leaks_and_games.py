"""Nothing leaks and nothing is gamed: each test pins a defect that earlier work had."""

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.every import every
from tokengym.envs.core.task import Task, canonical_json
from tokengym.envs.disruption.challengers import CHALLENGERS
from tokengym.envs.disruption.labels import LABELS
from tokengym.envs.disruption.oracle import true_claims
from tokengym.envs.disruption.paper import FirstYear, Paper, ReferenceFacts
from tokengym.envs.disruption.world import DisruptionWorld
from tokengym.envs.registry import baselines, make_world
from tokengym.rewards import debate

BASELINES = baselines("disruption")
TIERS = ("L0", "L2")
WARM_UPS = ("L0", "examples")
TARGETS = ("disruption", "novelty", "both")
PLAYED_FAIR = [name for name in BASELINES if name != "oracle"]


def make(level: str = "L2", **options: Any) -> DisruptionWorld:
    world = make_world("disruption", level, **options)
    assert isinstance(world, DisruptionWorld)
    return world


def texts(
    world: DisruptionWorld, task: Task, predictor: str, challenger: str, seed: int = 0
) -> list[str]:
    """All that is shown and written in one debate, except the world's last text."""
    rng = np.random.default_rng(seed)
    turn = world.start(task)
    seen = []
    while not turn.done:
        seen.append(turn.text)
        policy = CHALLENGERS[challenger] if turn.role == "challenger" else BASELINES[predictor]
        seen.append(policy(world, turn, rng))
        turn = world.reply(seen[-1])
    return seen


def returns(world: DisruptionWorld, task: Task, *replies: str) -> float:
    world.start(task)
    for reply in replies:
        world.reply(reply)
    return world.returns["predictor"]


def swapped(task: Task, disruption: str, novelty: str) -> Task:
    """The Task with another gold label and nothing else known."""
    answer = {"source": "x", "labels": {"disruption": disruption, "novelty": novelty}}
    return dataclasses.replace(task, answer_json=canonical_json(answer))


@pytest.mark.nightly
@settings(max_examples=60, deadline=None)
@given(
    index=st.integers(0, 500),
    seed=st.integers(0, 99),
    level=st.sampled_from((*TIERS, "private")),
    target=st.sampled_from(TARGETS),
    predictor=st.sampled_from(PLAYED_FAIR),
    challenger=st.sampled_from(list(CHALLENGERS)),
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


PAPER = Paper(
    openalex_id="W2741809807",
    title="On things",
    abstract="We introduce a way to look at things.",
    publication_year=2003,
    cited_by_count=98765,
    cd_index=0.437219,
    novelty_score=-3.14159,
    conventionality_score=27.18281,
    disruption_label="disruptive",
    novelty_label="balanced",
    primary_field="Biology",
    references=ReferenceFacts(31, 7, 12, 3),
    first_year=FirstYear(4, 1, 2),
    field_median=1.61803,
)
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
@every("challenger", list(CHALLENGERS))
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


@pytest.mark.parametrize("level", TIERS)
def test_a_lower_tier_shows_nothing_of_a_higher_one(level: str) -> None:
    world = make(level)
    shown = world.start(world.task_from_paper(PAPER)).text
    assert ("references 31" in shown) == (level != "L0")
    assert ("n_i 4, n_j 1, n_k 2" in shown) == (level == "L2")


@pytest.mark.nightly
@settings(max_examples=60, deadline=None)
@given(index=st.integers(0, 500), level=st.sampled_from(WARM_UPS), target=st.sampled_from(TARGETS))
def test_the_scripted_challenger_says_only_true_things_against_the_label(
    index: int, level: str, target: str
) -> None:
    world = make(level, target=target)
    rng = np.random.default_rng(0)
    turn = world.start(world.task("train", index))
    answer = BASELINES["noisy"](world, turn, rng)
    turn = world.reply(answer)
    said = CHALLENGERS["scripted"](world, turn, rng)
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
            policy = CHALLENGERS["noisy"] if turn.role == "challenger" else BASELINES["logistic"]
            turn = world.reply(policy(world, turn, rng))
        validity.append(turn.metrics["challenge_validity"])
    assert 0.35 < np.mean(validity) < 0.65


# Games: all against the honest answer of one who knows the posterior, labels free of noise.


def honest_replies(world: DisruptionWorld, task: Task) -> list[str]:
    rng = np.random.default_rng(0)
    turn = world.start(task)
    said = []
    while not turn.done:
        said.append(BASELINES["oracle"](world, turn, rng))
        turn = world.reply(said[-1])
    return said


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


def test_reasoning_does_not_count_words() -> None:
    world = make()
    for index in range(10):
        task = world.task("train", index)
        first, challenge, final = honest_replies(world, task)
        short = returns(world, task, first, challenge, final)
        wordy = "Because of this evidence, therefore. " * 200 + "\n" + final
        assert returns(world, task, first, challenge, wordy) == short


@pytest.mark.nightly
def test_giving_way_to_the_challenger_as_such_earns_nothing() -> None:
    world = make(label="expected")
    gain = []
    for index in range(100):
        task, (first, challenge, final) = honest_debate(world.level, index)
        label = challenge.splitlines()[0].removeprefix("ARGUE ")
        if label not in LABELS["disruption"]:
            continue
        place = LABELS["disruption"].index(label)
        flipped = f"LABEL {label}\nP {' '.join('0.6' if k == place else '0.2' for k in range(3))}"
        claims = "\n".join(final.splitlines()[2:])
        gain.append(
            returns(world, task, first, challenge, f"{flipped}\n{claims}")
            - returns(world, task, first, challenge, final)
        )
    assert len(gain) > 50
    assert max(gain) <= 1e-4


def test_hiding_what_one_knows_at_first_costs() -> None:
    world = make("L0", label="expected")
    for index in range(40):
        task, (first, challenge, final) = honest_debate(world.level, index)
        hidden = "LABEL neutral\nP 0.333 0.333 0.334"
        assert (
            returns(world, task, hidden, challenge, final)
            <= returns(world, task, first, challenge, final) + 1e-4
        )


def test_a_claim_that_is_true_of_everything_earns_nothing() -> None:
    for level, claim in (("L2", "CLAIM n_k >= 0"), ("examples", "CLAIM references >= 0")):
        world = make(level, label="expected")
        for index in range(20):
            task, (first, challenge, final) = honest_debate(world.level, index)
            returns(world, task, first, challenge)
            last = world.reply(f"{head(final)}\n{claim}")
            assert last.terms["predictor"]["reasoning"] == 0.0


@pytest.mark.parametrize(("level", "least"), [("L2", 0.15), ("L0", 0.08)])
def test_a_calibrated_report_is_worth_stating(level: str, least: float) -> None:
    """Compared with even odds on the best label, in standard deviations of chance."""
    world, drawn = make(level, label="expected"), make(level)
    worth, chance = [], []
    for index in range(60):
        task, (first, challenge, final) = honest_debate(world.level, index)
        label, _, *claims = final.splitlines()
        even = "\n".join([label, "P 0.333 0.333 0.333", *claims])
        honest = returns(world, task, first, challenge, final)
        worth.append(honest - returns(world, task, even, challenge, even))
        chance.append(returns(drawn, drawn.adopt(task), first, challenge, final) - honest)
    assert np.mean(worth) > least * np.std(chance)


def test_a_label_that_contradicts_the_report_costs() -> None:
    world = make(label="expected")
    for index in range(20):
        task, (first, challenge, final) = honest_debate(world.level, index)
        honest = returns(world, task, first, challenge, final)
        lines = final.splitlines()
        for label in LABELS["disruption"]:
            said = "\n".join([f"LABEL {label}", *lines[1:]])
            both = returns(world, task, said, challenge, said)
            assert (both < honest - 1e-4) == (label not in lines[0])


@pytest.mark.parametrize("aim", ["adversary", "critic"])
def test_collusion_of_both_roles_does_not_raise_the_sum(aim: str) -> None:
    world = make("L0", label="expected", challenger=aim)
    for index in range(30):
        task = world.task("train", index)
        first, challenge, final = honest_replies(world, task)
        honest = sum(world.returns.values())
        unlikely = least_likely(world)
        share = " ".join("1" if word == unlikely else "0" for word in LABELS["disruption"])
        claims = final.splitlines()[2:]
        wrong = "\n".join([f"LABEL {unlikely}", f"P {share}", *claims])
        for before, after in ((first, wrong), (wrong, final), (wrong, wrong)):
            returns(world, task, before, challenge, after)
            assert sum(world.returns.values()) <= honest + 1e-4


@pytest.mark.nightly
def test_the_bayes_policy_beats_every_baseline() -> None:
    world = make(label="expected", single_turn=True)
    earned: dict[str, list[float]] = {name: [] for name in BASELINES}
    for index in range(700):
        task = world.task("test", index)
        for name, policy in BASELINES.items():
            turn = world.start(task)
            world.reply(policy(world, turn, np.random.default_rng(index)))
            earned[name].append(world.returns["predictor"])
    means = {name: float(np.mean(values)) for name, values in earned.items()}
    assert max(means, key=lambda name: means[name]) == "oracle"
    assert means["oracle"] > means["logistic"] > means["scripted"] > means["majority"]


@pytest.mark.nightly
def test_the_bayes_policy_beats_the_best_of_10000_random_strategies() -> None:
    world = make(label="expected")
    tasks = [world.task("train", index) for index in range(1200)]
    features = np.array([[*t.instance["facts"].values()] for t in tasks], float)
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    x = np.hstack([features, np.ones((len(tasks), 1))])
    truths = np.array([world.compile(t).own[0] for t in tasks])

    def earned(reports: np.ndarray, part: slice) -> np.ndarray:
        """Mean correctness and calibration of reports, shape (3, strategies, tasks)."""
        truth = tuple(truths[part].T)
        chosen = reports.argmax(axis=0)
        likely = np.take_along_axis(truths[part].T[:, None], chosen[None], axis=0)[0]
        right = debate.RIGHT_LABEL * (2.0 * likely - 1.0)
        loss = debate.half_brier(tuple(reports), truth)
        totals: np.ndarray = np.mean(right + debate.calibration(loss, loss), axis=-1)
        return totals

    chosen_on, scored_on = slice(0, 600), slice(600, 1200)
    rng = np.random.default_rng(0)
    best, strategy = -np.inf, np.zeros((x.shape[1], 3))
    for _ in range(100):
        weights = rng.normal(size=(100, x.shape[1], 3)) * rng.exponential(size=(100, 1, 1))
        scores = np.einsum("tf,sfk->kst", x[chosen_on], weights)
        shares = np.exp(scores - scores.max(axis=0))
        totals = earned(shares / shares.sum(axis=0), chosen_on)
        if totals.max() > best:
            best, strategy = float(totals.max()), weights[int(totals.argmax())]
    scores = (x[scored_on] @ strategy).T[:, None]
    shares = np.exp(scores - scores.max(axis=0))
    lucky = float(earned(shares / shares.sum(axis=0), scored_on)[0])
    bayes = float(earned(truths[scored_on].T[:, None], scored_on)[0])
    assert best > 0
    assert bayes > lucky
