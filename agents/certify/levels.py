"""What a level of a world promises, what was observed, and which contracts broke.

Measured on held-out Tasks of one role, the first, with the world's own scripted policies; no model
is needed. What only a test can know (every reply whatsoever, other processes) is left to the tests.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from tokengym.agents.certify.checks import FEW_TASKS, broken
from tokengym.agents.certify.sources.worlds import TokengymWorld
from tokengym.agents.evaluation.scripted import play_all, play_group, well_formed
from tokengym.agents.scale import (
    Earned,
    Scale,
    best_known,
    blind_label,
    blind_policies,
    find_blind,
    scripted_opponents,
    skill_of,
)
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import PlayedEpisode, Policy
from tokengym.envs.core.seeding import SPLITS, generator
from tokengym.envs.core.spec import Reachable
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import ByteCodec
from tokengym.envs.tokens.episode import Episode
from tokengym.rewards.arrays import Floats
from tokengym.rewards.bounds import GRID, Range
from tokengym.rewards.chance import against_optimum
from tokengym.rewards.estimates import Estimate, mean_estimate
from tokengym.rewards.ties import tie_counts

GROUP_SIZES = (2, 4, 8, 16)
MOST_GROUPS = 40
CHECKED = (
    "runtime.seed_control",
    "semantic.verifier_determinism",
    "runtime.episode_determinism",
    "runtime.episode_isolation",
    "runtime.reward_well_formed",
    "sound.no_reply_raises",
    "semantic.no_solution_leakage",
)
"""Checks of `tokengym certify` that every level must pass too."""
LONGEST_REPLY = 64
"""Most bytes of a random reply."""

_CHANCE = 1e-4
"""What is less likely than this is not chance."""


class Contract(StrEnum):
    """A contract that every level must satisfy, beside those of `CHECKED`."""

    RANGE = "range"
    """Rewards and returns lie in their declared ranges and are multiples of 2⁻¹⁶."""
    SPLITS = "splits"
    """No instance occurs in two splits, and each lies in the one that owns what it shows first."""
    ORACLE = "oracle"
    """No scripted policy earns more on average than the oracle, beyond chance."""
    OPTIMUM = "optimum"
    """No scripted policy earns more on average than the stated optimum, beyond chance; where the
    oracle attains the optimum on every Task, none earns more on any. The oracle attains one that is
    stated to be exact."""
    MALFORMED = "malformed"
    """Random bytes that are malformed never earn more than well-formed replies on the same Task."""
    FORM = "form"
    """The answer to every reply reports in `well_formed` whether the reply was well-formed."""
    SIGNAL = "signal"
    """The oracle does not earn less than random play on average, beyond chance, nor always as much;
    and of the noisy policy's groups of eight no larger share ties than the budget allows."""


@dataclass(frozen=True)
class LevelCertificate:
    """What was found for one level.

    Attributes:
        world: id of the world.
        level: the level.
        role: whose returns these are.
        tasks: test Tasks played.
        declared: lowest and highest return the world declares.
        observed: lowest and highest return that any policy was paid.
        unit: what means of returns are: `expected` over outcomes, where the level states that of
            every reply (see `Turn`), or `realised`, as they were paid.
        returns: what each scripted policy earns; scripts play the other roles.
        skill: of each, on these Tasks: 0 is the best blind policy, 1 the oracle.
        blind: what the best policy earns that ignores the Task; see `find_blind`.
        reached_by: the best policy known that reads only what the Turns say; `None` where the
            world declares none, it was left out, or the Tasks are a user's.
        reachable: what that earns; `None` without one.
        optimum: mean over the Tasks of the best expected return.
        exact: whether that is the optimum, rather than a bound of it, on every Task.
        ties: rates of groups of `max(GROUP_SIZES)` rollouts of the noisy policy, or the random one,
            by name, with bootstrap intervals; see `TieCounts.intervals`.
        malformed: share of replies of random bytes that were malformed; `None` if never reported.
        episode_bytes: bytes read and written in an episode of that policy.
        broken: by contract, or by the id of a check of `CHECKED`, what broke it.
    """

    world: str
    level: str
    role: str
    tasks: int
    declared: tuple[float, float]
    observed: tuple[float, float]
    unit: str
    returns: Mapping[str, Estimate]
    skill: Mapping[str, Estimate]
    blind: Estimate
    reached_by: Reachable | None
    reachable: Estimate | None
    optimum: Estimate
    exact: bool
    ties: Mapping[str, Estimate]
    malformed: float | None
    episode_bytes: Estimate
    broken: Mapping[str, str]


Keep = Callable[[str, Sequence[Sequence[PlayedEpisode]]], None]
"""Takes the episodes of a policy, by Task: who played, and the groups."""


def check(
    world: World,
    policies: Mapping[str, Policy],
    *,
    tasks: int = 40,
    seed: int = 0,
    keep: Keep | None = None,
    ties: float = 0.5,
) -> LevelCertificate:
    """Certify one level.

    Args:
        world: the level; an episode under way in it is dropped.
        policies: scripted policies of the world, with at least `null`, `random` and `oracle`.
        tasks: Tasks of each split, at least 2, or all of them where a split holds fewer; of `train`
            12 are enough where the world makes its Tasks up.
        seed: seed of the policies' randomness.
        keep: takes all episodes that were played, if they are wanted.
        ties: largest share of the noisy policy's groups of eight in which all rewards may be equal.

    Raises:
        OptionError: if there are fewer than two test Tasks.
        RewardRangeError: if a reward leaves its declared range; the world itself refuses it.
    """
    # Of Tasks that the world makes up, `split_of` says more than a comparison with many others.
    few = min(tasks, 2 * FEW_TASKS) if world.generates else tasks
    numbers = dict.fromkeys(SPLITS, tasks) | {"train": few}
    drawn = {split: world.first_tasks(split, count) for split, count in numbers.items()}
    tested = drawn["test"]
    if len(tested) < 2:
        raise OptionError(f"a certificate needs at least 2 test Tasks, got {len(tested)}")
    role, others = world.spec.roles[0], scripted_opponents(world)
    # Task by Task: policies that plan find the plans of others on the same Task.
    each = [
        [play_all(world, [task], {**others, role: who}, seed)[0] for who in policies.values()]
        for task in tested
    ]
    records = dict(zip(policies, zip(*each, strict=True), strict=True))
    grouped = "noisy" if "noisy" in policies else "random"
    groups = [
        play_group(world, task, {**others, role: policies[grouped]}, max(GROUP_SIZES), seed)
        for task in tested[:MOST_GROUPS]
    ]
    noise = play_all(world, tested, {**others, role: random_bytes}, seed)
    if keep is not None:
        for name, runs in records.items():
            keep(name, [[run] for run in runs])
        keep(f"{grouped} in groups", groups)
        keep("random bytes", [[run] for run in noise])
    played = [record for runs in (*records.values(), *groups, noise) for record in runs]
    returns = {name: Earned.of_played(runs, role) for name, runs in records.items()}
    earned_T = {name: np.array(each.used_T) for name, each in returns.items()}
    blind = find_blind(world, tested, role, others)
    players = {**others, role: blind_policies(world)[blind]}
    without = Earned.of_played(play_all(world, tested, players, seed), role)
    limits = [world.optimum(task)[role] for task in tested]
    scale = Scale({**returns, blind: without}, blind, blind_label(world, blind), limits)
    best = best_known(world)
    reach_T = None if best is None else earned_T.get(best.policy)
    limit_T, exact = np.array([limit.value for limit in scale.limits_T]), scale.exact
    counts = tie_counts(np.array([_returns(group, role) for group in groups]))
    tied = counts.intervals(generator("check", seed), sizes=GROUP_SIZES)
    turns = world.turn_limit
    in_form = well_formed(noise, role)
    declared, paid = world.spec.return_range[role], _returns(played, role)
    found = {
        Contract.RANGE: _off_grid(played),
        Contract.SPLITS: _shared(world, drawn),
        Contract.ORACLE: _beats_oracle(earned_T, declared),
        Contract.OPTIMUM: against_optimum(earned_T, limit_T, declared, turns, exact=exact),
        Contract.MALFORMED: _paid_noise(noise, records, role),
        Contract.FORM: _untold(played, role),
        Contract.SIGNAL: _silent(earned_T["oracle"] - earned_T["random"], tied, ties),
        **broken(TokengymWorld(world, policies["oracle"], drawn=drawn["train"]), CHECKED),
    }
    return LevelCertificate(
        world=world.spec.id,
        level=world.level,
        role=role,
        tasks=len(tested),
        declared=(declared.low, declared.high),
        observed=(float(paid.min()), float(paid.max())),
        unit=scale.unit,
        returns={name: mean_estimate(values.tolist()) for name, values in earned_T.items()},
        skill={name: skill_of(scale.used, each.used_T) for name, each in returns.items()},
        blind=mean_estimate(scale.used.blind_T),
        reached_by=None if reach_T is None else best,
        reachable=None if reach_T is None else mean_estimate(reach_T.tolist()),
        optimum=mean_estimate(limit_T.tolist()),
        exact=exact,
        ties=tied,
        malformed=1.0 - float(np.mean(in_form)) if in_form else None,
        episode_bytes=mean_estimate([_bytes(world, record, role) for record in records[grouped]]),
        broken={contract: what for contract, what in found.items() if what},
    )


def random_bytes(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Reply with up to `LONGEST_REPLY` random bytes, as the byte codec reads them."""
    sampled = rng.integers(0, 256, int(rng.integers(LONGEST_REPLY + 1))).tolist()
    return ByteCodec().read(sampled, "stop").text


def _returns(records: Iterable[PlayedEpisode], role: str) -> Floats:
    return np.array([record.returns[role] for record in records])


def _bytes(world: World, record: PlayedEpisode, role: str) -> float:
    """Return the length of an episode in the tokens of the byte codec."""
    episode = Episode(world.fork(), record.task, roles=(role,))
    for reply in record.replies:
        episode.say(reply)
    return float(len(episode.observation_of(role)))


def _off_grid(records: Iterable[PlayedEpisode]) -> str:
    for record in records:
        for role, value in record.returns.items():
            if value * GRID != int(value * GRID):
                return f"{role!r} earned {value!r}, which is not a multiple of 1/{GRID:g}"
    return ""


def _shared(world: World, drawn: Mapping[str, Sequence[Task]]) -> str:
    seen: dict[str, str] = {}
    for split, tasks in drawn.items():
        for task in tasks:
            if world.generates:
                seen[task.fingerprint] = world.split_of(task.instance)
            if seen.setdefault(task.fingerprint, split) != split:
                return f"{task.fingerprint} occurs in {seen[task.fingerprint]} and {split}"
    return ""


def _beats_oracle(earned_T: Mapping[str, Floats], declared: Range) -> str:
    """Compare on the same Tasks, by Hoeffding's inequality.

    Standard errors would not do: of lotteries that hardly ever lose, a sample without a loss has a
    small one.
    """
    best = max(earned_T, key=lambda name: float(earned_T[name].mean()))
    lead = float((earned_T[best] - earned_T["oracle"]).mean())
    reach = 2.0 * (declared.high - declared.low)
    margin = reach * math.sqrt(-math.log(_CHANCE) / (2.0 * len(earned_T["oracle"])))
    if lead <= margin:
        return ""
    return f"{best} earns {lead:.4f} more than the oracle, chance explains {margin:.4f}"


def _paid_noise(
    noise: Sequence[PlayedEpisode], records: Mapping[str, Sequence[PlayedEpisode]], role: str
) -> str:
    for place, bad in enumerate(noise):
        for name, runs in records.items():
            good, earned, more = runs[place], bad.returns[role], runs[place].returns[role]
            formed = all(well_formed([good], role)) and not any(well_formed([bad], role))
            if formed and earned > more:
                where = f"Task {bad.task.index} of test"
                return f"random bytes earned {earned!r} on {where}, {name!r} {more!r}"
    return ""


def _untold(records: Sequence[PlayedEpisode], role: str) -> str:
    replies = sum(turn.role == role for record in records for turn in record.turns[:-1])
    reported = len(well_formed(records, role))
    missing = replies - reported
    return f"{missing} of {replies} answers do not report it" if missing else ""


def _silent(lead_T: Floats, ties: Mapping[str, Estimate], most: float) -> str:
    lead, dead = mean_estimate(lead_T.tolist()), ties["zero_advantage_probability_8"].value
    if lead.high <= 0.0:
        return f"the oracle earns {lead} more than random play"
    told = f"{dead:.2f} of the noisy policy's groups of eight tie, {most:g} are allowed"
    return told if dead > most else ""
