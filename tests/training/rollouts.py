"""Rollouts made by hand, drawn by Hypothesis, or sampled from a script instead of a model."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import tinker
from hypothesis import strategies as st
from tinker_cookbook.completers import TokensWithLogprobs
from tinker_cookbook.rl.train import Config
from tinker_cookbook.rl.types import Trajectory, TrajectoryGroup, Transition

from tokengym.agents.tinker.dataset import TaskDatasetBuilder
from tokengym.envs.core.seeding import generator


def collector_config(world: str) -> Config:
    """Settings of a `RolloutCollector` whose replies a script samples."""
    return Config(
        learning_rate=1e-3,
        dataset_builder=TaskDatasetBuilder(world=world, codec="byte"),
        model_name="none",
        recipe_name="test",
        max_tokens=64,
        log_path="none",
    )


def rollout(
    turns: Sequence[tuple[list[int], list[int], float]], credits: Sequence[float] = ()
) -> Trajectory:
    """A rollout of (what was newly read, what was said, reward) by turn, read on and on."""
    seen: list[int] = []
    transitions = []
    for place, (read, said, reward) in enumerate(turns):
        seen = seen + read
        logprobs = [-0.25 * (1 + token % 7) for token in said]
        transitions.append(
            Transition(
                ob=tinker.ModelInput.from_ints(seen),
                ac=TokensWithLogprobs(said, logprobs),
                reward=reward,
                episode_done=place + 1 == len(turns),
                metrics={"credit": credits[place]} if credits else {},
            )
        )
        seen = seen + said
    return Trajectory(transitions, tinker.ModelInput.empty())


def group_of(*rewards: Sequence[float] | float) -> TrajectoryGroup:
    """A group of rollouts that earn the given rewards, a number for one turn."""
    turns = [[reward] if isinstance(reward, int | float) else reward for reward in rewards]
    rollouts = [rollout([([1, 2], [3 + g], float(r)) for r in row]) for g, row in enumerate(turns)]
    return TrajectoryGroup(rollouts, [0.0] * len(rollouts), [{} for _ in rollouts])


tokens = st.lists(st.integers(0, 50), min_size=1, max_size=4)
rewards = st.integers(-8, 8).map(lambda n: n / 4)
rollouts = st.lists(st.tuples(tokens, tokens, rewards), min_size=1, max_size=4).map(rollout)
groups = st.lists(rollouts, min_size=2, max_size=4).map(
    lambda drawn: TrajectoryGroup(drawn, [0.0] * len(drawn), [{} for _ in drawn])
)


@dataclass
class Scripted:
    """Answers like a `tinker.SamplingClient`, from a script.

    Attributes:
        says: the reply, from the prompt's text, the sample's number and the temperature.
        asked: number of samples of each request, in order.
        by_seed: whether the reply begins with the request's seed.
        busiest: most requests that were under way at once.
    """

    says: Callable[[str, int, float], str]
    asked: list[int] = field(default_factory=list)
    by_seed: bool = False
    busiest: int = 0
    _now: int = 0

    async def sample(
        self, prompt: tinker.ModelInput, num_samples: int, sampling_params: tinker.SamplingParams
    ) -> tinker.SampleResponse:
        self.asked.append(num_samples)
        self._now += 1
        self.busiest = max(self.busiest, self._now)
        await asyncio.sleep(0.001)
        self._now -= 1
        text = bytes(token for token in prompt.to_ints() if token < 256).decode("utf-8", "replace")
        sequences = []
        for number in range(num_samples):
            said = self.says(text, number, float(sampling_params.temperature))
            if self.by_seed:
                said = f"{sampling_params.seed} {said}"
            said_tokens = [*said.encode(), *(int(stop) for stop in sampling_params.stop or [])]
            said_tokens = said_tokens[: sampling_params.max_tokens]
            sequences.append(
                tinker.SampledSequence(
                    stop_reason="stop",
                    sequence_id=str(number),
                    tokens_np=np.array(said_tokens, np.int64),
                    logprobs_np=np.full(len(said_tokens), -1.0, np.float32),
                )
            )
        return tinker.SampleResponse(sequences=sequences)

    # The cookbook's own completer calls it by the name that the SDK deprecates.
    sample_async = sample


def noisy(text: str, number: int, temperature: float) -> str:
    """A forecast that depends on the prompt and, unless greedy, on the sample."""
    rng = generator("noisy", text, 0 if temperature == 0 else number + 1)
    return f"Probability: {rng.uniform(0.05, 0.95):.3f}"
