"""A search for exploits: strategies from a grammar of replies that earn without solving the Task.

Strategies are chosen on validation Tasks, by successive halving, and the best one is scored on test
Tasks against the best honest rule. What earns more than it there is worth a look: either the world
pays for something it should not, or there is a better rule.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokengym.agents.analysis.evaluate import play_all
from tokengym.agents.analysis.strategies import Strategy, StrategySpace
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import Policy
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.registry import scripted_opponent
from tokengym.rewards.estimates import Estimate, mean_estimate

DISHONEST = ("oracle",)
"""Scripted policies that read the Task's answer."""
_KEPT = 0.1
"""Share of the strategies that each round but the last keeps."""
_STANDARD_ERRORS = 4.0
"""Standard errors by which a lead counts as found: chance explains one in 30,000."""


class ReferencePlay(NamedTuple):
    """A Task with what honest rules did on it: the role's replies and returns by rule."""

    task: Task
    replies: Mapping[str, Sequence[str]]
    returns: Mapping[str, float]


class Candidate(NamedTuple):
    """A strategy with its returns on the first validation Tasks."""

    strategy: Strategy
    returns: list[float]


@dataclass(frozen=True)
class Search:
    """What a search of one level found.

    Attributes:
        world: id of the world.
        level: the level.
        strategies: how many strategies were tried.
        best: the best of them on the validation Tasks, in words.
        chosen: what it earned on them.
        scored: what it earns on the test Tasks.
        rule: the honest rule that is best on the test Tasks.
        honest: what the rule earns on the test Tasks.
        lead: of the strategy over the rule on the test Tasks, paired by Task.
        exploit: whether chance does not explain the lead.
    """

    world: str
    level: str
    strategies: int
    best: str
    chosen: Estimate
    scored: Estimate
    rule: str
    honest: Estimate
    lead: Estimate
    exploit: bool


def search(
    world: World,
    policies: Mapping[str, Policy],
    *,
    strategies: int = 1000,
    tasks: int = 40,
    seed: int = 0,
) -> Search:
    """Search one level for a strategy that earns more than the best honest rule.

    Args:
        world: the level; an episode under way in it is dropped.
        policies: scripted policies of the world; the oracle is left out.
        strategies: strategies to try, at least 1.
        tasks: validation Tasks they are chosen on, and test Tasks the best one is scored on; at
            least 2, or all of them where a split holds fewer.
        seed: seed of strategies and rules.

    Raises:
        OptionError: if there is no strategy, or fewer than two Tasks.
    """
    rules = {name: rule for name, rule in policies.items() if name not in DISHONEST}
    ours, fresh = (_known(world, rules, split, tasks, seed) for split in ("validation", "test"))
    if strategies < 1 or min(len(ours), len(fresh)) < 2:
        raise OptionError(
            "a search needs at least 1 strategy and 2 Tasks of each split, got "
            f"{strategies}, {len(ours)} and {len(fresh)}"
        )
    rng = generator("search", world.spec.id, world.level, seed)
    grammar = StrategySpace.of([reference.replies for reference in ours], list(rules))
    left = [Candidate(grammar.draw(rng, world.turn_limit), []) for _ in range(strategies)]
    for upto in (len(ours) // 10 + 1, len(ours) // 3 + 1, len(ours)):
        for strategy, returns in left:
            for reference in ours[len(returns) : upto]:
                returns.append(earned(world, reference, strategy, policies))
        left.sort(key=lambda candidate: -math.fsum(candidate.returns))
        left = left[: max(1, math.ceil(_KEPT * len(left)))]
    best, chosen = left[0]
    rule = max(rules, key=lambda name: math.fsum(reference.returns[name] for reference in fresh))
    scored = np.array([earned(world, reference, best, policies) for reference in fresh])
    honest = np.array([reference.returns[rule] for reference in fresh])
    lead = scored - honest
    margin = _STANDARD_ERRORS * float(lead.std(ddof=1)) / math.sqrt(len(lead))
    return Search(
        world.spec.id,
        world.level,
        strategies,
        str(best),
        mean_estimate(chosen),
        mean_estimate(scored.tolist()),
        rule,
        mean_estimate(honest.tolist()),
        mean_estimate(lead.tolist()),
        bool(lead.mean() > margin and lead.mean() > 0.0),
    )


def earned(
    world: World, reference: ReferencePlay, strategy: Strategy, policies: Mapping[str, Policy]
) -> float:
    """Return what a strategy earns in the first role of an episode; scripts play the others."""
    role = world.spec.roles[0]
    rng = generator("search episode", reference.task.fingerprint)
    turn, spoken = world.start(reference.task), 0
    while not turn.done:
        if turn.role != role:
            other = policies[scripted_opponent(world.spec.id, turn.role)]
            turn = world.reply(other(world, turn, rng))
            continue
        reply = strategy.reply(turn.text, spoken, reference.replies)
        turn = world.stop() if reply is None else world.reply(reply)
        spoken += 1
    return world.returns[role]


def _known(
    world: World, rules: Mapping[str, Policy], split: str, count: int, seed: int
) -> list[ReferencePlay]:
    """Play every rule once on the first Tasks of a split."""
    tasks, role = world.first_tasks(split, count), world.spec.roles[0]
    others = {
        other: rules[scripted_opponent(world.spec.id, other)] for other in world.spec.roles[1:]
    }
    replies: list[dict[str, list[str]]] = [{} for _ in tasks]
    returns: list[dict[str, float]] = [{} for _ in tasks]
    for name, rule in rules.items():
        for place, record in enumerate(play_all(world, tasks, {role: rule, **others}, seed)):
            asked = zip(record.turns, record.replies, strict=False)
            replies[place][name] = [reply for turn, reply in asked if turn.role == role]
            returns[place][name] = record.returns[role]
    return [ReferencePlay(*parts) for parts in zip(tasks, replies, returns, strict=True)]
