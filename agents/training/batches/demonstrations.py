"""Batches from demonstrations, a script's or a run's replies, fitted by cross-entropy."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
    """A source of batches: examples to imitate, the same ones each time a step asks for them.

    Attributes:
        steps: number of steps.
        examples: from a step to its examples, by the name of the policy that learns from them.
    """

    steps: int
    examples: Callable[[int], Awaitable[Mapping[str, Sequence[tinker.Datum]]]]
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
        data = await self.examples(step)
        tokens = sum(row.model_input.length for rows in data.values() for row in rows)
        return Batch(data, {"train/tokens": float(tokens)})


def scripted_demonstrations(
    world: World,
    tasks: Sequence[Task],
    tasks_per_batch: int,
    codec: Codec,
    policy: Policy,
    opponents: Mapping[str, Mapping[str, Opponent]],
    policies: Mapping[str, str],
) -> Demonstrations:
    """Return a scripted policy's replies on training Tasks.

    Args:
        world: of the Tasks.
        tasks: of all steps, in order.
        tasks_per_batch: Tasks of a step, as many as reinforcement learning has rollouts.
        codec: by which the roles read and write tokens.
        policy: plays the trained roles.
        opponents: by trained role, who plays the other roles.
        policies: by role the name of its policy; empty where one policy plays them all.
    """

    async def example(role: str, task: Task) -> list[tinker.Datum]:
        played = roll_out_scripted(world, task, codec, role, policy, opponents[role])
        return datums((await played).turns, append_only=codec.append_only)

    async def examples(step: int) -> Mapping[str, Sequence[tinker.Datum]]:
        first = step * tasks_per_batch
        # In a thread: drawing a Task may take a solver.
        drawn = await asyncio.to_thread(lambda: list(tasks[first : first + tasks_per_batch]))
        data: dict[str, list[tinker.Datum]] = {}
        for role in opponents:
            shown = await asyncio.gather(*(example(role, task) for task in drawn))
            data.setdefault(policies.get(role, POLICY), []).extend(chain.from_iterable(shown))
        return data

    return Demonstrations(len(tasks) // tasks_per_batch, examples)


def recorded_demonstrations(
    rollouts: Sequence[Sequence[tinker.Datum]], rollouts_per_batch: int, steps: int, seed: int
) -> Demonstrations:
    """Return rollouts of a run; all are seen once, in an order of the seed's, before any again.

    Args:
        rollouts: the data of each rollout.
        rollouts_per_batch: rollouts of a step.
        steps: number of steps.
        seed: of the order.
    """

    async def examples(step: int) -> Mapping[str, Sequence[tinker.Datum]]:
        numbers = numbers_of_step(len(rollouts), rollouts_per_batch, step, seed)
        return {POLICY: list(chain.from_iterable(rollouts[number] for number in numbers))}

    return Demonstrations(steps, examples)


def _likelihood(
    data: Sequence[tinker.Datum], outputs: Sequence[tinker.ForwardBackwardOutput]
) -> dict[str, float]:
    logprobs = [row["logprobs"] for output in outputs for row in output.loss_fn_outputs]
    weights = [datum.loss_fn_inputs["weights"] for datum in data]
    return {"train/nll": compute_mean_nll(logprobs, weights)}
