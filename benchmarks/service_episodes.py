"""Speed of the local service in long episodes: energy's `small`, 12 turns, in processor time.

    python -m benchmarks.service_episodes [--tasks 8] [--rollouts 4] [--model smollm2]

As soon as a reply ends the next turn is asked for, as rollouts do. Beside it transformers.generate
with its cache runs conversations of the same lengths and in the same type of numbers, those of a
Task side by side, padded on the left. What a turn costs is measured with all episodes of a Task at
the same turn.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections import defaultdict
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

# As the service does it: idle threads that spin would be counted.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "0")

import numpy as np
import torch
from transformers import AutoModelForCausalLM, DynamicCache

from benchmarks.served import add_options, first_episodes, generate, served_model
from tokengym.agents.models import resolve_model
from tokengym.agents.service.generation.jobs import SampleRequest, SampleResult
from tokengym.agents.service.generation.token_sampling import TokenSampling
from tokengym.agents.service.served_model import ServedModel

Lengths = list[list[tuple[int, int]]]
"""For each episode the new tokens of each turn's prompt, and those of the reply."""


def play(
    served: ServedModel, directory: Path, tasks: int, rollouts: int, tokens: int, *, together: bool
) -> tuple[Lengths, dict[int, float]]:
    """Play all episodes; returns lengths and, if `together`, seconds of processor time by turn."""
    episodes = first_episodes("energy:small", directory, tasks, rollouts)
    lengths: Lengths = [[] for _ in episodes]
    running: dict[int, Future[SampleResult]] = {}

    def ask(number: int) -> None:
        prompt = np.array(episodes[number].observation, np.int32)
        sampling = TokenSampling(1000 * number + len(lengths[number]))
        stops = frozenset(served.base_model.eos)
        request = SampleRequest("base", prompt, 1, sampling, tokens, stops)
        running[number] = Future()
        served.sampler.submit(request, running[number])
        lengths[number].append((len(prompt) - sum(map(sum, lengths[number])), 0))

    seconds: dict[int, float] = defaultdict(float)
    waiting = list(range(len(episodes)))
    while running or waiting:
        if not (together and running):
            for number in waiting:
                ask(number)
            waiting = []
        turn, start = max(map(len, lengths)), time.process_time()
        served.sampler.step()
        seconds[turn] += time.process_time() - start
        for number in [number for number, future in running.items() if future.done()]:
            (sequence,) = running.pop(number).result().sequences
            lengths[number][-1] = (lengths[number][-1][0], len(sequence.tokens))
            episodes[number].act(sequence.tokens, "stop" if sequence.stopped else "length")
            waiting += [] if episodes[number].done else [number]
    return lengths, seconds


def ours(
    arguments: argparse.Namespace,
    tasks: int,
    *,
    deterministic: bool = False,
    together: bool = False,
) -> tuple[Lengths, dict[int, float], torch.dtype]:
    """Return what `play` does, and the type of the model's numbers.

    In a process of its own: what a service may use is the memory that its process does not hold.
    """
    torch.set_num_threads(arguments.threads)
    directory = resolve_model(arguments.model).directory
    with served_model(directory, deterministic=deterministic) as served:
        sizes = (tasks, arguments.rollouts, arguments.tokens)
        return *play(served, directory, *sizes, together=together), served.base_model.dtype


def theirs(arguments: argparse.Namespace, lengths: Lengths, dtype: torch.dtype) -> float:
    """Return seconds of processor time of `generate` on conversations of these lengths."""
    torch.set_num_threads(arguments.threads)
    read: Any = AutoModelForCausalLM.from_pretrained
    model, start = read(resolve_model(arguments.model).directory, dtype=dtype), time.process_time()
    for first in range(0, len(lengths), arguments.rollouts):
        converse(model, lengths[first : first + arguments.rollouts])
    return time.process_time() - start


def converse(model: Any, conversations: Lengths) -> None:
    """Sample conversations of these lengths side by side, each turn with the cache of the last."""
    cache = DynamicCache(config=model.config)
    rows = len(conversations)
    ids = torch.zeros(rows, 0, dtype=torch.long)
    mask = torch.zeros(rows, 0, dtype=torch.long)
    for turn in zip(*conversations, strict=True):
        new, reply = max(new for new, _ in turn), max(reply for _, reply in turn)
        pads = torch.tensor([[new - own] for own, _ in turn])
        seen = (torch.arange(new) >= pads).long()
        ids = torch.cat([ids, torch.randint(5, 1000, (rows, new)) * seen], dim=1)
        mask = torch.cat([mask, seen], dim=1)
        ids = generate(model, ids, mask, reply, past_key_values=cache)
        mask = torch.cat([mask, torch.ones(rows, reply, dtype=torch.long)], dim=1)


def main() -> None:
    """Print processor time of episodes: ours, with `deterministic`, and `generate` on the same."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--rollouts", type=int, default=4, help="episodes of each Task")
    parser.add_argument("--tokens", type=int, default=27, help="most of a reply")
    arguments = parser.parse_args()
    print(f"episodes, {arguments.tasks} Tasks x {arguments.rollouts}, processor time:")
    taken: dict[str, float] = {}
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawned, max_tasks_per_child=1) as pool:
        for name in ("default", "deterministic"):
            exact = name == "deterministic"
            run = pool.submit(ours, arguments, arguments.tasks, deterministic=exact)
            lengths, seconds, dtype = run.result()
            taken[name] = sum(seconds.values())
            read, written = np.sum([turn for turns in lengths for turn in turns], axis=0)
            rate = f"{written / taken[name]:.1f} written tokens a second, {read} read"
            print(f"  {name:44s} {taken[name]:8.1f} s, {rate}", flush=True)
        taken["transformers.generate"] = pool.submit(theirs, arguments, lengths, dtype).result()
        print(f"  {'transformers.generate':44s} {taken['transformers.generate']:8.1f} s")
        for name in ("deterministic", "transformers.generate"):
            print(f"  {name} / default: {taken[name] / taken['default']:.2f}", flush=True)
        _, by_turn, _ = pool.submit(ours, arguments, 1, together=True).result()
    last = max(by_turn)
    print(
        f"  turns 2 and {last} of a Task, side by side: {by_turn[2]:.1f} and {by_turn[last]:.1f} s"
    )


if __name__ == "__main__":
    main()
