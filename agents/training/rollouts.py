"""Drawing a step's groups: sampled, judged, filtered, replaced, and given their advantages."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import tinker
from tinker_cookbook.completers import TokenCompleter
from tinker_cookbook.rl.metric_util import compute_trajectory_metrics
from tinker_cookbook.rl.rollouts import do_group_rollout
from tinker_cookbook.rl.train import Config
from tinker_cookbook.rl.types import EnvGroupBuilder, RLDataset, TrajectoryGroup
from tinker_cookbook.utils import logtree, trace

from tokengym.agents.tinker.groups import TaskGroupBuilder
from tokengym.agents.training.algorithm import Choices
from tokengym.agents.training.credit import advantages, spreads
from tokengym.agents.training.datums import CREDIT, played, rollout_data, tokens_of
from tokengym.agents.training.filtering import (
    Verdict,
    counts,
    further_groups,
    judge,
    tie_levels,
)
from tokengym.agents.training.sampling import PromptSampler
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import spec
from tokengym.rewards.advantages import Floats

_SPARES_A_STEP = 1024
"""Distance between the further Tasks of one step and those of the next: a resumed step draws the
same ones again."""


@dataclass(frozen=True)
class Drawn:
    """What a step trains on.

    Attributes:
        data: for each rollout that is sent, with masks.
        metrics: what was drawn, what became of it and why.
    """

    data: Sequence[tinker.Datum]
    metrics: dict[str, float]


@dataclass(frozen=True)
class _Group:
    """One group as it was rolled out, and what it cost."""

    builder: EnvGroupBuilder
    rolled: TrajectoryGroup
    tokens: int
    greedy: float = 0.0
    greedy_tokens: int = 0


class Drawer:
    """Draws the groups of a step.

    Args:
        config: how replies are sampled.
        choices: what is made of the groups.
        dataset: the groups of every step.
        spare: groups one at a time, for `filter="resample"`.

    Raises:
        OptionError: if groups are to be replaced and there are no others.
    """

    def __init__(
        self, config: Config, choices: Choices, dataset: RLDataset, spare: RLDataset | None
    ) -> None:
        if choices.filter == "resample" and spare is None:
            raise OptionError("filter='resample' needs a dataset of further groups, got none")
        self._config = config
        self._choices = choices
        self._dataset = dataset
        self._spare = spare

    async def draw(self, step: int, client: tinker.SamplingClient) -> Drawn:
        """Draw a step's groups with a policy.

        Metrics under `env/` are those of the cookbook's loop, over the step's own groups as they
        were drawn: no filter flatters them.
        """
        batch = list(self._dataset.get_batch(step))
        self._require_one_role(batch)
        async with trace.scope_span("sampling"):
            own = await self._roll(batch, client)
            further, budget_ended = await self._replace(step, own, client)
        groups = [*own, *further]
        verdicts = self._judge(groups)
        kept = [
            n
            for n, verdict in enumerate(verdicts)
            if self._choices.filter == "keep" or verdict is Verdict.LIVE
        ]
        live = verdicts.count(Verdict.LIVE)
        scale = len(batch) / live if live and self._choices.denominator == "live" else 1.0
        advantages_KGT = self._advantages([groups[n] for n in kept]) * scale
        data = [
            datum
            for n, advantages_GT in zip(kept, advantages_KGT, strict=True)
            for rollout, advantages_T in zip(
                groups[n].rolled.trajectories_G, advantages_GT.tolist(), strict=False
            )
            for datum in rollout_data(rollout, advantages_T[: len(rollout.transitions)])
        ]
        metrics = compute_trajectory_metrics(
            [group.rolled for group in own], [group.builder.logging_tags() for group in own]
        )
        metrics |= self._tell(groups, verdicts, kept)
        metrics |= {
            "groups/further": float(len(further)),
            "groups/further_live": float(verdicts[len(own) :].count(Verdict.LIVE)),
            "groups/missing": float(max(0, len(batch) - live)),
            "groups/budget_ended": float(budget_ended),
            "tokens/further": float(sum(_cost(group) for group in further)),
            "loss/scale": scale,
        }
        if advantages_KGT.size:
            metrics["advantage/mean_absolute"] = float(np.abs(advantages_KGT).mean())
            metrics["advantage/largest"] = float(np.abs(advantages_KGT).max())
        return Drawn(data, metrics)

    async def _replace(
        self, step: int, own: Sequence[_Group], client: tinker.SamplingClient
    ) -> tuple[list[_Group], bool]:
        """Draw groups in place of dead ones; also says whether the budget ended that."""
        further: list[_Group] = []
        if self._choices.filter != "resample" or self._spare is None:
            return further, False
        budget = self._choices.resample_tokens
        if budget is None:
            budget = sum(_cost(group) for group in own)
        live, dearest = self._judge(own).count(Verdict.LIVE), max(_cost(group) for group in own)
        while live < len(own):
            spent = sum(_cost(group) for group in further)
            count = further_groups(len(own) - live, budget, spent, dearest)
            if not count:
                return further, True
            first = step * _SPARES_A_STEP + len(further)
            places = [place % len(self._spare) for place in range(first, first + count)]
            builders = [one for place in places for one in self._spare.get_batch(place)]
            new = await self._roll(builders, client)
            further += new
            live += self._judge(new).count(Verdict.LIVE)
            dearest = max(dearest, *(_cost(group) for group in new))
        return further, False

    async def _roll(
        self, builders: Sequence[EnvGroupBuilder], client: tinker.SamplingClient
    ) -> list[_Group]:
        config = self._config
        policy = PromptSampler(client, config.max_tokens, config.temperature)
        baseline = PromptSampler(client, config.max_tokens, 0.0)

        async def roll(builder: EnvGroupBuilder) -> _Group:
            rolled = await self._play(builder, policy)
            self._require_credit(rolled)
            return _Group(builder, rolled, tokens_of(rolled))

        async def roll_beside_greedy(builder: EnvGroupBuilder) -> _Group:
            if not isinstance(builder, TaskGroupBuilder):
                raise OptionError(
                    "estimator='remax' plays a Task once more, greedily, and needs groups of one "
                    f"Task, got {type(builder).__name__}"
                )
            group, greedy = await asyncio.gather(
                roll(builder), self._play(replace(builder, group_size=1), baseline)
            )
            (value,) = greedy.get_total_rewards()
            return replace(group, greedy=value, greedy_tokens=tokens_of(greedy))

        how = roll_beside_greedy if self._choices.estimator == "remax" else roll
        return list(await asyncio.gather(*(how(builder) for builder in builders)))

    async def _play(self, builder: EnvGroupBuilder, policy: TokenCompleter) -> TrajectoryGroup:
        with logtree.optional_enable_logging(False):
            return await do_group_rollout(
                builder,
                policy,
                strategy=self._config.effective_rollout_strategy(),
                termination=self._config.effective_termination(),
            )

    def _require_one_role(self, builders: Sequence[EnvGroupBuilder]) -> None:
        """Refuse what would compare members of different roles with each other."""
        seams = Choices(self._choices.estimator, self._choices.credit).beyond_cookbook()
        for builder in builders if seams else ():
            if isinstance(builder, TaskGroupBuilder) and isinstance(builder.role, tuple):
                raise OptionError(
                    f"{' and '.join(seams)} would compare the roles {list(builder.role)} with each "
                    "other: train several roles with estimator='group_centred' and credit='episode'"
                )

    def _require_credit(self, group: TrajectoryGroup) -> None:
        if self._choices.credit != "exact":
            return
        steps = [step for rollout in group.trajectories_G for step in rollout.transitions]
        if not all(CREDIT in step.metrics for step in steps):
            raise OptionError(
                "credit='exact' needs a world that reports the metric 'credit' at every turn, such "
                "as energy with credit=True"
            )

    def _judge(self, groups: Sequence[_Group]) -> list[Verdict]:
        turns = played([one.rolled for one in groups], [one.greedy for one in groups])
        return judge(spreads(self._choices, turns), self._choices.min_spread)

    def _advantages(self, groups: Sequence[_Group]) -> Floats:
        turns = played([one.rolled for one in groups], [one.greedy for one in groups])
        return advantages(self._choices, turns)

    def _tell(
        self, groups: Sequence[_Group], verdicts: Sequence[Verdict], kept: Sequence[int]
    ) -> dict[str, float]:
        """Count the groups by verdict, and what was sent and what was not by its reason."""
        found = {"drawn": float(len(groups)), "trained": float(len(kept))} | counts(verdicts)
        sent = set(kept)
        dropped = counts([verdict for n, verdict in enumerate(verdicts) if n not in sent])
        found |= {
            f"dropped_{reason}": dropped[reason] for reason in (Verdict.TIE, Verdict.RESOLUTION)
        }
        builder = groups[0].builder
        if isinstance(builder, TaskGroupBuilder):
            row = spec(builder.task.world)
            role = builder.role or row.roles[0]
            # Of several roles the first one's: every other one's returns are shifted to them.
            range_ = row.return_range[role if isinstance(role, str) else role[0]]
            means = [float(np.mean(one.rolled.get_total_rewards())) for one in groups]
            found |= tie_levels(verdicts, np.array(means), range_)
        metrics = {f"groups/{name}": value for name, value in found.items()}
        metrics["tokens/greedy"] = float(sum(one.greedy_tokens for one in groups))
        return metrics


def _cost(group: _Group) -> int:
    return group.tokens + group.greedy_tokens
