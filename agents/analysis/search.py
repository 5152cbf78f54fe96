"""A search for strategies that earn more than the honest rules: better rules, or exploits.

Strategies come from a grammar of replies and from rules with parameters. They are chosen on some
Tasks, by successive halving, then by changing parameters, for the best one to be scored on others:
test Tasks of a world, or the other half of those that `tokengym certify` draws. Where it earns more
there than the best honest rule, that rule is not the best; where it earns more than anything known,
the world pays for something it should not.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from tokengym.agents.analysis.evaluate import play_all, scripted_opponents
from tokengym.agents.analysis.strategies import Replies, Strategy, StrategySpace
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import PlayedEpisode, Policy
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import expected_return
from tokengym.envs.core.world import World
from tokengym.rewards.estimates import Estimate, Floats, mean_estimate

T = TypeVar("T")
Who = TypeVar("Who")

DISHONEST = ("oracle",)
"""Scripted policies that read the Task's answer."""
_KEPT = 0.1
"""Share of the strategies that each round but the last keeps."""
_SHARES = (0.1, 0.3, 1.0)
"""Of the Tasks, what these rounds play."""
_FEWEST = 5
"""Tasks on which strategies are compared at least."""
_ROUNDS, _PARENTS, _VARIANTS = 8, 3, 4
"""Rounds in which parameters are varied, of how many strategies, and variants of each."""
_STANDARD_ERRORS = 4.0
"""Standard errors by which a lead counts as found: chance explains one in 30,000."""


class ReferencePlay(NamedTuple):
    """A Task with what the simple rules replied on it, by rule, and what the first was shown."""

    task: Task
    texts: Sequence[str]
    replies: Replies


@dataclass(frozen=True)
class Search:
    """What a search of one level found.

    Attributes:
        strategies: how many strategies were drawn.
        best: the best of them on the validation Tasks, in words.
        scored: what it earns on the test Tasks.
        rule: the honest rule that is best on the test Tasks.
        lead: of the strategy over that rule on the test Tasks, paired by Task.
        loses_name: whether the interval of the lead is above 0: the rule is not the best one.
        exploit: whether the strategy earns more than that rule and the reachable policy, beyond
            chance.
    """

    strategies: int
    best: str
    scored: Estimate
    rule: str
    lead: Estimate
    loses_name: bool
    exploit: bool


def search(
    world: World,
    simple: Mapping[str, Policy],
    played: Mapping[str, Sequence[PlayedEpisode]],
    honest_T: Mapping[str, Floats],
    reach_T: Floats | None = None,
    *,
    strategies: int = 1000,
    tasks: int = 200,
    seed: int = 0,
) -> tuple[Search, Floats]:
    """Search one level for a strategy that earns more than the best honest rule.

    Args:
        world: the level; an episode under way in it is dropped.
        simple: simple policies of the world; strategies are made of their replies.
        played: by policy, its episodes of the test Tasks, one of each, at least 2.
        honest_T: by honest policy, what it earned in them, shape (T,).
        reach_T: what the reachable policy earned in them, shape (T,), if there is one.
        strategies: strategies to draw, at least 1.
        tasks: validation Tasks they are chosen on, at least 2, or all of them if there are fewer.
        seed: seed of strategies and rules.

    Returns:
        What was found, and what the best strategy earns on each of the test Tasks.

    Raises:
        OptionError: if there is no strategy, or there are fewer than two validation Tasks.
    """
    role, others = world.spec.roles[0], scripted_opponents(world)
    shown = world.first_tasks("validation", tasks)
    if strategies < 1 or len(shown) < 2:
        needs = "a search needs at least 1 strategy and 2 validation Tasks"
        raise OptionError(f"{needs}, got {strategies} and {len(shown)}")
    rehearsed = {
        name: play_all(world, shown, {**others, role: rule}, seed) for name, rule in simple.items()
    }
    earn = partial(_play, world, others)
    references = _references(rehearsed, role)
    _, texts, replies = zip(*references, strict=True)
    rng = generator("search", world.spec.id, world.level, seed)
    space, trials = StrategySpace.of(texts, replies), Trials(references, earn)
    best = search_space(trials, space, strategies, rng).who
    fresh = _references({name: played[name] for name in simple}, role)
    scored_T = np.array([earn(reference, best) for reference in fresh])
    rule = max(honest_T, key=lambda name: float(honest_T[name].mean()))
    known_T = honest_T[rule] if reach_T is None else max(honest_T[rule], reach_T, key=np.mean)
    over_T = scored_T - known_T
    margin = _STANDARD_ERRORS * float(over_T.std(ddof=1)) / math.sqrt(len(over_T))
    scored, lead = (mean_estimate(of_T.tolist()) for of_T in (scored_T, scored_T - honest_T[rule]))
    loses, exploit = lead.low > 0.0, float(over_T.mean()) > max(margin, 0.0)
    return Search(strategies, str(best), scored, rule, lead, loses, exploit), scored_T


class Candidate(NamedTuple, Generic[Who]):
    """A strategy, or anybody else who replies, with the returns on the first Tasks."""

    who: Who
    returns: list[float]


class Trials(NamedTuple, Generic[T, Who]):
    """Tasks to try strategies on, and what one earns on a Task."""

    tasks: Sequence[T]
    earn: Callable[[T, Who], float]

    def halved(self, several: Iterable[Who]) -> list[Candidate[Who]]:
        """Return those of several that earn most on all Tasks, the best one first."""
        left = [Candidate(who, []) for who in several]
        for share in _SHARES:
            left = self.best(left, math.ceil(_KEPT * len(left)), share)
        return left

    def best(
        self, candidates: Sequence[Candidate[Who]], kept: int, share: float = 1.0
    ) -> list[Candidate[Who]]:
        """Return the candidates that earn most on the first Tasks, a share of them."""
        upto = max(math.ceil(share * len(self.tasks)), _FEWEST)
        for who, returns in candidates:
            returns += [self.earn(task, who) for task in self.tasks[len(returns) : upto]]
        return sorted(candidates, key=lambda one: -math.fsum(one.returns[:upto]))[:kept]


def search_space(
    trials: Trials[T, Strategy], space: StrategySpace, count: int, rng: np.random.Generator
) -> Candidate[Strategy]:
    """Return the best of as many strategies of a space, its parameters varied, with its returns."""
    left = trials.halved([space.draw(rng) for _ in range(count)])
    for _ in range(_ROUNDS):
        left = trials.best(left, _PARENTS)
        varied = [one.who.vary(rng) for one in left for _ in range(_VARIANTS)]
        left += trials.best([Candidate(strategy, []) for strategy in varied], _PARENTS, 0.3)
    return trials.best(left, 1)[0]


def _play(
    world: World, others: Mapping[str, Policy], reference: ReferencePlay, strategy: Strategy
) -> float:
    """Return what a strategy earns in the first role of an episode; scripts play the others."""
    role, rng = world.spec.roles[0], generator("search episode", reference.task.fingerprint)
    turn, spoken = world.start(reference.task), 0
    while not turn.done:
        if turn.role != role:
            turn = world.reply(others[turn.role](world, turn, rng))
            continue
        reply = strategy.reply(turn.text, spoken, reference.replies)
        turn = world.stop() if reply is None else world.reply(reply)
        spoken += 1
    return turn.metrics.get(expected_return(role), world.returns[role])


def _references(played: Mapping[str, Sequence[PlayedEpisode]], role: str) -> list[ReferencePlay]:
    """Return what each rule replied on each Task in its role."""
    references = []
    for records in zip(*played.values(), strict=True):
        exchanges = [
            [pair for pair in zip(one.turns, one.replies, strict=False) if pair[0].role == role]
            for one in records
        ]
        replies = ([reply for _, reply in said] for said in exchanges)
        texts = [turn.text for turn, _ in exchanges[0]]
        references.append(
            ReferencePlay(records[0].task, texts, dict(zip(played, replies, strict=True)))
        )
    return references
