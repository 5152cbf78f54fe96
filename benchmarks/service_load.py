"""Memory of the local service in an hour of mixed load, and the wait of a small request beside it.

    python -m benchmarks.service_load [--minutes 60] [--model DIR] [--clients 2]

Two clients train, two sample (many short replies, growing conversations), one opens a session,
saves and deletes a checkpoint and leaves; or the first few of them. Each sends its requests in a
fixed order, one in so many seconds, so that every tenth of the time asks for the same. Prints for
each tenth what the service held, the processor time of a request, and the time of a small request
of another session as a multiple of its time alone. Exits with 1 if a request failed, or if the
memory of the last three tenths is more than 5 % above that of the second to fourth.
"""

import argparse
import contextlib
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
import psutil
import tinker
from tinker.types import AdamParams, Datum, ModelInput, SamplingParams

from tokengym.agents.service import LocalService
from tokengym.agents.toy_model import MODEL_DIR

TENTHS = 10

Request = Callable[[], Any]
RNG = np.random.default_rng(0)


def tokens(count: int) -> list[int]:
    """Return random tokens."""
    drawn: list[int] = RNG.integers(3, 900, count).tolist()
    return drawn


def batch(sequences: int, length: int) -> list[Datum]:
    """Return sequences of random tokens to train on."""
    rows = [tokens(length + 1) for _ in range(sequences)]
    return [
        Datum(
            model_input=ModelInput.from_ints(row[:-1]),
            loss_fn_inputs={"target_tokens": row[1:], "weights": [1.0] * length},
        )
        for row in rows
    ]


class Load:
    """Clients of a service, the number of their requests, and what went wrong."""

    def __init__(self, service: LocalService) -> None:
        self.service = service
        self.over = threading.Event()
        self.requests = 0
        self.faults: list[str] = []

    def connect(self) -> tinker.ServiceClient:
        """Open a session."""
        return tinker.ServiceClient(base_url=self.service.base_url, api_key=self.service.api_key)

    def create(self, client: tinker.ServiceClient, rank: int) -> tinker.TrainingClient:
        """Create a run."""
        return client.create_lora_training_client(self.service.model_name, rank=rank).result()

    def sampler(self) -> tinker.SamplingClient:
        """Open a session that samples the base model."""
        return self.connect().create_sampling_client(base_model=self.service.model_name).result()

    def keep_asking(self, name: str, requests: Iterator[Request], every_s: float) -> None:
        """Send a client's requests until it is over."""
        due = time.monotonic()
        for request in requests:
            try:
                request()
            except Exception as error:
                self.faults.append(f"{name}: {type(error).__name__}: {error}")
            self.requests += 1
            due = max(due + every_s, time.monotonic() - every_s)
            if self.over.wait(max(0.0, due - time.monotonic())):
                return


def leave(client: tinker.ServiceClient) -> None:
    """End a client's session. SDK 0.38 waits for ever if a heartbeat was under way (1 in 350)."""
    with contextlib.suppress(TimeoutError):
        client.close("success").result(10)


def step(run: tinker.TrainingClient, sequences: int, length: int) -> None:
    """Take a training step."""
    run.forward_backward(batch(sequences, length), "cross_entropy")
    run.optim_step(AdamParams(learning_rate=1e-4)).result()


def train(load: Load, sequences: int, length: int) -> Iterator[Request]:
    """Yield steps, with a new sampler after every tenth and a new session after a hundred."""
    while True:
        client = load.connect()
        run = load.create(client, 8)
        for number in range(100):
            yield partial(step, run, sequences, length)
            if number % 10 == 9:
                yield run.save_weights_and_get_sampling_client().result
        leave(client)


def sample(load: Load) -> Iterator[Request]:
    """Yield requests for many replies to prompts that were not seen before."""
    sampler, params = load.sampler(), SamplingParams(max_tokens=32, stop=[])
    return repeat(
        lambda: sampler.sample(
            ModelInput.from_ints(tokens(200)), 64, params, topk_sample_logprobs=20
        ).result()
    )


def converse(load: Load) -> Iterator[Request]:
    """Yield the turns of conversations of twelve, each prompt the one before with its reply."""
    sampler, params = load.sampler(), SamplingParams(max_tokens=16, stop=[])

    def turn(read: list[int]) -> None:
        read.extend(tokens(60))
        reply = sampler.sample(ModelInput.from_ints(read), 1, params).result()
        read.extend(reply.sequences[0].tokens)

    while True:
        yield from repeat(partial(turn, []), 12)


def come_and_go(load: Load) -> Iterator[Request]:
    """Yield visits: a session, a run, one step, a checkpoint that goes, and goodbye."""
    rest = tinker.RestClient(base_url=load.service.base_url, api_key=load.service.api_key)

    def visit() -> None:
        client = load.connect()
        run = load.create(client, 16)
        step(run, 2, 40)
        rest.delete_checkpoint_from_tinker_path(run.save_state("kept").result().path).result()
        leave(client)

    return repeat(visit)


def small(sampler: tinker.SamplingClient) -> float:
    """Return the seconds that a small request takes."""
    begun = time.perf_counter()
    sampler.sample(ModelInput.from_ints(tokens(60)), 1, SamplingParams(max_tokens=16)).result()
    return time.perf_counter() - begun


def tenth(load: Load, process: psutil.Process, seconds: float, ask: Callable[[], float]) -> Any:
    """Return what the service held and did while the clients went on for some seconds."""
    requests, before, memory = load.requests, process.cpu_times(), []
    waits = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        memory.append(process.memory_info().rss / 2**20)
        waits.append(ask())
        time.sleep(min(2.0, seconds / 10))
    after = process.cpu_times()
    spent = after.user + after.system - before.user - before.system
    return {
        "mean MiB": float(np.mean(memory)),
        "most MiB": max(memory),
        "files": process.num_fds(),
        "threads": process.num_threads(),
        "requests": load.requests - requests,
        "processor ms a request": 1000 * spent / max(1, load.requests - requests),
        "small request, s": float(np.median(waits)),
    }


def main() -> int:
    """Print a row for each tenth; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=str(MODEL_DIR))
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=5)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as state,
        LocalService(options.model, state_dir=state) as service,
    ):
        load = Load(service)
        ask = partial(small, load.sampler())
        alone = float(np.median([ask() for _ in range(9)]))
        clients = {
            "short training": (train(load, 8, 60), 2.0),
            "long training": (train(load, 16, 300), 20.0),
            "many samples": (sample(load), 10.0),
            "conversations": (converse(load), 1.5),
            "visits": (come_and_go(load), 15.0),
        }
        threads = [
            threading.Thread(target=load.keep_asking, args=(name, *client))
            for name, client in list(clients.items())[: options.clients]
        ]
        for thread in threads:
            thread.start()
        process, rows = psutil.Process(service.pid), []
        for _ in range(TENTHS):
            rows.append(tenth(load, process, 60 * options.minutes / TENTHS, ask))
            rows[-1]["times alone"] = rows[-1]["small request, s"] / alone
            print(json.dumps(rows[-1]), flush=True)
        load.over.set()
        for thread in threads:
            thread.join()
    memory = [row["mean MiB"] for row in rows]
    ratio = float(np.mean(memory[-3:]) / np.mean(memory[1:4]))
    print(
        f"memory of the last three tenths over the second to fourth: {ratio:.3f}", *load.faults[:20]
    )
    return int(bool(load.faults) or ratio > 1.05)


if __name__ == "__main__":
    sys.exit(main())
