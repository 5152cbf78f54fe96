"""Loops on Tinker's protocol, probed over the local service: the cookbook's and our own.

Both play the same groups, whose rewards come by order of arrival or for what was written, and start
from an adapter that is not zero: where B is, the gradient of A would be.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import chz
import numpy as np
import tinker
from tinker_cookbook import checkpoint_utils
from tinker_cookbook.rl import train as cookbook
from tinker_cookbook.rl.types import (
    ActionExtra,
    Env,
    EnvGroupBuilder,
    Metrics,
    RLDataset,
    RLDatasetBuilder,
    StepResult,
    Trajectory,
)

from tokengym.agents.probe.adapted import Adapted, adapter_checkpoint
from tokengym.agents.probe.campaign import ALL_WORLDS, REFERENCE, ProbedTrainer
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
from tokengym.agents.training.connection import Connection, ServiceTarget
from tokengym.agents.training.folder.run import POLICY, RunFolder
from tokengym.agents.training.loop import train
from tokengym.agents.training.policy_trainers import service_session
from tokengym.agents.training.setting_groups import Algorithm

OWN = {
    "leave-one-out": {"estimator": "leave_one_out"},
    "standardised": {"estimator": "group_standardised"},
    "REINFORCE++": {"estimator": "reinforce_plus_plus"},
    "by turn": {"credit": "turn"},
    "exact credit": {"credit": "exact"},
    "ties dropped": {"filter": "drop", "denominator": "live"},
}
"""Settings of our loop, all but `remax`, which plays Tasks of worlds."""
_DOCUMENTED = {
    "standardised by group": "--estimator group_standardised",
    "centred by group, then over the tokens": "--estimator reinforce_plus_plus",
    "rewards of each turn alone": "--credit exact",
    "with a KL penalty": "--kl",
}
_GROUP, _RANK, _MAX_TOKENS = 4, 4, 6
_STOP = list(range(3, VOCABULARY, 4))
"""So many that replies differ in length."""


@contextlib.contextmanager
def tinker_trainer(name: str, folder: Path, settings: Mapping[str, Any]) -> Iterator[ProbedTrainer]:
    """Yield a loop, to be run on the tiny model over a local service.

    Args:
        name: `cookbook` or `own`.
        folder: for the model, the service and what the loop writes.
        settings: of the cookbook's `Config` or our `Algorithm`, for a column of their own; none if
            empty.
    """
    write_tiny_model(folder / "model")
    target = ServiceTarget(str(folder / "model"), None, local=True, options={"threads": 1})
    with Connection.open(target, folder / "service", seed=0) as connection:
        loops = _Loops(folder, connection)
        columns: dict[str, Mapping[str, Any]] = {"default": {}}
        if name == "own":
            run, title, documented = loops.own, "tokengym train", _DOCUMENTED
            columns |= OWN
        else:
            run, documented = loops.cookbook, {"with a KL penalty": "kl_penalty_coef"}
            title = f"tinker_cookbook.rl.train.main {version('tinker-cookbook')}"
        columns |= {"yours": settings} if settings else {}
        runs = [("default", REFERENCE), *((column, ALL_WORLDS) for column in columns)]
        yield ProbedTrainer(title, columns, documented, runs, run)


class _Episode(Env):
    """A rollout that notes what it was told and what it earned."""

    def __init__(self, world: DesignedWorld, number: int, prompt: tuple[int, ...]) -> None:
        self.world, self.number, self.prompt = world, number, prompt
        self.completion: list[int] = []
        self.mask: list[int] = []
        self.rewards: tuple[float, ...] = ()
        self.turn = 0

    async def initial_observation(self) -> tuple[tinker.ModelInput, list[int]]:
        return self._observation, _STOP

    @property
    def _observation(self) -> tinker.ModelInput:
        return tinker.ModelInput.from_ints([*self.prompt, *self.completion])

    async def step(self, action: list[int], *, extra: ActionExtra | None = None) -> StepResult:
        self.completion += action
        self.mask += [1] * len(action)
        self.turn += 1
        done = self.turn == self.world.turns
        credit = self._credit(done)
        if not done:
            self.completion += np.random.default_rng(sum(action)).integers(3, 99, 3).tolist()
            self.mask += [0] * 3
        paid = 0.0 if self.by_group else credit
        return StepResult(paid, done, self._observation, _STOP, {"credit": credit})

    def _credit(self, done: bool) -> float:
        """Return what this turn earns."""
        reward = designed_return(self.world, self.number, _GROUP, self.completion)
        if done:
            self.rewards = turn_rewards(self.world, self.number, reward)
        return turn_rewards(self.world, self.number, reward if done else 0.0)[self.turn - 1]

    @property
    def by_group(self) -> bool:
        """Whether its group pays it, when all are done."""
        return self.world.name in TEXT

    def rollout(self) -> ProbeRollout:
        of_turns = self.rewards if self.world.turn_rewards else None
        return ProbeRollout(
            self.prompt,
            tuple(self.completion),
            tuple(self.mask),
            sum(self.rewards),
            self.world.name,
            turn_rewards=of_turns,
        )


@dataclass(frozen=True)
class _Group(EnvGroupBuilder):
    """The rollouts of a world; `played` takes them when all are done."""

    world: DesignedWorld
    prompt: tuple[int, ...]
    played: dict[str, list[ProbeRollout]] = field(compare=False)

    async def make_envs(self) -> Sequence[Env]:
        return [_Episode(self.world, number, self.prompt) for number in range(_GROUP)]

    async def compute_group_rewards(
        self, trajectory_group: list[Trajectory], env_group: Sequence[Env]
    ) -> list[tuple[float, Metrics]]:
        episodes = [env for env in env_group if isinstance(env, _Episode)]
        self.played[self.world.name] = [one.rollout() for one in episodes]
        return [(sum(one.rewards) if one.by_group else 0.0, {}) for one in episodes]


@dataclass(frozen=True)
class _Groups(RLDataset):
    builders: Sequence[_Group]

    def get_batch(self, index: int) -> Sequence[EnvGroupBuilder]:
        return self.builders

    def __len__(self) -> int:
        return 1


@chz.chz
class _GroupsBuilder(RLDatasetBuilder):
    groups: Any

    async def __call__(self) -> tuple[RLDataset, RLDataset | None]:
        return self.groups, None


@dataclass(frozen=True)
class _Loops:
    """Runs of both loops on one service."""

    folder: Path
    connection: Connection

    def cookbook(self, case: str, settings: Mapping[str, Any], seed: int) -> Training:
        """Run the cookbook's."""

        async def run(config: cookbook.Config, groups: RLDataset) -> None:
            await cookbook.main(chz.replace(config, **settings))

        return self._run(case, seed, run)

    def own(self, case: str, settings: Mapping[str, Any], seed: int) -> Training:
        """Run ours."""

        async def run(config: cookbook.Config, groups: RLDataset) -> None:
            source = RolloutCollector(config, Algorithm(**settings), groups, seed=seed)
            await train(config, source, {POLICY: RunFolder(Path(config.log_path))}, seed)

        return self._run(case, seed, run)

    def _run(self, case: str, seed: int, run: Any) -> Training:
        start = asyncio.run(self._start(seed))
        played: dict[str, list[ProbeRollout]] = {}
        # Twins cannot be sampled.
        worlds = [w for w in (WORLDS if case == ALL_WORLDS else FEW) if not w.twins]
        prompts = [one.prompt_ids for one in designed_rollouts(seed, 2, worlds)[::2]]
        groups = _Groups(
            [_Group(world, prompt, played) for world, prompt in zip(worlds, prompts, strict=True)]
        )
        log = self.folder / "runs" / str(sum(1 for _ in (self.folder / "runs").glob("*")))
        config = cookbook.Config(
            learning_rate=1e-3,
            dataset_builder=_GroupsBuilder(groups=groups),
            model_name=self.connection.model,
            recipe_name="probe",
            max_tokens=_MAX_TOKENS,
            log_path=str(log),
            load_checkpoint_path=start,
            base_url=self.connection.base_url,
            eval_every=0,
            save_every=0,
            num_groups_to_log=0,
            rollout_json_export=False,
        )
        if case == REFERENCE:
            base = cookbook.KLReferenceConfig(base_model=self.connection.model)
            config = chz.replace(config, kl_penalty_coef=0.1, kl_reference_config=base)
        asyncio.run(self.connection.guard(run(config, groups)))
        last = checkpoint_utils.get_last_checkpoint(str(log))
        assert last is not None
        (before, _), (after, spec) = self._checkpoint(start), self._checkpoint(last.state_path)
        rollouts = [one for world in worlds for one in played[world.name]]
        reference = None
        if case == REFERENCE:
            zeros = {k: v if k.endswith("A") else 0 * v for k, v in before.weights.items()}
            reference = Checkpoint(zeros, {})
        model = Adapted(tiny_model(), before.weights, spec.scaling)
        before = Checkpoint(before.weights, {})
        return Training(model, rollouts, [before, after], reference=reference)

    async def _start(self, seed: int) -> str:
        """Return the state of an adapter after a step in a random direction."""
        rng = np.random.default_rng(seed)
        async with service_session(self.connection.base_url) as service:
            client = await service.create_lora_training_client(
                self.connection.model, rank=_RANK, seed=seed
            )
            tokens = rng.integers(3, VOCABULARY, 40).tolist()
            inputs = {"target_tokens": tokens[1:], "weights": rng.normal(size=39).tolist()}
            datum = tinker.Datum(
                model_input=tinker.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=inputs
            )
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
