"""Batches from rollouts: groups sampled, judged, filtered, replaced, and given their advantages."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import tinker
from tinker_cookbook.completers import TinkerTokenCompleter
from tinker_cookbook.rl.metric_util import compute_trajectory_metrics
from tinker_cookbook.rl.rollout_strategy import FailFast
from tinker_cookbook.rl.rollouts import do_group_rollout
from tinker_cookbook.rl.train import Config
from tinker_cookbook.rl.types import EnvGroupBuilder, RLDataset, TrajectoryGroup
from tinker_cookbook.utils import logtree, trace

from tokengym.agents.rollouts import RolloutRecord, TrainRollouts
from tokengym.agents.tinker.groups import TaskGroupBuilder
from tokengym.agents.tinker.role_baselines import split_roles
from tokengym.agents.training.batches.credit import TurnTable, advantages, spreads
from tokengym.agents.training.batches.datums import (
    CREDIT,
    drift,
    rollout_data,
    tokens_of,
    turn_table,
)
from tokengym.agents.training.batches.sampling import PolicySampler, SeededRollouts
from tokengym.agents.training.config import Algorithm
from tokengym.agents.training.loop import BatchLoss, StepBatch
from tokengym.envs.core.errors import OptionError
from tokengym.rewards.arrays import Flags, Floats

_SPARES_A_STEP = 1024
"""Distance between the further Tasks of one step and those of the next: a resumed step plays the
same ones again."""


@dataclass(frozen=True)
class _Rollouts:
    """Rollouts of one Task with their records, of all roles or of one."""

    builder: EnvGroupBuilder
    rolled: TrajectoryGroup
    records: Sequence[RolloutRecord] = ()
    role: str | None = None

    @property
    def cost(self) -> int:
        """Tokens read and sampled."""
        return tokens_of(self.rolled)

    def by_role(self) -> "list[_Rollouts]":
        """Return the rollouts that are compared with each other: those of one role each."""
        builder = self.builder
        roles = builder.role if isinstance(builder, TaskGroupBuilder) else None
        if not isinstance(roles, tuple):
            return [replace(self, role=roles)]
        return [
            replace(self, role=role, rolled=group)
            for role, group in split_roles(self.rolled, roles).items()
        ]


@dataclass(frozen=True)
class RolloutCollector:
    """A source of batches: rollouts of a dataset's groups, with advantages.

    Attributes:
        config: how replies are sampled, and the loss.
        algorithm: what is made of the groups.
        dataset: the groups of every step.
        spare: groups one at a time, for `filter="resample"`.
        seed: of the replies.
        kept: keeps the rollouts; `None` to keep none.

    Raises:
        OptionError: if groups are to be replaced and there are no others.
    """

    config: Config
    algorithm: Algorithm
    dataset: RLDataset
    spare: RLDataset | None = None
    seed: int = 0
    kept: TrainRollouts | None = None
    on_policy = True

    def __post_init__(self) -> None:
        """Require a dataset of replacement groups."""
        if self.algorithm.filter == "resample" and self.spare is None:
            raise OptionError("filter='resample' needs a dataset of further groups, got none")

    @property
    def loss(self) -> BatchLoss:
        """The configuration's loss, measured by how far the policy has moved from the sampler."""
        return BatchLoss(self.config.loss_fn, drift, self.config.loss_fn_config)

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.dataset)

    async def batch(self, step: int, sampler: tinker.SamplingClient | None) -> StepBatch:
        """Roll out a step's groups and return the batch to train on.

        Metrics under `env/` are those of the cookbook's loop, over the step's own groups as they
        were rolled out: no filter flatters them.

        Args:
            step: the step.
            sampler: of the policy.
        """
        assert sampler is not None
        # In a thread: drawing a Task may take a solver.
        builders = list(await asyncio.to_thread(self.dataset.get_batch, step))
        async with trace.scope_span("sampling"):
            own = await self._roll(builders, sampler, (self.seed, step))
            further, budget_ended = await self._replace(step, own, sampler)
        groups = [part for group in own for part in group.by_role()]
        first = len(groups)
        groups += [part for group in further for part in group.by_role()]
        live_N = self._live(groups)
        sent_N = live_N | (self.algorithm.filter == "keep")
        metrics = compute_trajectory_metrics(
            [group.rolled for group in own], [group.builder.logging_tags() for group in own]
        )
        metrics |= {
            "groups/drawn": float(len(groups)),
            "groups/live": float(live_N.sum()),
            "groups/trained": float(sent_N.sum()),
            "groups/further": float(len(groups) - first),
            "groups/further_live": float(live_N[first:].sum()),
            "groups/missing": float(max(0, first - live_N.sum())),
            "groups/budget_ended": float(budget_ended),
            "tokens/further": float(sum(group.cost for group in further)),
        }
        data: list[tinker.Datum] = []
        sizes_of_roles: list[Floats] = []
        advantage_of: dict[int, float] = {}
        for role in dict.fromkeys(group.role for group in groups):
            here = [n for n, group in enumerate(groups) if group.role == role]
            live = int(live_N[here].sum())
            size = sum(n < first for n in here)
            scale = size / live if live and self.algorithm.denominator == "live" else 1.0
            chosen = [groups[n] for n in here if sent_N[n]]
            advantages_NGT = advantages(self.algorithm, _table(chosen)) * scale
            sizes_of_roles.append(np.abs(advantages_NGT).ravel())
            advantage_of |= _mean_advantages(chosen, advantages_NGT)
            data += _data(chosen, advantages_NGT)
            metrics["loss/scale"] = scale
        sizes = np.concatenate(sizes_of_roles)
        if sizes.size:
            metrics["advantage/mean_absolute"] = float(sizes.mean())
            metrics["advantage/largest"] = float(sizes.max())
        if self.kept is not None:
            kept = _kept_records(self.kept, step, (*own, *further), advantage_of)
            self.kept.write(step, kept)
        return StepBatch(data, metrics)

    async def _replace(
        self, step: int, own: Sequence[_Rollouts], sampler: tinker.SamplingClient
    ) -> tuple[list[_Rollouts], bool]:
        """Roll out groups instead of dead ones; also returns whether the budget ran out.

        A Task is replaced if it is dead in every role.
        """
        further: list[_Rollouts] = []
        spare = self.spare
        if self.algorithm.filter != "resample" or spare is None:
            return further, False
        budget = self.algorithm.resample_tokens
        if budget is None:
            budget = sum(group.cost for group in own)
        live, most = self._live_tasks(own), max(group.cost for group in own)
        while live < len(own):
            spent = sum(group.cost for group in further)
            count = further_groups(len(own) - live, budget, spent, most)
            if not count:
                return further, True
            first = step * _SPARES_A_STEP + len(further)
            places = [place % len(spare) for place in range(first, first + count)]
            batches = chain.from_iterable(map(spare.get_batch, places))
            builders = await asyncio.to_thread(list, batches)
            new = await self._roll(builders, sampler, (self.seed, step, "further", first))
            further += new
            live += self._live_tasks(new)
            most = max(most, *(group.cost for group in new))
        return further, False

    def _live_tasks(self, groups: Sequence[_Rollouts]) -> int:
        return sum(bool(self._live(group.by_role()).any()) for group in groups)

    async def _roll(
        self,
        builders: Sequence[EnvGroupBuilder],
        client: tinker.SamplingClient,
        key: tuple[str | int, ...],
    ) -> list[_Rollouts]:
        completer = TinkerTokenCompleter(client, self.config.max_tokens, self.config.temperature)
        sampler = PolicySampler(completer)

        async def roll(builder: EnvGroupBuilder, number: int) -> _Rollouts:
            records: list[RolloutRecord] = []
            recorded = builder
            if self.kept is not None and isinstance(builder, TaskGroupBuilder):
                recorded = replace(builder, origin=self.kept.origin, record=records.extend)
            rolled = await self._play(recorded, sampler, (*key, number))
            self._require_credit(rolled)
            return _Rollouts(builder, rolled, records)

        return list(await asyncio.gather(*map(roll, builders, range(len(builders)))))

    async def _play(
        self, builder: EnvGroupBuilder, sampler: PolicySampler, key: tuple[str | int, ...]
    ) -> TrajectoryGroup:
        strategy = self.config.effective_rollout_strategy()
        if isinstance(strategy, FailFast | SeededRollouts):
            strategy = SeededRollouts(key, sampler)
        with logtree.optional_enable_logging(False):
            return await do_group_rollout(
                builder,
                sampler.completer,
                strategy=strategy,
                termination=self.config.effective_termination(),
            )

    def _require_credit(self, group: TrajectoryGroup) -> None:
        if self.algorithm.credit != "exact":
            return
        steps = [step for rollout in group.trajectories_G for step in rollout.transitions]
        if not all(CREDIT in step.metrics for step in steps):
            raise OptionError(
                "credit='exact' needs a world that reports the metric 'credit' at every turn, such "
                "as energy or forecast with credit=True"
            )

    def _live(self, groups: Sequence[_Rollouts]) -> Flags:
        """Return which groups have a signal, shape (N,)."""
        return np.asarray(spreads(self.algorithm, _table(groups)) > self.algorithm.min_spread)


def further_groups(missing: int, budget: int, spent: int, most_expensive: int) -> int:
    """Return how many groups to roll out next in place of dead ones.

    As long as no group costs more than `most_expensive`, what is spent never exceeds the budget.

    Args:
        missing: live groups the batch lacks.
        budget: most tokens that may be spent on further groups.
        spent: tokens spent on them so far.
        most_expensive: tokens of the most expensive group so far.
    """
    left = max(0, budget - spent)
    return min(missing, left // most_expensive) if most_expensive > 0 else missing


def _table(groups: Sequence[_Rollouts]) -> TurnTable:
    return turn_table([group.rolled for group in groups])


def _data(groups: Sequence[_Rollouts], advantages_NGT: Floats) -> list[tinker.Datum]:
    return [
        datum
        for group, advantages_GT in zip(groups, advantages_NGT, strict=True)
        for rollout, advantages_T in zip(
            group.rolled.trajectories_G, advantages_GT.tolist(), strict=False
        )
        for datum in rollout_data(rollout, advantages_T[: len(rollout.transitions)])
    ]


def _mean_advantages(groups: Sequence[_Rollouts], advantages_NGT: Floats) -> dict[int, float]:
    """Return the mean advantage of each rollout over its turns, by the trajectory's identity."""
    return {
        id(rollout): float(advantages_T[: len(rollout.transitions)].mean())
        for group, advantages_GT in zip(groups, advantages_NGT, strict=True)
        for rollout, advantages_T in zip(group.rolled.trajectories_G, advantages_GT, strict=False)
    }


def _kept_records(
    saver: TrainRollouts, step: int, groups: Sequence[_Rollouts], advantage_of: Mapping[int, float]
) -> list[RolloutRecord]:
    """Return the records of the groups to keep; untrained rollouts have advantage 0."""
    return [
        replace(
            record,
            origin=replace(record.origin, step=step, group=origin.group, kept=origin.kept),
            advantage=advantage_of.get(id(rollout), 0.0),
        )
        for origin, group in zip(saver.origins(step, len(groups)), groups, strict=False)
        for record, rollout in zip(group.records, group.rolled.trajectories_G, strict=False)
    ]
