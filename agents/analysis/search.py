"""A search for strategies that earn more than the honest rules: better rules, or exploits.

Strategies come from a grammar of replies and from rules with parameters. They are chosen on
validation Tasks, by successive halving, then by changing parameters, and the best one is scored on
test Tasks. Where it earns more there than the best honest rule, that rule is not the best; where it
earns more than anything known, the world pays for something it should not.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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

DISHONEST = ("oracle",)
"""Scripted policies that read the Task's answer."""
_KEPT = 0.1
"""Share of the strategies that each round but the last keeps."""
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
        raise OptionError(
            "a search needs at least 1 strategy and 2 validation Tasks, got "
            f"{strategies} and {len(shown)}"
        )
    rehearsed = {
        name: play_all(world, shown, {**others, role: rule}, seed) for name, rule in simple.items()
    }
    trials = _Trials(world, _references(rehearsed, role), others)
    best = trials.search(strategies, generator("search", world.spec.id, world.level, seed))
    fresh = _Trials(world, _references({name: played[name] for name in simple}, role), others)
    scored_T = np.array(fresh.best([Candidate(best, [])], 1)[0].returns)
    rule = max(honest_T, key=lambda name: float(honest_T[name].mean()))
    known_T = honest_T[rule] if reach_T is None else max(honest_T[rule], reach_T, key=np.mean)
    over_T = scored_T - known_T
    margin = _STANDARD_ERRORS * float(over_T.std(ddof=1)) / math.sqrt(len(over_T))
    lead = mean_estimate((scored_T - honest_T[rule]).tolist())
    found = Search(
        strategies,
        str(best),
        mean_estimate(scored_T.tolist()),
        rule,
        lead,
        loses_name=lead.low > 0.0,
        exploit=float(over_T.mean()) > max(margin, 0.0),
    )
    return found, scored_T


class Candidate(NamedTuple):
    """A strategy with its returns on the first Tasks."""

    strategy: Strategy
    returns: list[float]


class _Trials(NamedTuple):
    """Tasks of a world to try strategies on, and who plays the other roles."""

    world: World
    references: Sequence[ReferencePlay]
    others: Mapping[str, Policy]

    def search(self, strategies: int, rng: np.random.Generator) -> Strategy:
        """Return the best of as many strategies, its parameters varied."""
        _, texts, replies = zip(*self.references, strict=True)
        space = StrategySpace.of(texts, replies)
        left = [Candidate(space.draw(rng), []) for _ in range(strategies)]
        for share in (0.1, 0.3, 1.0):
            left = self.best(left, math.ceil(_KEPT * len(left)), share)
        for _ in range(_ROUNDS):
            left = self.best(left, _PARENTS)
            varied = [one.strategy.vary(rng) for one in left for _ in range(_VARIANTS)]
            left += self.best([Candidate(strategy, []) for strategy in varied], _PARENTS, 0.3)
        return self.best(left, 1)[0].strategy

    def best(
        self, candidates: Sequence[Candidate], kept: int, share: float = 1.0
    ) -> list[Candidate]:
        """Return the candidates that earn most on the first Tasks, a share of them."""
        upto = math.ceil(share * len(self.references))
        for strategy, returns in candidates:
            for reference in self.references[len(returns) : upto]:
                returns.append(self._play(reference, strategy))
        return sorted(candidates, key=lambda one: -math.fsum(one.returns[:upto]))[:kept]

    def _play(self, reference: ReferencePlay, strategy: Strategy) -> float:
        """Return what a strategy earns in the first role of an episode; scripts play the others."""
        world, role = self.world, self.world.spec.roles[0]
        rng = generator("search episode", reference.task.fingerprint)
        turn, spoken = world.start(reference.task), 0
        while not turn.done:
            if turn.role != role:
                turn = world.reply(self.others[turn.role](world, turn, rng))
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
