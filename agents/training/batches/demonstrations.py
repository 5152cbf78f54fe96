"""Batches from demonstrations, a script's or a run's replies, fitted by cross-entropy."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import tinker
import torch
from tinker_cookbook.supervised.common import compute_mean_nll, datum_from_model_input_weights

from tokengym.agents.tinker.coordinator import Opponent
from tokengym.agents.tinker.scripted_rollout import TurnTokens, roll_out_scripted
from tokengym.agents.training.earlier_runs import numbers_of_step
from tokengym.agents.training.folder.run import POLICY
from tokengym.agents.training.loop import Batch, Loss
from tokengym.envs.core.play import Policy
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import Codec


def datums(turns: Sequence[TurnTokens], *, append_only: bool) -> list[tinker.Datum]:
    """Return one role's side of an episode as data for `cross_entropy`: its own tokens weigh 1.

    Args:
        turns: of the role.
        append_only: whether each turn extends the one before; they then make one datum.
    """
    made = []
    for last in [turns[-1]] if append_only and turns else turns:
        weights = torch.zeros(len(last.observation) + len(last.reply))
        for turn in turns if append_only else [last]:
            weights[len(turn.observation) : len(turn.observation) + len(turn.reply)] = 1.0
        tokens = tinker.ModelInput.from_ints([*last.observation, *last.reply])
        made.append(datum_from_model_input_weights(tokens, weights))
    return made


@dataclass(frozen=True)
class Demonstrations:
    """A source of batches: a scripted policy's replies on training Tasks.

    A step has as many Tasks as reinforcement learning has rollouts, and the same examples each time
    it is asked for.

    Attributes:
        world: of the Tasks.
        tasks: of all steps, in order.
        tasks_per_batch: Tasks of a step.
        codec: by which the roles read and write tokens.
        policy: plays the trained roles.
        opponents: by trained role, who plays the other roles.
        policies: by role the name of its policy; empty where one policy plays them all.
    """

    world: World
    tasks: Sequence[Task]
    tasks_per_batch: int
    codec: Codec
    policy: Policy
    opponents: Mapping[str, Mapping[str, Opponent]]
    policies: Mapping[str, str]
    on_policy = False

    @property
    def loss(self) -> Loss:
        """Mean negative log-likelihood of the demonstrated tokens, logged as `train/nll`."""
        return Loss("cross_entropy", _likelihood)

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.tasks) // self.tasks_per_batch

    async def batch(self, step: int, samplers: Mapping[str, tinker.SamplingClient]) -> Batch:
        """Return a step's examples; `samplers` are not asked."""
        first = step * self.tasks_per_batch
        last = first + self.tasks_per_batch
        # In a thread: drawing a Task may take a solver.
        tasks = await asyncio.to_thread(lambda: list(self.tasks[first:last]))
        data: dict[str, list[tinker.Datum]] = {}
        for role in self.opponents:
            examples = await asyncio.gather(*(self._example(role, task) for task in tasks))
            policy = self.policies.get(role, POLICY)
            data.setdefault(policy, []).extend(chain.from_iterable(examples))
        tokens = sum(row.model_input.length for rows in data.values() for row in rows)
        return Batch(data, {"train/tokens": float(tokens)})

    async def _example(self, role: str, task: Task) -> list[tinker.Datum]:
        rng = generator("demonstration", task.fingerprint, role)
        rollout = await roll_out_scripted(
            self.world, task, self.codec, role, self.policy, self.opponents[role], rng
        )
        return datums(rollout.turns, append_only=self.codec.append_only)


@dataclass(frozen=True)
class RecordedDemonstrations:
    """A source of batches: rollouts of a run.

    All are seen once, in an order of the seed's, before any is seen again.

    Attributes:
        examples: the data of each rollout.
        examples_per_batch: rollouts of a step.
        steps: number of steps.
        seed: of the order.
    """

    examples: Sequence[Sequence[tinker.Datum]]
    examples_per_batch: int
    steps: int
    seed: int
    on_policy = False

    @property
    def loss(self) -> Loss:
        """Mean negative log-likelihood of the demonstrated tokens, logged as `train/nll`."""
        return Loss("cross_entropy", _likelihood)

    def __len__(self) -> int:
        """Return the number of steps."""
        return self.steps

    async def batch(self, step: int, samplers: Mapping[str, tinker.SamplingClient]) -> Batch:
        """Return a step's examples; `samplers` are not asked."""
        numbers = numbers_of_step(len(self.examples), self.examples_per_batch, step, self.seed)
        data = list(chain.from_iterable(self.examples[number] for number in numbers))
        tokens = sum(datum.model_input.length for datum in data)
        return Batch({POLICY: data}, {"train/tokens": float(tokens)})


def _likelihood(
    data: Sequence[tinker.Datum], outputs: Sequence[tinker.ForwardBackwardOutput]
) -> dict[str, float]:
    logprobs = [row["logprobs"] for output in outputs for row in output.loss_fn_outputs]
    weights = [datum.loss_fn_inputs["weights"] for datum in data]
    return {"train/nll": compute_mean_nll(logprobs, weights)}
