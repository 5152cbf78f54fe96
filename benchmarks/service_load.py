"""Hours of mixed load on the local service: eight clients, and one request in twenty is bad.

    python -m benchmarks.service_load [--minutes 60] [--model DIR]

Three clients train, three sample (many short replies with top log-probabilities, growing
conversations, the endpoint for chats), one keeps and deletes checkpoints, one opens a session,
trains a step and leaves. Each takes its requests in a fixed order, one in so many seconds, so that
every tenth of the time asks for the same. A row tells, for each tenth: the service's memory, its
files and threads, requests and their processor time, also in units of a fixed product of matrices
that is computed beside them (others who use the machine slow both), and the median of a small
request. Ends with the last three tenths over the second to fourth, and exits with 1 if a bad
request was taken, a good one refused, or memory or processor time grew by more than 5 %.
"""

import argparse
import contextlib
import json
import os
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, cycle, repeat
from typing import Any

# The thread that computes a product is the one whose time is taken.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import psutil
import tinker
from tinker.types import AdamParams, Datum, ModelInput, SamplingParams

from tokengym.agents.reports.markdown import markdown_table
from tokengym.agents.service import LocalService
from tokengym.agents.toy_model import MODEL_DIR

BAD = 20
"""One request in as many is bad."""
TENTHS = 10

MATRIX = np.random.default_rng(0).standard_normal((512, 512), np.float32)

Request = Callable[[], Any]

BODIES: tuple[tuple[str, bytes], ...] = (
    ("create_model", b"{"),
    ("create_model", b'{"session_id": "x", "model_seq_id": 0, "base_model": "no-such-model"}'),
    ("asample", b'{"surprise": 1}'),
    ("asample", b'{"num_samples": -1, "prompt": {"chunks": []}, "sampling_params": {}}'),
    ("optim_step", b'{"model_id": "x", "adam_params": {"a": 1}}'),
    ("forward_backward", b"\xff\xff\xff"),
    ("forward_backward", b"\n\x01x\x1a\x00"),
    ("retrieve_future", b'{"request_id": "x"}'),
    ("weights_info", b'{"tinker_path": 5}'),
    ("load_weights", b'{"model_id": "x", "path": "tinker://../../etc/passwd"}'),
    ("nothing", b"{}"),
    ("create_session", b"[" * 100_000),
    ("forward_backward", bytes(65 << 20)),
)


class Load:
    """What clients have asked, and what went wrong."""

    def __init__(self, service: LocalService) -> None:
        self.service = service
        self.over = threading.Event()
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.faults: list[str] = []
        self._bad = cycle(BODIES)

    def connect(self) -> tinker.ServiceClient:
        return tinker.ServiceClient(base_url=self.service.base_url, api_key=self.service.api_key)

    def rest(self) -> tinker.RestClient:
        return tinker.RestClient(base_url=self.service.base_url, api_key=self.service.api_key)

    def post(self, path: str, body: bytes) -> int:
        """Post a body; returns the status."""
        headers = {"Content-Type": "application/json", "X-API-Key": self.service.api_key}
        request = urllib.request.Request(f"{self.service.base_url}/{path}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                response.read()
                return int(response.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def keep_asking(self, name: str, requests: Iterator[Request], every_s: float) -> None:
        """Send a client's requests, every twentieth followed by a bad one, until it is over."""
        due = time.monotonic()
        for number, request in enumerate(requests):
            start = time.monotonic()
            try:
                request()
                if number % BAD == BAD - 1:
                    path, body = next(self._bad)
                    status = self.post(f"api/v1/{path}", body)
                    if not 400 <= status < 500:
                        self.faults.append(f"{path} {body[:60]!r} has status {status}")
            except Exception as error:
                self.faults.append(f"{name}: {type(error).__name__}: {error}")
            self.seconds[name].append(time.monotonic() - start)
            due = max(due + every_s, time.monotonic() - every_s)
            if self.over.wait(max(0.0, due - time.monotonic())):
                return


def batch(generator: np.random.Generator, sequences: int, length: int) -> list[Datum]:
    """Return sequences of random tokens to train on."""
    rows = generator.integers(3, 900, (sequences, length + 1)).tolist()
    return [
        Datum(
            model_input=ModelInput.from_ints(row[:-1]),
            loss_fn_inputs={"target_tokens": row[1:], "weights": [1.0] * length},
        )
        for row in rows
    ]


def leave(client: tinker.ServiceClient) -> None:
    """End a client's session. SDK 0.38 waits for ever if a heartbeat was under way (1 in 350)."""
    with contextlib.suppress(TimeoutError):
        client.close("success").result(10)


def train(load: Load, seed: int, sequences: int, length: int) -> Iterator[Request]:
    """Yield steps; a sampler after every tenth, and a session of its own after a hundred."""
    generator = np.random.default_rng(seed)

    def step(run: tinker.TrainingClient, number: int) -> None:
        run.forward_backward(batch(generator, sequences, length), "cross_entropy")
        run.optim_step(AdamParams(learning_rate=1e-4)).result()
        if number % 10 == 9:
            sampler = run.save_weights_and_get_sampling_client().result()
            prompt = ModelInput.from_ints([5, 6, 7])
            sampler.sample(prompt, 4, SamplingParams(max_tokens=8)).result()

    while True:
        client = load.connect()
        run = client.create_lora_training_client(load.service.model_name, rank=8).result()
        for number in range(100):
            yield partial(step, run, number)
        leave(client)


def sample(load: Load, samples: int, tokens: int, top: int) -> Iterator[Request]:
    """Yield requests of several replies to prompts that were not seen before."""
    sampler = load.connect().create_sampling_client(base_model=load.service.model_name).result()
    generator = np.random.default_rng(samples)
    shape = SamplingParams(max_tokens=tokens, stop=[])

    def ask() -> None:
        prompt = ModelInput.from_ints(generator.integers(3, 900, 200).tolist())
        sampler.sample(prompt, samples, shape, topk_sample_logprobs=top).result()

    return repeat(ask)


def converse(load: Load) -> Iterator[Request]:
    """Yield the turns of conversations of twelve, each prompt the one before with its reply."""
    sampler = load.connect().create_sampling_client(base_model=load.service.model_name).result()
    generator = np.random.default_rng(1)
    shape = SamplingParams(max_tokens=16, stop=[])

    def turn(tokens: list[int]) -> None:
        tokens.extend(generator.integers(3, 900, 60).tolist())
        reply = sampler.sample(ModelInput.from_ints(tokens), 1, shape).result()
        tokens.extend(reply.sequences[0].tokens)

    while True:
        tokens: list[int] = []
        yield from repeat(partial(turn, tokens), 12)


def chat(load: Load) -> Iterator[Request]:
    """Yield chats over the endpoint that is like OpenAI's."""

    def ask(number: int) -> None:
        messages = [{"role": "user", "content": f"Probability of {number}?"}]
        body = {"model": load.service.model_name, "messages": messages, "max_tokens": 16, "n": 2}
        status = load.post("v1/chat/completions", json.dumps(body).encode())
        if status != 200:
            raise ValueError(f"a chat has status {status}")

    return (partial(ask, number) for number in count())


def checkpoint(load: Load) -> Iterator[Request]:
    """Yield what saves a run's state, goes on from it in a new session, and deletes the rest."""
    client, rest = load.connect(), load.rest()
    run = client.create_lora_training_client(load.service.model_name, rank=32).result()

    def work() -> None:
        nonlocal client, run
        state = run.save_state("kept").result().path
        sampler = run.save_weights_for_sampler("shown").result().path
        rest.delete_checkpoint_from_tinker_path(sampler).result()
        before, client = client, load.connect()
        run = client.create_training_client_from_state_with_optimizer(state).result()
        leave(before)
        rest.delete_checkpoint_from_tinker_path(state).result()

    return repeat(work)


def come_and_go(load: Load) -> Iterator[Request]:
    """Yield visits: a session, a run, one step, a sampler, and goodbye."""
    generator = np.random.default_rng(3)

    def visit() -> None:
        client = load.connect()
        run = client.create_lora_training_client(load.service.model_name, rank=16).result()
        run.forward_backward(batch(generator, 2, 40), "cross_entropy").result()
        run.optim_step(AdamParams(learning_rate=1e-4)).result()
        run.save_weights_and_get_sampling_client().result()
        leave(client)

    return repeat(visit)


def product_seconds() -> float:
    """Return the processor time of a product of two matrices of 512 x 512, the mean of ten."""
    start = time.thread_time()
    for _ in range(10):
        _ = MATRIX @ MATRIX
    return (time.thread_time() - start) / 10


def tenth(load: Load, process: psutil.Process, seconds: float) -> dict[str, float]:
    """Return what the service held and did while the clients went on for some seconds."""
    asked = {name: len(taken) for name, taken in list(load.seconds.items())}
    before, memory, products = process.cpu_times(), [], []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        memory.append(process.memory_info().rss / 2**20)
        products.append(product_seconds())
        time.sleep(min(2.0, seconds / 10))
    after = process.cpu_times()
    taken = {name: load.seconds[name][asked.get(name, 0) :] for name in list(load.seconds)}
    requests = sum(map(len, taken.values()))
    spent = after.user + after.system - before.user - before.system
    return {
        "mean MiB": float(np.mean(memory)),
        "least MiB": min(memory),
        "most MiB": max(memory),
        "files": process.num_fds(),
        "connections": len(process.net_connections()),
        "threads": process.num_threads(),
        "requests": requests,
        "processor ms a request": 1000 * spent / requests,
        "in products": spent / requests / float(np.mean(products)),
        "median s of a turn": float(np.median(taken["conversations"])),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=str(MODEL_DIR))
    parser.add_argument("--minutes", type=float, default=60.0)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as state,
        LocalService(options.model, state_dir=state) as service,
    ):
        load = Load(service)
        clients = {
            "short training": (train(load, 4, 8, 60), 2.0),
            "other training": (train(load, 5, 4, 30), 2.0),
            "long training": (train(load, 6, 16, 300), 20.0),
            "many samples": (sample(load, 64, 32, 20), 10.0),
            "conversations": (converse(load), 1.5),
            "chats": (chat(load), 1.5),
            "checkpoints": (checkpoint(load), 6.0),
            "visits": (come_and_go(load), 15.0),
        }
        threads = [
            threading.Thread(target=load.keep_asking, args=(name, *client))
            for name, client in clients.items()
        ]
        for thread in threads:
            thread.start()
        process, rows = psutil.Process(service.pid), []
        for number in range(TENTHS):
            rows.append(
                {"tenth": number + 1, **tenth(load, process, 60 * options.minutes / TENTHS)}
            )
            print(json.dumps(rows[-1]), flush=True)
        load.over.set()
        for thread in threads:
            thread.join()
    names = list(rows[0])
    print(markdown_table(names, [[f"{row[name]:.5g}" for name in names] for row in rows]))
    print(json.dumps({name: len(taken) for name, taken in load.seconds.items()}))
    ratios = {
        name: float(np.mean([r[name] for r in rows[-3:]]) / np.mean([r[name] for r in rows[1:4]]))
        for name in ("mean MiB", "least MiB", "threads", "processor ms a request", "in products")
    }
    print(json.dumps({"last three tenths over the second to fourth": ratios}))
    print("\n".join(load.faults[:20]))
    return int(bool(load.faults) or max(ratios["mean MiB"], ratios["in products"]) > 1.05)


if __name__ == "__main__":
    sys.exit(main())
