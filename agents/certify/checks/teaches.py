"""Teaches: groups of rollouts differ in reward, and a solution earns more than who plays them."""

import math
from collections.abc import Sequence
from statistics import fmean

import numpy as np

from tokengym.agents.certify.bench import Bench, Untold
from tokengym.agents.certify.finding import CheckVerdict, Severity, check
from tokengym.agents.certify.players import SCRIPTED, player
from tokengym.agents.certify.source import TaskPlace
from tokengym.agents.certify.sources.records import RewardGroup, reward_groups
from tokengym.rewards.estimates import Estimate, mean_estimate, share_estimate
from tokengym.rewards.ties import tie_counts

GROUP_SIZES = (4, 8, 16)
_USUAL = 8
_MOST = 0.5
_REACH = ("statistical.reward_reachability", "statistical.training_signal")
"""Rewards that are never reached do not spread either."""


@check("statistical.reward_reachability", "teaches", Severity.PROPERTY)
def reward_reachability(bench: Bench) -> CheckVerdict:
    """On half of the Tasks at least something that was tried earns more than the least."""
    groups = bench.once(_groups)
    low = min(value for group in groups for value in group.rewards)
    low = low if bench.source.rollouts else min(low, bench.least)
    reached = sum(max(group.rewards) > low + 1e-6 for group in groups)
    rate = share_estimate(reached, len(groups))
    found = f"{reached} of {len(groups)} groups earned more than {low:g}"
    return CheckVerdict(rate.value >= _MOST, found, rate)


@check("statistical.training_signal", "teaches", Severity.PROPERTY, after=_REACH[:1])
def training_signal(bench: Bench) -> CheckVerdict:
    """Most groups of eight rollouts have an advantage to learn from."""
    return _dead(bench, bench.once(_groups))


@check(
    *("teaches.wrong_replies", "teaches", Severity.PROPERTY),
    *("play", "references", "grades", "right answers"),
)
def wrong_replies(bench: Bench) -> CheckVerdict:
    """Wrong replies differ in reward, so that a beginner's groups teach something."""
    told = {
        place: [bench.say(*bench.other(place, at)) for at in _others(bench, place)]
        for place in bench.chosen
    }
    groups = [_group(at, [bench.earned(at, one) for one in told[at]]) for at in told if told[at]]
    return _dead(bench, groups)


def _others(bench: Bench, place: TaskPlace) -> Sequence[int]:
    """Return distances to Tasks whose reference is another one, as many as a group has."""
    own = bench.view(place).reference
    apart = [at for at in range(1, len(bench.chosen)) if bench.other(place, at) != own]
    if len({bench.other(place, at) for at in apart}) < min(GROUP_SIZES):
        raise Untold("too few different references for a group of wrong ones")
    return [apart[number % len(apart)] for number in range(min(len(apart), max(GROUP_SIZES)))]


def _group(place: TaskPlace, returns: list[float]) -> RewardGroup:
    return RewardGroup(str(place), str(place), returns)


def _dead(bench: Bench, groups: Sequence[RewardGroup]) -> CheckVerdict:
    sizes = [size for size in GROUP_SIZES if size <= max(len(group.rewards) for group in groups)]
    if not sizes:
        raise Untold(f"no group has {min(GROUP_SIZES)} rollouts")
    _, tasks, rewards = zip(*groups, strict=True)
    rates = tie_counts(rewards, clusters=tasks).intervals(bench.rng("ties"), sizes=sizes)
    dead = {size: rates[f"zero_advantage_probability_{size}"] for size in sizes}
    shown = ", ".join(f"{rate.value:.2f} of {size}" for size, rate in dead.items())
    pairs = rates["reward_tie_pair_rate"]
    found = f"groups without advantage: {shown}; tied pairs {pairs.value:.2f}"
    rate = dead[_USUAL if _USUAL in sizes else sizes[0]]
    return CheckVerdict(rate.value <= bench.settings.ties, found, rate)


@check("statistical.variance_bound", "teaches", Severity.PROPERTY, after=_REACH)
def variance_bound(bench: Bench) -> CheckVerdict:
    """Rewards of a group spread by a hundredth of the range at least, and by no more than it."""
    groups = bench.once(_groups)
    everything = [value for group in groups for value in group.rewards]
    low, high = bench.source.facts.declared or (min(everything), max(everything))
    reach = high - low or 1.0
    spread = mean_estimate([float(np.std(group.rewards)) / reach for group in groups])
    found = f"mean standard deviation {spread} of the range"
    return CheckVerdict(0.01 <= spread.value <= 1.0, found, spread)


@check("statistical.headroom", "teaches", Severity.PROPERTY, "play", "right answers")
def headroom(bench: Bench) -> CheckVerdict:
    """A solution earns more than the policy of `--policy`; the rule of a textbook may earn as much.

    The policy is a script of ours unless another one is named. The id is OpenEnv's.
    """
    groups = bench.once(_groups)
    left = [1.0 - bench.share(group.rewards).value for group in groups]
    share = mean_estimate(left, (0.0, 1.0))
    whose = " (a script of ours)" if bench.settings.policy in SCRIPTED else ""
    found = f"a solution earns {share} of the range more than {bench.settings.policy}{whose}"
    return CheckVerdict(share.low > 0.0, found, share)


@check("statistical.difficulty_separation", "teaches", Severity.PROPERTY, "play", "harder")
def difficulty_separation(bench: Bench) -> CheckVerdict:
    """The policy earns less at the harder setting."""
    if bench.settings.policy in SCRIPTED:
        raise Untold("no script finds a Task hard: name a model by --policy")
    assert bench.harder is not None
    bench.harder.expect(1)
    bench.harder.begin("statistical.difficulty_separation")
    groups, others = bench.once(_groups), bench.harder.once(_groups)
    means = ([fmean(group.rewards) for group in played] for played in (groups, others))
    usual, harder = map(mean_estimate, means)
    lead = usual.value - harder.value
    half = math.hypot(usual.high - usual.value, harder.high - harder.value)
    estimate = Estimate(lead, lead - half, lead + half, len(groups) + len(others))
    found = f"{usual.value:.3g} at the usual setting, {harder.value:.3g} at the harder one"
    return CheckVerdict(estimate.low > 0.0, found, estimate)


def _groups(bench: Bench) -> list[RewardGroup]:
    """Return groups of returns, recorded or of the policy that was named.

    Raises:
        Untold: if no group has two rewards.
    """
    if not bench.source.rollouts:
        who, size, places = player(bench.settings.policy), max(GROUP_SIZES), bench.chosen
        played = ([bench.earned(at, who(bench, at, n)) for n in range(size)] for at in places)
        return [*map(_group, places, played)]
    recorded = reward_groups(bench.source.rollouts)
    groups = [group for group in recorded if len(group.rewards) > 1]
    if not groups:
        raise Untold("no group has two recorded rewards")
    return groups
