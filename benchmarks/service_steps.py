"""One training step on the local service: its processor time, and how far it trains from samples.

    python -m benchmarks.service_steps energy:small warehouse:pick
    python -m benchmarks.service_steps energy:small --model smollm2 --precision bfloat16

Through the Tinker client, episodes of a world's first test Tasks are sampled, each turn as soon as
the reply before it has ended; then one gradient is computed on all of them. The gap is how far the
log-probability of a sampled token is from the one that training computes for it. With `--steps`
optimizer steps on random advantages come first, at a learning rate of 5e-4.
"""

import argparse
import asyncio
import contextlib
import os
import tempfile
from typing import NamedTuple

# As the service does it: idle threads that spin would be counted.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "0")

import numpy as np
import numpy.typing as npt
import psutil
import tinker
from tinker.types import AdamParams, Datum, ModelInput, SamplingParams

from tokengym.agents.models import resolve_model
from tokengym.agents.service import LocalService
from tokengym.agents.tinker.codec import codec_name, codec_named
from tokengym.envs.core.world import PROMPTS
from tokengym.envs.registry import make_world
from tokengym.envs.tokens.episode import Episode

RANK = 16


class Played(NamedTuple):
    """An episode as it was sampled.

    Attributes:
        tokens_T: all tokens, read and sampled.
        logprobs_T: of the sampled ones, 0 elsewhere.
        sampled_T: whether a token was sampled.
    """

    tokens_T: npt.NDArray[np.int64]
    logprobs_T: npt.NDArray[np.float32]
    sampled_T: npt.NDArray[np.bool_]

    def datum(self, advantage: float) -> Datum:
        """Return the episode as training data, with one advantage for all sampled tokens."""
        inputs = {
            "target_tokens": self.tokens_T[1:].tolist(),
            "logprobs": self.logprobs_T[1:].tolist(),
            "advantages": (self.sampled_T[1:] * advantage).tolist(),
        }
        return Datum(
            model_input=ModelInput.from_ints(self.tokens_T[:-1].tolist()), loss_fn_inputs=inputs
        )


async def play(
    episode: Episode, sampler: tinker.SamplingClient, number: int, most: int | None
) -> Played:
    """Sample an episode to its end."""
    tokens: list[int] = []
    logprobs: list[float] = []
    turns = 0
    while not episode.done:
        read = episode.observation.tolist()
        params = SamplingParams(max_tokens=most, seed=1000 * number + turns)
        (sequence,) = (await sampler.sample(ModelInput.from_ints(read), 1, params)).sequences
        turns += 1
        logprobs += [np.nan] * (len(read) - len(tokens)) + list(sequence.logprobs or ())
        tokens = read + list(sequence.tokens)
        episode.act(sequence.tokens, sequence.stop_reason)
    known = np.array(logprobs, np.float32)
    return Played(np.array(tokens), np.nan_to_num(known), ~np.isnan(known))


def measure(given: argparse.Namespace, world_level: str, service: LocalService) -> None:
    """Print processor seconds of a step on the service, and its gap."""
    client = tinker.ServiceClient(base_url=service.base_url, api_key=service.api_key)
    run = client.create_lora_training_client(service.model_name, rank=RANK).result()
    world = make_world(world_level, prompt=given.prompt)
    codec = codec_named(codec_name("qwen3_instruct", str(service.model_dir)))
    rng = np.random.default_rng(0)
    process = psutil.Process(service.pid)

    def spent() -> float:
        times = process.cpu_times()
        return times.user + times.system

    async def all_of(sampler: tinker.SamplingClient) -> list[Played]:
        tasks = world.first_tasks("test", given.tasks)
        episodes = [Episode(world.fork(), task, codec) for task in tasks * given.rollouts]
        return await asyncio.gather(
            *(play(one, sampler, number, given.tokens) for number, one in enumerate(episodes))
        )

    for step in range(given.steps + 1):
        sampler = run.save_weights_and_get_sampling_client().result()
        begun = spent()
        played = asyncio.run(all_of(sampler))
        sampled = spent()
        data = [one.datum(rng.normal()) for one in played]
        outputs = run.forward_backward(data, "importance_sampling").result().loss_fn_outputs
        trained = spent()
        trained_logprobs = [output["logprobs"].to_numpy() for output in outputs]
        gap = np.concatenate(
            [
                (logprobs - one.logprobs_T[1:])[one.sampled_T[1:]]
                for logprobs, one in zip(trained_logprobs, played, strict=True)
            ]
        )
        print(
            f"{world_level}, after {step} steps: sampling {sampled - begun:.1f} s, training "
            f"{trained - sampled:.1f} s, {len(gap)} sampled tokens; gap: root mean square "
            f"{np.sqrt(np.square(gap).mean()):.2g}, largest {np.abs(gap).max():.2g}, "
            f"{(gap == 0).mean():.0%} equal",
            flush=True,
        )
        run.optim_step(AdamParams(learning_rate=5e-4)).result()
    # SDK 0.38 waits for ever if a heartbeat was under way.
    with contextlib.suppress(TimeoutError):
        client.close("success").result(10)


def main() -> None:
    """Measure a step in each world."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("worlds", nargs="+", help="of one role, such as energy:small")
    parser.add_argument("--model", default="tokengym-start", help="name, directory or file")
    parser.add_argument("--tasks", type=int, default=6)
    parser.add_argument("--rollouts", type=int, default=8, help="episodes of each Task")
    parser.add_argument("--tokens", type=int, default=32, help="most of a reply")
    parser.add_argument("--prompt", default="terse", choices=PROMPTS)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--deterministic", action="store_true")
    parser.add_argument("--steps", type=int, default=0, help="optimizer steps before")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    directory = resolve_model(given.model)
    for world in given.worlds:
        options = {"precision": given.precision, "deterministic": given.deterministic}
        with (
            tempfile.TemporaryDirectory() as state,
            LocalService(directory, state_dir=state, threads=given.threads, **options) as service,
        ):
            measure(given, world, service)


if __name__ == "__main__":
    main()
