"""Self-play with a policy of its own for every role: as many training clients, one loop."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tinker
from tinker_cookbook.completers import TinkerTokenCompleter, TokenCompleter
from tinker_cookbook.rl.data_processing import assemble_training_data, compute_advantages
from tinker_cookbook.rl.metric_util import compute_trajectory_metrics
from tinker_cookbook.rl.metrics import compute_kl_sample_train
from tinker_cookbook.rl.rollout_strategy import RolloutResult, RolloutStrategy
from tinker_cookbook.rl.rollouts import do_group_rollout, do_single_rollout
from tinker_cookbook.rl.train import Config, train_step
from tinker_cookbook.rl.types import EnvGroupBuilder, TrajectoryGroup
from tinker_cookbook.utils import logtree, ml_log

from tokengym.agents.tinker.env import Member
from tokengym.agents.tinker.role_baselines import split_roles
from tokengym.agents.training.session import Learner, learner, training_session


@dataclass(frozen=True)
class ByRole(RolloutStrategy):
    """Samples each member from the policy of its role; any error ends the group.

    Attributes:
        policies: of each role.
    """

    policies: Mapping[str, TokenCompleter]

    async def execute(
        self, env_group_builder: EnvGroupBuilder, policy: TokenCompleter
    ) -> RolloutResult:
        """Roll a group out; `policy` speaks for nobody."""
        members = [env for env in await env_group_builder.make_envs() if isinstance(env, Member)]
        rollouts = await asyncio.gather(
            *(do_single_rollout(self.policies[member.role], member) for member in members)
        )
        return RolloutResult(list(rollouts), members, [])


@dataclass
class _Policy:
    """One role's policy, on its way, and what samples from it as it is."""

    learner: Learner
    sampler: tinker.SamplingClient


async def train_separately(config: Config, roles: Sequence[str]) -> None:
    """Train one policy a role on the same episodes, each on its own role's returns.

    The run folder has the cookbook's `config.json` and `metrics.jsonl`, and for each role a folder
    of that name with its `checkpoints.jsonl`. A run that is there is gone on with: every policy
    from its last checkpoint. Where the run was killed between the saving of two policies, one of
    them is a step ahead of the other, and stays so.

    Metrics: those of self-play, and for each role `ROLE/optim/...` and `ROLE/kl_...`.

    Args:
        config: as for the cookbook's loop; its dataset's groups train `roles`.
        roles: the trained roles.
    """
    log = ml_log.setup_logging(log_dir=config.log_path, config=config)
    async with training_session(config) as service:
        dataset, _ = await config.dataset_builder()
        policies = {role: await _policy(service, config, role) for role in roles}
        steps = range(min(one.learner.start for one in policies.values()), len(dataset))
        for step in steps:
            began = time.monotonic()
            builders = dataset.get_batch(step)
            groups = await _rolled(builders, config, policies)
            sampled = time.monotonic()
            by_role = [split_roles(group, roles) for group in groups]
            updates = await asyncio.gather(
                *(_update(policies[role], [one[role] for one in by_role], config) for role in roles)
            )
            for policy in policies.values():
                await policy.learner.checkpoints.maybe_save_async(step + 1, {"batch": step + 1})
            metrics = compute_trajectory_metrics(groups, [one.logging_tags() for one in builders])
            for role, told in zip(roles, updates, strict=True):
                metrics |= {f"{role}/{name}": value for name, value in told.items()}
            metrics |= {
                "progress/batch": step,
                "progress/done_frac": (step + 1) / steps.stop,
                "optim/lr": config.learning_rate,
                "time/sampling": sampled - began,
                "time/total": time.monotonic() - began,
            }
            log.log_metrics(metrics, step=step)
        for policy in policies.values():
            await policy.learner.finish(steps)
    log.close()


async def _policy(service: tinker.ServiceClient, config: Config, role: str) -> _Policy:
    """Return a role's policy as it was at its last checkpoint, or new."""
    folder = Path(config.log_path) / role
    folder.mkdir(exist_ok=True)
    found = await learner(service, config, folder)
    return _Policy(found, await found.client.save_weights_and_get_sampling_client_async())


async def _rolled(
    builders: Sequence[EnvGroupBuilder], config: Config, policies: Mapping[str, _Policy]
) -> list[TrajectoryGroup]:
    speakers: dict[str, TokenCompleter] = {
        role: TinkerTokenCompleter(policy.sampler, config.max_tokens, config.temperature)
        for role, policy in policies.items()
    }
    strategy, unused = ByRole(speakers), TokenCompleter()

    async def roll(builder: EnvGroupBuilder) -> TrajectoryGroup:
        with logtree.optional_enable_logging(False):
            return await do_group_rollout(builder, unused, strategy=strategy)

    return list(await asyncio.gather(*(roll(builder) for builder in builders)))


async def _update(policy: _Policy, groups: list[TrajectoryGroup], config: Config) -> dict[str, Any]:
    """Train a role's policy on its own rollouts; what it became samples from now on."""
    metrics: dict[str, Any] = {}
    client = policy.learner.client
    data, _ = assemble_training_data(groups, compute_advantages(groups))
    if data:
        logprobs = await train_step(
            data,
            client,
            config.learning_rate,
            config.num_substeps,
            config.loss_fn,
            config.loss_fn_config,
            metrics,
        )
        metrics |= compute_kl_sample_train(data, logprobs)
        policy.sampler = await client.save_weights_and_get_sampling_client_async()
    return metrics
