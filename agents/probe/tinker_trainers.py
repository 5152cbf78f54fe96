"""Loops on Tinker's protocol, probed over the local service: the cookbook's and our own.

Both play the same groups, whose rewards come by order of arrival or for what was written, and start
from an adapter that is not zero: where B is, the gradient of A would be.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import chz
import numpy as np
import tinker
from tinker_cookbook import checkpoint_utils
from tinker_cookbook.rl import train as cookbook
from tinker_cookbook.rl import types as rl

from tokengym.agents.probe.adapted import Adapted, adapter_checkpoint
from tokengym.agents.probe.campaign import ALL_WORLDS, REFERENCE, ProbedTrainer, require_known
from tokengym.agents.probe.policy import VOCABULARY, Checkpoint, tiny_model, write_tiny_model
from tokengym.agents.probe.rollouts import ProbeRollout
from tokengym.agents.probe.steps import Training
from tokengym.agents.probe.worlds import (
    FEW,
    TEXT,
    WORLDS,
    DesignedWorld,
    designed_return,
    designed_rollouts,
    turn_rewards,
)
from tokengym.agents.service.engine.adapters import LoraSpec, LoraWeights
from tokengym.agents.service.engine.checkpoints import CheckpointPath, CheckpointStore
from tokengym.agents.training.batches.collect import RolloutCollector
from tokengym.agents.training.batches.datums import laid_out
from tokengym.agents.training.config import Algorithm
from tokengym.agents.training.connection import Connection, ServiceTarget
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.loop import train
from tokengym.agents.training.policy_trainer import service_session
from tokengym.rewards.estimators import ESTIMATORS

OWN: Mapping[str, Mapping[str, str]] = {
    **{name: {"estimator": name} for name in ESTIMATORS if name != Algorithm().estimator},
    "by turn": {"credit": "turn"},
    "exact credit": {"credit": "exact"},
    "ties dropped": {"filter": "drop", "denominator": "live"},
}
"""Settings of our loop."""
_GROUP, _RANK, _MAX_TOKENS = 4, 4, 6
_QUIET: Mapping[str, Any] = {
    **{"eval_every": 0, "save_every": 0, "num_groups_to_log": 0, "rollout_json_export": False},
    "max_tokens": _MAX_TOKENS,
}
_STOP = list(range(3, VOCABULARY, 4))
"""So many that replies differ in length."""


Loop = Callable[[cookbook.Config, rl.RLDataset, Mapping[str, Any], int], Coroutine[Any, Any, None]]


async def _cookbook(
    config: cookbook.Config, groups: rl.RLDataset, settings: Mapping[str, Any], seed: int
) -> None:
    await cookbook.main(chz.replace(config, **settings))


async def _own(
    config: cookbook.Config, groups: rl.RLDataset, settings: Mapping[str, Any], seed: int
) -> None:
    source = RolloutCollector(config, Algorithm(**settings), groups, seed=seed)
    await train(config, source, RunFolder(Path(config.log_path)), seed)


@contextmanager
def open_trainer(name: str, folder: Path, settings: Mapping[str, Any]) -> Iterator[ProbedTrainer]:
    """Yield a loop, to be run on the tiny model over a local service.

    Args:
        name: `cookbook` or `own`.
        folder: for the model, the service and what the loop writes.
        settings: of the cookbook's `Config` or our `Algorithm`, to be run instead of the others;
            none if empty.
    """
    columns: dict[str, Mapping[str, Any]] = {"yours": settings} if settings else {"default": {}}
    loop, title = _own, "tokengym train"
    if name == "cookbook":
        loop, title = _cookbook, f"tinker_cookbook.rl.train.main {version('tinker-cookbook')}"
    elif not settings:
        columns |= OWN
    owner = cookbook.Config if name == "cookbook" else Algorithm
    require_known(settings, inspect.signature(owner).parameters, owner.__qualname__)
    runs = [(next(iter(columns)), REFERENCE), *((column, ALL_WORLDS) for column in columns)]
    write_tiny_model(folder / "model")
    options = {"threads": 1}
    target = ServiceTarget(str(folder / "model"), None, local=True, options=options)
    with Connection.open(target, folder / "service", seed=0) as connection:
        yield ProbedTrainer(title, columns, runs, _Runs(folder, connection, loop).run)


class _Episode(rl.Env):
    """A rollout that notes what it was told and what it earned."""

    def __init__(self, world: DesignedWorld, number: int, prompt: tuple[int, ...]) -> None:
        self.world, self.number, self.prompt = world, number, prompt
        self.completion: list[int] = []
        self.mask: list[int] = []
        self.rewards: list[float] = []
        # Its group pays it, when all are done.
        self.by_group = world.name in TEXT

    async def initial_observation(self) -> tuple[tinker.ModelInput, list[int]]:
        return tinker.ModelInput.from_ints([*self.prompt, *self.completion]), _STOP

    async def step(self, action: list[int], *, extra: Any = None) -> rl.StepResult:
        self.completion += action
        self.mask += [1] * len(action)
        turn, done = len(self.rewards), len(self.rewards) + 1 == self.world.turns
        reward = designed_return(self.world, self.number, _GROUP, self.completion)
        self.rewards.append(turn_rewards(self.world, self.number, reward)[turn])
        if not done:
            self.completion += np.random.default_rng(sum(action)).integers(3, 99, 3).tolist()
            self.mask += [0] * 3
        paid, credit = 0.0 if self.by_group else self.rewards[-1], self.rewards[-1]
        return rl.StepResult(paid, done, *await self.initial_observation(), {"credit": credit})

    def rollout(self) -> ProbeRollout:
        of_turns = tuple(self.rewards) if self.world.turn_rewards else None
        ids, mask, whole = tuple(self.completion), tuple(self.mask), sum(self.rewards)
        name = self.world.name
        return ProbeRollout(self.prompt, ids, mask, whole, name, turn_rewards=of_turns)


@dataclass(frozen=True)
class _Group(rl.EnvGroupBuilder):
    """The rollouts of a world; `played` takes them when all are done."""

    world: DesignedWorld
    prompt: tuple[int, ...]
    played: dict[str, list[ProbeRollout]] = field(compare=False)

    async def make_envs(self) -> Sequence[rl.Env]:
        return [_Episode(self.world, number, self.prompt) for number in range(_GROUP)]

    async def compute_group_rewards(
        self, trajectory_group: list[rl.Trajectory], env_group: Sequence[rl.Env]
    ) -> list[tuple[float, rl.Metrics]]:
        episodes = [env for env in env_group if isinstance(env, _Episode)]
        self.played[self.world.name] = [one.rollout() for one in episodes]
        return [(sum(one.rewards) if one.by_group else 0.0, {}) for one in episodes]


@dataclass(frozen=True)
class _Groups(rl.RLDataset):
    """One batch."""

    builders: Sequence[_Group]

    def get_batch(self, index: int) -> Sequence[rl.EnvGroupBuilder]:
        return self.builders

    def __len__(self) -> int:
        return 1


@chz.chz
class _GroupsBuilder(rl.RLDatasetBuilder):
    groups: Any

    async def __call__(self) -> tuple[rl.RLDataset, rl.RLDataset | None]:
        return self.groups, None


@dataclass(frozen=True)
class _Runs:
    """Runs of a loop on one service."""

    folder: Path
    connection: Connection
    loop: Loop

    def run(self, case: str, settings: Mapping[str, Any], seed: int) -> Training:
        """Run a case."""
        start = asyncio.run(self._start(seed))
        played: dict[str, list[ProbeRollout]] = {}
        # Twins cannot be sampled.
        worlds = [w for w in (WORLDS if case == ALL_WORLDS else FEW) if not w.twins]
        prompts = [one.prompt_ids for one in designed_rollouts(seed, 2, worlds)[::2]]
        pairs = zip(worlds, prompts, strict=True)
        groups = _Groups([_Group(world, prompt, played) for world, prompt in pairs])
        log = self.folder / "runs" / str(sum(1 for _ in (self.folder / "runs").glob("*")))
        name = self.connection.model
        base = cookbook.KLReferenceConfig(base_model=name) if case == REFERENCE else None
        given: dict[str, Any] = {
            **{"load_checkpoint_path": start, "log_path": str(log), "model_name": name},
            **{"base_url": self.connection.base_url, "kl_reference_config": base},
            **{"kl_penalty_coef": 0.1 if base else 0.0, "learning_rate": 1e-3},
            **{"dataset_builder": _GroupsBuilder(groups=groups), "recipe_name": "probe"},
        }
        config = cookbook.Config(**given, **_QUIET)
        asyncio.run(self.connection.guard(self.loop(config, groups, settings, seed)))
        last = checkpoint_utils.get_last_checkpoint(str(log))
        assert last is not None
        (before, spec), (after, _) = self._checkpoint(start), self._checkpoint(last.state_path)
        weights = before.weights
        zeros = {name: value * name.endswith("A") for name, value in weights.items()}
        model, kept = Adapted(tiny_model(), weights, spec.scaling), [Checkpoint(weights, {}), after]
        rollouts = [one for world in worlds for one in played[world.name]]
        reference = Checkpoint(zeros, {}) if case == REFERENCE else None
        return Training(model, rollouts, kept, reference=reference)

    async def _start(self, seed: int) -> str:
        """Return the state of an adapter after a step in a random direction."""
        rng = np.random.default_rng(seed)
        async with service_session(self.connection.base_url) as service:
            client = await service.create_lora_training_client(
                self.connection.model, rank=_RANK, seed=seed
            )
            tokens = rng.integers(3, VOCABULARY, 40).tolist()
            datum = laid_out(tokens, weights=[0.0, *rng.normal(size=39)])
            await client.forward_backward([datum], "cross_entropy")
            await client.optim_step(tinker.AdamParams(learning_rate=0.02))
            saved = client.save_state(f"start-{seed}", overwrite=True)
            return str((await saved).path)

    def _checkpoint(self, uri: str) -> tuple[Checkpoint, LoraSpec]:
        store = CheckpointStore(self.folder / "service")
        tensors, info = store.load(CheckpointPath.parse(uri))
        spec = LoraSpec(**info.lora)
        weights = LoraWeights.from_tensors(tensors, spec).tensors
        return adapter_checkpoint(weights, {n: tensors[f"adam.{n}.exp_avg"] for n in weights}), spec
