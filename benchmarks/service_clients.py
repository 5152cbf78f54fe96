"""Small requests to the local service, alone and beside a client that asks for much.

    python benchmarks/service_clients.py [--model DIR] [--batches 12] [--samples 8] [--rounds 20]

One client queues training batches, or sampling requests of 256 sequences each, and keeps that many
queued. Another takes training steps on one short sequence, or samples one of four tokens, each when
the one before has come back. Prints the median and the 95th percentile of the other's seconds,
alone and beside the first one, and their ratios. To compare with the code of another revision, set
PYTHONPATH to the `src` of a checkout of it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import tinker
from tinker.types import AdamParams, Datum, ModelInput, SamplingParams

from tokengym.agents.service import LocalService
from tokengym.agents.toy_model import MODEL_DIR


def _datum(generator: np.random.Generator, length: int) -> Datum:
    tokens = generator.integers(3, 900, length + 1).tolist()
    return Datum(
        model_input=ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={"target_tokens": tokens[1:], "weights": [1.0] * length},
    )


@contextmanager
def _kept_busy(ask: Callable[[], Any], queued: int) -> Iterator[None]:
    """Keep `queued` requests in progress within the block."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            ask()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(queued)]
    for thread in threads:
        thread.start()
    time.sleep(3.0)
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(300)


def _seconds(work: Callable[[], Any], rounds: int, most_s: float) -> dict[str, float]:
    taken: list[float] = []
    begun = time.monotonic()
    while len(taken) < rounds and (not taken or time.monotonic() - begun < most_s):
        start = time.monotonic()
        work()
        taken.append(time.monotonic() - start)
    return {
        "rounds": len(taken),
        "median": round(float(np.median(taken)), 4),
        "p95": round(float(np.quantile(taken, 0.95)), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=str(MODEL_DIR))
    parser.add_argument("--batches", type=int, default=12, help="training batches that are queued")
    parser.add_argument("--length", type=int, default=400, help="tokens of each of their sequences")
    parser.add_argument("--data", type=int, default=32, help="sequences of each batch")
    parser.add_argument("--samples", type=int, default=8, help="requests of 256 sequences")
    parser.add_argument("--rounds", type=int, default=20, help="small requests of each kind")
    parser.add_argument("--most-s", type=float, default=120.0, help="seconds for each row")
    options = parser.parse_args()
    generator = np.random.default_rng(0)
    with (
        tempfile.TemporaryDirectory() as state,
        LocalService(options.model, state_dir=state) as service,
    ):
        large, small = (
            tinker.ServiceClient(base_url=service.base_url, api_key=service.api_key)
            for _ in range(2)
        )
        runs = [
            client.create_lora_training_client(service.model_name, rank=8).result()
            for client in (large, small)
        ]
        samplers = [
            client.create_sampling_client(base_model=service.model_name).result()
            for client in (large, small)
        ]
        batch = [_datum(generator, options.length) for _ in range(options.data)]
        one = [_datum(generator, 60)]
        prompt = ModelInput.from_ints(generator.integers(3, 900, 60).tolist())
        other = ModelInput.from_ints(generator.integers(3, 900, 60).tolist())
        many = SamplingParams(max_tokens=200, stop=[])
        few = SamplingParams(max_tokens=4, stop=[])

        def train_much() -> None:
            runs[0].forward_backward(batch, "cross_entropy").result()

        def sample_much() -> None:
            samplers[0].sample(prompt, 256, many).result()

        def step() -> None:
            runs[1].forward_backward(one, "cross_entropy")
            runs[1].optim_step(AdamParams(learning_rate=1e-4)).result()

        def sample() -> None:
            samplers[1].sample(other, 1, few).result()

        kinds = {"training step": step, "sample": sample}
        loads = {
            f"{options.batches} batches": (train_much, options.batches),
            f"{options.samples} x 256 samples": (sample_much, options.samples),
        }
        for work in kinds.values():
            _seconds(work, 3, options.most_s)
        alone = {name: _seconds(work, 40, options.most_s) for name, work in kinds.items()}
        print(json.dumps({"alone": alone}), flush=True)
        for load, (ask, queued) in loads.items():
            with _kept_busy(ask, queued):
                for name, work in kinds.items():
                    found = _seconds(work, options.rounds, options.most_s)
                    ratio = round(found["p95"] / alone[name]["p95"], 1)
                    print(
                        json.dumps({"load": load, "small": name, **found, "ratio of p95": ratio}),
                        flush=True,
                    )


if __name__ == "__main__":
    main()
