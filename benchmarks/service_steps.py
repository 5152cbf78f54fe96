"""One training step on the local service beside a plain loop, in processor time.

    python -m benchmarks.service_steps energy:small warehouse:pick
    python -m benchmarks.service_steps energy:small --model smollm2 --precision bfloat16 --plain

Through the Tinker client, episodes of a world's first test Tasks are sampled, each turn as soon as
the reply before it has ended; then one gradient is computed on all of them. The gap is how far the
log-probability of a sampled token is from the one that training computes for it. With `--steps`
optimizer steps on random advantages come first, at a learning rate of 5e-4. With `--plain` the same
lengths are sampled with `transformers.generate` and its cache, the conversations of a Task side by
side, and trained on with peft, in float32. Ratios hold on other machines, seconds do not.
"""

import argparse
import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

# As the service does it: idle threads that spin would be counted.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "0")

import numpy as np
import numpy.typing as npt
import psutil
import tinker
import torch
from peft import LoraConfig, get_peft_model
from tinker.types import AdamParams, Datum, ModelInput, SamplingParams
from transformers import AutoModelForCausalLM, DynamicCache

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
        turns: of each turn the new tokens of its prompt and those of its reply.
    """

    tokens_T: npt.NDArray[np.int64]
    logprobs_T: npt.NDArray[np.float32]
    sampled_T: npt.NDArray[np.bool_]
    turns: list[tuple[int, int]]

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
    turns: list[tuple[int, int]] = []
    while not episode.done:
        read = episode.observation.tolist()
        params = SamplingParams(max_tokens=most, seed=1000 * number + len(turns))
        (sequence,) = (await sampler.sample(ModelInput.from_ints(read), 1, params)).sequences
        turns.append((len(read) - len(tokens), len(sequence.tokens)))
        logprobs += [np.nan] * turns[-1][0] + list(sequence.logprobs or ())
        tokens = read + list(sequence.tokens)
        episode.act(sequence.tokens, sequence.stop_reason)
    known = np.array(logprobs, np.float32)
    return Played(np.array(tokens), np.nan_to_num(known), ~np.isnan(known), turns)


def ours(given: argparse.Namespace, world_level: str, service: LocalService) -> list[Played]:
    """Print processor seconds of a step on the service, and its gap; return its episodes."""
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
    return played


def generate_plain(model: Any, episodes: Sequence[Played]) -> None:
    """Sample conversations of these lengths side by side, each turn with the cache of the last."""
    cache = DynamicCache(config=model.config)
    ids_BT = torch.zeros(len(episodes), 0, dtype=torch.long)
    mask_BT = torch.zeros_like(ids_BT)
    for turn in range(max(len(one.turns) for one in episodes)):
        sizes = [one.turns[turn] if turn < len(one.turns) else (0, 0) for one in episodes]
        new, reply = (max(1, max(column)) for column in zip(*sizes, strict=True))
        seen_BT = (torch.arange(new) >= torch.tensor([[new - own] for own, _ in sizes])).long()
        ids_BT = torch.cat([ids_BT, torch.randint(5, 1000, seen_BT.shape) * seen_BT], dim=1)
        mask_BT = torch.cat([mask_BT, seen_BT], dim=1)
        with torch.inference_mode():
            ids_BT = model.generate(
                **{"input_ids": ids_BT, "attention_mask": mask_BT, "past_key_values": cache},
                **{"do_sample": True, "top_k": 0, "pad_token_id": 0},
                **{"max_new_tokens": reply, "min_new_tokens": reply},
            )
        mask_BT = torch.cat([mask_BT, torch.ones(len(episodes), reply, dtype=torch.long)], dim=1)


def train_plain(model: Any, episodes: Sequence[Played]) -> None:
    """Add the gradients of these episodes, padded on the right."""
    shape = (len(episodes), max(len(one.tokens_T) for one in episodes))
    ids_BT, mask_BT = torch.zeros(shape, dtype=torch.long), torch.zeros(shape)
    logprobs_BT, sampled_BT = torch.zeros(shape), torch.zeros(shape)
    for row, one in enumerate(episodes):
        own = slice(len(one.tokens_T))
        ids_BT[row, own] = torch.from_numpy(one.tokens_T)
        mask_BT[row, own] = 1
        logprobs_BT[row, own] = torch.from_numpy(one.logprobs_T)
        sampled_BT[row, own] = torch.from_numpy(one.sampled_T).float()
    logits = model(input_ids=ids_BT[:, :-1], attention_mask=mask_BT[:, :-1]).logits
    new_BT = torch.log_softmax(logits, -1).gather(-1, ids_BT[:, 1:, None])[..., 0]
    (-torch.exp(new_BT - logprobs_BT[:, 1:]) * sampled_BT[:, 1:]).sum().backward()


def plain(given: argparse.Namespace, directory: Path, played: Sequence[Played]) -> None:
    """Print processor seconds of the same step with transformers and peft."""
    torch.set_num_threads(given.threads)
    model: Any = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    # Every Task's first rollout comes first, then every Task's second: put a Task's side by side.
    groups = [played[task :: given.tasks] for task in range(given.tasks)]
    begun = time.process_time()
    for group in groups:
        generate_plain(model, group)
    sampled = time.process_time()
    model = get_peft_model(model, LoraConfig(r=RANK, lora_alpha=32, target_modules="all-linear"))
    for group in groups:
        for first in range(0, len(group), given.batch):
            train_plain(model, group[first : first + given.batch])
    done = time.process_time()
    print(f"  plain: sampling {sampled - begun:.1f} s, training {done - sampled:.1f} s", flush=True)


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
    parser.add_argument("--plain", action="store_true", help="transformers and peft beside it")
    parser.add_argument("--batch", type=int, default=4, help="sequences of a gradient of peft")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    directory = resolve_model(given.model)
    for world in given.worlds:
        options = {"precision": given.precision, "deterministic": given.deterministic}
        with (
            tempfile.TemporaryDirectory() as state,
            LocalService(directory, state_dir=state, threads=given.threads, **options) as service,
        ):
            played = ours(given, world, service)
        if given.plain:
            plain(given, directory, played)


if __name__ == "__main__":
    main()
