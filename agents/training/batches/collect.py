"""Batches from rollouts: groups sampled, judged, filtered, replaced, and given their advantages."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from tokengym.agents.training.batches.filtering import (
    GroupSignal,
    counts,
    further_groups,
    judge,
    tie_levels,
)
from tokengym.agents.training.batches.sampling import PolicySampler, SeededRollouts
from tokengym.agents.training.config import Algorithm
from tokengym.agents.training.earlier_runs import opponent_labels
from tokengym.agents.training.loop import BatchLoss, StepBatch
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.spec import WorldSpec
from tokengym.rewards.arrays import Floats
from tokengym.rewards.estimators import ESTIMATORS

_SPARES_A_STEP = 1024
"""Distance between the further Tasks of one step and those of the next: a resumed step plays the
same ones again."""


@dataclass(frozen=True)
class _Rollouts:
    """Rollouts of one Task with their records, of all roles or of one, and the greedy one."""

    builder: EnvGroupBuilder
    rolled: TrajectoryGroup
    records: Sequence[RolloutRecord] = ()
    greedy: TrajectoryGroup | None = None
    role: str | None = None

    @property
    def greedy_tokens(self) -> int:
        """Tokens read and sampled by the greedy rollout."""
        return tokens_of(self.greedy) if self.greedy else 0

    @property
    def cost(self) -> int:
        """Tokens read and sampled, those of the greedy rollout included."""
        return tokens_of(self.rolled) + self.greedy_tokens

    @property
    def greedy_return(self) -> float:
        """Return of the greedy rollout; 0 if there was none."""
        return float(self.greedy.get_total_rewards()[0]) if self.greedy else 0.0

    def by_role(self) -> "list[_Rollouts]":
        """Return the rollouts that are compared with each other: those of one role each."""
        builder = self.builder
        roles = builder.role if isinstance(builder, TaskGroupBuilder) else None
        if not isinstance(roles, tuple):
            return [replace(self, role=roles)]
        alone = split_roles(self.greedy, roles) if self.greedy else {}
        return [
            replace(self, role=role, rolled=group, greedy=alone.get(role))
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
        specs: of the worlds by id; where in a world's range of returns groups tie is counted for
            these alone.

    Raises:
        OptionError: if groups are to be replaced and there are no others.
    """

    config: Config
    algorithm: Algorithm
    dataset: RLDataset
    spare: RLDataset | None = None
    seed: int = 0
    kept: TrainRollouts | None = None
    specs: Mapping[str, WorldSpec] = field(default_factory=dict)
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
        verdicts = self._judge(groups)
        sent = [
            n
            for n, verdict in enumerate(verdicts)
            if self.algorithm.filter == "keep" or verdict is GroupSignal.LIVE
        ]
        metrics = compute_trajectory_metrics(
            [group.rolled for group in own], [group.builder.logging_tags() for group in own]
        )
        metrics |= self._count(groups, verdicts, sent)
        metrics |= {
            "groups/further": float(len(groups) - first),
            "groups/further_live": float(verdicts[first:].count(GroupSignal.LIVE)),
            "groups/missing": float(max(0, first - verdicts.count(GroupSignal.LIVE))),
            "groups/budget_ended": float(budget_ended),
            "tokens/further": float(sum(group.cost for group in further)),
            "tokens/greedy": float(sum(group.greedy_tokens for group in (*own, *further))),
        }
        data: list[tinker.Datum] = []
        sizes_of_roles: list[Floats] = []
        advantage_of: dict[int, float] = {}
        for role in dict.fromkeys(group.role for group in groups):
            here = [n for n, group in enumerate(groups) if group.role == role]
            live = sum(verdicts[n] is GroupSignal.LIVE for n in here)
            size = sum(n < first for n in here)
            scale = size / live if live and self.algorithm.denominator == "live" else 1.0
            chosen = [groups[n] for n in sent if groups[n].role == role]
            advantages_NGT = advantages(self.algorithm, _table(chosen)) * scale
            sizes_of_roles.append(np.abs(advantages_NGT).ravel())
            advantage_of |= _mean_advantages(chosen, advantages_NGT)
            data += _data(chosen, advantages_NGT)
            metrics["loss/scale"] = scale
        sizes = np.concatenate(sizes_of_roles)
        if sizes.size:
            metrics["advantage/mean_absolute"] = float(sizes.mean())
            metrics["advantage/largest"] = float(sizes.max())
        self._keep(step, (*own, *further), advantage_of)
        return StepBatch(data, metrics)

    def _keep(
        self, step: int, groups: Sequence[_Rollouts], advantage_of: Mapping[int, float]
    ) -> None:
        if self.kept is not None:
            self.kept.write(step, _kept_records(self.kept, step, groups, advantage_of))

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
        return sum(GroupSignal.LIVE in self._judge(group.by_role()) for group in groups)

    async def _roll(
        self,
        builders: Sequence[EnvGroupBuilder],
        client: tinker.SamplingClient,
        key: tuple[str | int, ...],
    ) -> list[_Rollouts]:
        sampling, greedy = (
            PolicySampler(TinkerTokenCompleter(client, self.config.max_tokens, temperature))
            for temperature in (self.config.temperature, 0.0)
        )

        async def roll(builder: EnvGroupBuilder, number: int) -> _Rollouts:
            records: list[RolloutRecord] = []
            recorded = builder
            if self.kept is not None and isinstance(builder, TaskGroupBuilder):
                # Worlds of a mixture have opponents of their own.
                opponents = opponent_labels(builder.opponents)
                origin = replace(self.kept.origin, opponents=opponents)
                recorded = replace(builder, origin=origin, record=records.extend)
            plays = [self._play(recorded, sampling, (*key, number))]
            if with_greedy and isinstance(builder, TaskGroupBuilder):
                plays.append(self._play(replace(builder, group_size=1), greedy, key))
            rolled, *alone = await asyncio.gather(*plays)
            self._require_credit(rolled)
            return _Rollouts(builder, rolled, records, alone[0] if alone else None)

        with_greedy = ESTIMATORS[self.algorithm.estimator].needs_greedy
        for builder in builders if with_greedy else ():
            if not isinstance(builder, TaskGroupBuilder):
                raise OptionError(
                    f"estimator={self.algorithm.estimator!r} plays a Task once more, greedily, and "
                    f"needs groups of one Task, got {type(builder).__name__}"
                )
        return list(await asyncio.gather(*map(roll, builders, range(len(builders)))))

    async def _play(
        self,
        builder: EnvGroupBuilder,
        sampler: PolicySampler,
        key: tuple[str | int, ...],
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

    def _judge(self, groups: Sequence[_Rollouts]) -> list[GroupSignal]:
        return judge(spreads(self.algorithm, _table(groups)), self.algorithm.min_spread)

    def _count(
        self, groups: Sequence[_Rollouts], verdicts: Sequence[GroupSignal], sent: Sequence[int]
    ) -> dict[str, float]:
        """Count the groups by verdict, and those that are left out by the reason."""
        numbers = {"drawn": float(len(groups)), "trained": float(len(sent))} | counts(verdicts)
        sent_places = set(sent)
        dropped = counts([verdict for n, verdict in enumerate(verdicts) if n not in sent_places])
        numbers |= {
            f"dropped_{reason}": dropped[reason]
            for reason in (GroupSignal.TIE, GroupSignal.RESOLUTION)
        }
        levels = Counter[str]()
        for group, verdict in zip(groups, verdicts, strict=True):
            builder = group.builder
            world = builder.task.world if isinstance(builder, TaskGroupBuilder) else ""
            if (world_spec := self.specs.get(world)) is not None:
                range_ = world_spec.return_range[group.role or world_spec.roles[0]]
                mean = float(np.mean(group.rolled.get_total_rewards()))
                levels.update(tie_levels(verdict, mean, range_))
        return {f"groups/{name}": float(value) for name, value in (numbers | levels).items()}


def _table(groups: Sequence[_Rollouts]) -> TurnTable:
    return turn_table([group.rolled for group in groups], [group.greedy_return for group in groups])


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
