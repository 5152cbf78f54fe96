"""Speed and memory of the local Tinker service's arithmetic, as ratios within one run.

    python -m benchmarks.service_tokens [--part sampling ...] [--prompts 8] [--threads 2]

Sampling: 8 prompts, 8 samples each, against `transformers.generate` in float32 with the same model,
prompts and tokens, and against our decoder without shared prompts. Training: a step on the 64
sequences against plain peft in float32, and against the matrix products alone. What is compared is
run turn by turn; each ratio is the median of those of neighbours. Times are the processor's, which
other work changes less; with idle threads asleep they are those of work done. The ratios hold on
another machine, the seconds do not. The gap is the difference between the log-probability of a
sampled token and the one that training computes for it, before and after steps that move the
weights about: random advantages, a learning rate of 5e-4. Memory is measured in separate processes,
what `--deterministic` costs on samples of one token limit. One thread is compared with several in
wall-clock time, which takes an idle machine, with GOMP_SPINCOUNT as it is set.
"""

from __future__ import annotations

import argparse
import dataclasses
import multiprocessing
import os
import resource
import statistics
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

# As the service does it: idle threads that spin would be counted, and would slow the others down.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "0")

import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from tinker.types import AdamParams
from transformers import AutoModelForCausalLM

from benchmarks.served import add_options, first_episodes, generate, sample_all, served_model
from tokengym.agents.models import resolve_model
from tokengym.agents.service.engine.adapters import LoraSpec
from tokengym.agents.service.engine.base_model import BaseModel, load_base_model
from tokengym.agents.service.engine.compute_thread import at_once
from tokengym.agents.service.engine.forward import packed_forward
from tokengym.agents.service.engine.linear import classify_modules, lora_layers
from tokengym.agents.service.engine.trainer import Datum, LossRequest, Trainer
from tokengym.agents.service.generation.decoder import Decoder, SlotDecoder
from tokengym.agents.service.generation.jobs import SampleRequest
from tokengym.agents.service.generation.plain_decoder import PlainDecoder
from tokengym.agents.service.generation.prefix_cache import PrefixCache
from tokengym.agents.service.generation.sampler import Sampler
from tokengym.agents.service.generation.token_sampling import TokenSampling
from tokengym.envs.core.world import PROMPTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    Prompts = list[NDArray[np.int32]]

SIZE, RANK = 8, 16
PLAIN_BATCH = 8
PRECISIONS = ("float32", "bfloat16")
PARTS = ("sampling", "training", "gap", "memory", "deterministic", "threads")


def requests(
    weights: str, prompts: Prompts, tokens: int, stops: frozenset[int] = frozenset()
) -> Iterator[SampleRequest]:
    """Yield a request for `SIZE` sequences of each prompt."""
    for seed, prompt in enumerate(prompts):
        yield SampleRequest(weights, prompt, SIZE, TokenSampling(seed), tokens, stops)


class Ours:
    """The service's sampler and trainer on one model, without HTTP."""

    def __init__(self, directory: Path, precision: str) -> None:
        self.base: BaseModel = load_base_model(directory, "cpu", precision)
        forward = packed_forward(self.base.trained, self.base.device, share=True)
        self.forward = forward
        self.trainer = Trainer(forward, self.base.vocabulary, self.base.context)
        self.trainer.create("run", LoraSpec(RANK, seed=1))

    def sample(
        self, prompts: Prompts, tokens: int, *, shared: bool = True, ended: bool = False
    ) -> list[Datum]:
        """Sample `SIZE` sequences for each prompt with the run's adapter; data to train on.

        Sequences have `tokens` tokens each, or fewer where the model ends them and `ended` is true.
        """
        layers = lora_layers(self.base.sampled)
        for name, adapter in self.trainer.run("run").export().adapters().items():
            layers[name].attach_for_sampling(adapter)

        def decoder(store: PrefixCache, weights: str) -> Decoder:
            if shared:
                return SlotDecoder(self.base.sampled, store, weights)
            return PlainDecoder(self.base.sampled)

        scoring = dataclasses.replace(self.forward, model=self.base.sampled)
        sampler = Sampler(scoring, decoder, PrefixCache(1 << 28), lambda _: None, lambda _: "")
        stops = self.base.eos if ended else frozenset()
        results = sample_all(sampler, requests("run", prompts, tokens, stops))
        generator = np.random.default_rng(0)
        data: list[Datum] = []
        for prompt, result in zip(prompts, results, strict=True):
            for sequence in result.sequences:
                whole = np.append(prompt, np.array(sequence.tokens, np.int32))
                own = np.arange(len(whole) - 1) >= len(prompt) - 1
                logprobs = np.zeros(len(own), np.float32)
                logprobs[own] = sequence.logprobs
                inputs: dict[str, Any] = {
                    "target_tokens": whole[1:].astype(np.int64),
                    "logprobs": logprobs,
                    "advantages": (own * generator.normal()).astype(np.float32),
                }
                data.append(Datum(whole[:-1], inputs))
        return data

    def train(self, data: list[Datum]) -> NDArray[np.float32]:
        """Add the gradients of a step; returns each token's gap of log-probabilities."""
        request = LossRequest(data, "importance_sampling")
        found = at_once(self.trainer.forward_backward("run", request)).logprobs
        gaps = [
            np.abs(logprobs - datum.inputs["logprobs"])[datum.inputs["advantages"] != 0]
            for logprobs, datum in zip(found, data, strict=True)
        ]
        return np.concatenate(gaps)

    def products(self, data: list[Datum]) -> None:
        """The products with the model's weights that `train` cannot do without."""
        tokens = [datum.tokens for datum in data]
        batches = list(self.forward.plan(tokens))
        trained = sum(int((datum.inputs["advantages"] != 0).sum()) for datum in data)
        head = self.base.trained.get_output_embeddings()  # type: ignore[operator]
        with torch.no_grad():
            for batch in batches:
                positions = sum(len(branch.tokens) - branch.shared for branch in batch)
                for layer in lora_layers(self.base.trained).values():
                    weight = layer.weight
                    x = torch.ones(positions, layer.in_features, dtype=weight.dtype)
                    y = x @ weight.T
                    if layer is head:
                        y = y[: trained // len(batches)]
                    y @ weight


class Plain:
    """The same with transformers and peft as their documentation has it, in float32."""

    def __init__(self, directory: Path) -> None:
        read = AutoModelForCausalLM.from_pretrained
        self.sampled: Any = read(directory, dtype=torch.float32)
        model: Any = read(directory, dtype=torch.float32)
        targets = [name for name, _ in classify_modules(model)]
        config = LoraConfig(r=RANK, lora_alpha=32, target_modules=targets)
        self.trained: Any = get_peft_model(model, config)

    def sample(self, prompts: Prompts, tokens: int) -> None:
        """Sample with `generate`, prompts padded on the left."""
        longest = max(len(prompt) for prompt in prompts)
        ids = torch.zeros(len(prompts), longest, dtype=torch.long)
        mask = torch.zeros(len(prompts), longest, dtype=torch.long)
        for line, prompt in enumerate(prompts):
            ids[line, longest - len(prompt) :] = torch.from_numpy(prompt.astype(np.int64))
            mask[line, longest - len(prompt) :] = 1
        generate(self.sampled, ids, mask, tokens, num_return_sequences=SIZE)

    def train(self, data: list[Datum]) -> None:
        """Add the gradients of a step, `PLAIN_BATCH` sequences at a time."""
        for start in range(0, len(data), PLAIN_BATCH):
            batch = data[start : start + PLAIN_BATCH]
            longest = max(len(datum.tokens) for datum in batch)
            shape = (len(batch), longest)
            ids, targets = (torch.zeros(shape, dtype=torch.long) for _ in range(2))
            mask, logprobs, advantages = (torch.zeros(shape) for _ in range(3))
            for line, datum in enumerate(batch):
                own = slice(len(datum.tokens))
                ids[line, own] = torch.from_numpy(datum.tokens.astype(np.int64))
                mask[line, own] = 1
                targets[line, own] = torch.from_numpy(datum.inputs["target_tokens"])
                logprobs[line, own] = torch.from_numpy(datum.inputs["logprobs"])
                advantages[line, own] = torch.from_numpy(datum.inputs["advantages"])
            logits = self.trained(input_ids=ids, attention_mask=mask).logits
            picked = torch.log_softmax(logits, -1).gather(-1, targets[..., None])[..., 0]
            (-torch.exp(picked - logprobs) * advantages).sum().backward()


def compare(
    runs: Mapping[str, Callable[[], object]],
    pairs: list[tuple[str, str]],
    n: int,
    clock: Callable[[], float] = time.process_time,
) -> None:
    """Time several ways turn by turn; print seconds and, of `pairs`, the ratios of neighbours."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(n):
        for name, run in runs.items():
            start = clock()
            run()
            times[name].append(clock() - start)
            print(f"  {name:44s} {times[name][-1]:8.2f} s", flush=True)
    for first, second in pairs:
        ratios = [other / own for own, other in zip(times[first], times[second], strict=True)]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(f"  {second} / {first}: {statistics.median(ratios):.2f} ({spread})")


def peak_memory(directory: Path, precision: str, prompts: Prompts, tokens: int) -> None:
    """Sample and train for two steps; print the most memory this process held."""
    ours = Ours(directory, precision)
    for _ in range(2):
        ours.train(ours.sample(prompts, tokens))
        ours.trainer.optim_step("run", AdamParams(learning_rate=1e-4))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"  {precision:44s} {peak:8.2f} GB", flush=True)


def compare_sampling(
    ours: Mapping[str, Ours], plain: Plain, prompts: Prompts, arguments: argparse.Namespace
) -> None:
    """Compare with `generate`, and with our decoder without shared prompts."""
    print("sampling, cold prompts:")
    tokens = arguments.tokens
    runs: dict[str, Callable[[], object]] = {}
    pairs = []
    for name, own in ours.items():
        own.sample(prompts[:1], 2)
        runs[name] = partial(own.sample, prompts, tokens)
        runs[f"{name}, prompts not shared"] = partial(own.sample, prompts, tokens, shared=False)
        pairs += [(name, "transformers.generate"), (name, f"{name}, prompts not shared")]
    runs["transformers.generate"] = partial(plain.sample, prompts, tokens)
    compare(runs, pairs, arguments.turns)


def compare_training(
    ours: Mapping[str, Ours], plain: Plain, prompts: Prompts, arguments: argparse.Namespace
) -> None:
    """Compare with peft, and with the products that a step cannot do without."""
    print("a training step, forward and backward:")
    data = next(iter(ours.values())).sample(prompts, arguments.tokens)
    runs: dict[str, Callable[[], object]] = {}
    pairs = []
    for name, own in ours.items():
        own.train(data[:1])
        runs[name] = partial(own.train, data)
        runs[f"products alone, {name}"] = partial(own.products, data)
        pairs += [(name, "peft"), (f"products alone, {name}", name)]
    runs["peft"] = partial(plain.train, data)
    compare(runs, pairs, arguments.turns)


def compare_threads(ours: Mapping[str, Ours], prompts: Prompts, args: argparse.Namespace) -> None:
    """Compare one thread with `--threads`, in sampling and in training."""
    print(f"threads, wall-clock time, GOMP_SPINCOUNT={os.environ['GOMP_SPINCOUNT']}:")

    def run(work: Callable[[], object], threads: int) -> None:
        torch.set_num_threads(threads)
        work()

    runs: dict[str, Callable[[], object]] = {}
    pairs = []
    for name, own in ours.items():
        for kind, work in (
            ("sampling", partial[object](own.sample, prompts, args.tokens)),
            ("training", partial[object](own.train, own.sample(prompts, args.tokens))),
        ):
            one, every = (f"{kind}, {name}, threads: {count}" for count in (1, args.threads))
            runs |= {one: partial(run, work, 1), every: partial(run, work, args.threads)}
            pairs.append((every, one))
    compare(runs, pairs, args.turns, time.perf_counter)


def measure_gap(directory: Path, prompts: Prompts, arguments: argparse.Namespace) -> None:
    """Print how far log-probabilities of sampling and of training are apart, by quantiles."""
    print("gap of log-probabilities: mean, root mean square, 50 %, 99 %, most, share that is zero")
    few, ended = prompts[: arguments.step_prompts], arguments.world is not None
    for precision in arguments.precision or PRECISIONS:
        ours = Ours(directory, precision)
        for steps in (0, arguments.steps):
            for _ in range(steps):
                ours.train(ours.sample(few, arguments.tokens, ended=ended))
                ours.trainer.optim_step("run", AdamParams(learning_rate=5e-4))
            data = ours.sample(prompts, arguments.tokens, ended=ended)
            gaps = ours.train(data)
            ours.trainer.run("run").reset_optimizer()
            half, most = np.quantile(gaps, (0.5, 0.99))
            spread = (gaps.mean(), np.sqrt(np.square(gaps).mean()), half, most, gaps.max())
            shown = " ".join(f"{one:.2g}" for one in (*spread, (gaps == 0).mean()))
            print(f"  {precision}, {steps} steps, {len(gaps)} tokens: {shown}", flush=True)


def compare_deterministic(directory: Path, prompts: Prompts, arguments: argparse.Namespace) -> None:
    """Print tokens sampled per second of processor time, by default and with `deterministic`."""
    print("sampling, tokens per second of processor time:")
    for name in ("default", "deterministic"):
        with served_model(directory, deterministic=name == "deterministic") as served:
            results, taken = [], 0.0
            for _ in range(arguments.turns + 1):
                start = time.process_time()
                asked = requests("base", prompts, arguments.tokens)
                results = sample_all(served.sampler, asked)
                taken = time.process_time() - start
        count = sum(len(one.tokens) for result in results for one in result.sequences)
        print(f"  {name:44s} {count / taken:8.0f}", flush=True)


def main() -> None:
    """Run all comparisons."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", action="append", choices=PARTS, help="what to measure (all)")
    add_options(parser)
    parser.add_argument("--tokens", type=int, default=24, help="sampled tokens of each sequence")
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--shortest", type=int, default=96, help="tokens; the longest has twice")
    parser.add_argument("--world", help="Tasks of this world as prompts, not random tokens")
    parser.add_argument("--prompt", default="full", choices=PROMPTS, help="of that world")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5, help="training steps before the gap")
    parser.add_argument("--precision", action="append", choices=PRECISIONS, help="ours (all)")
    parser.add_argument("--step-prompts", type=int, default=8, help="prompts of such a step")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    directory = resolve_model(arguments.model).directory
    parts = arguments.part or PARTS
    generator = np.random.default_rng(0)
    vocabulary = load_base_model(directory, "cpu", "float32").vocabulary
    low, high = arguments.shortest, 2 * arguments.shortest + 1
    prompts = [
        generator.integers(5, vocabulary, length).astype(np.int32)
        for length in generator.integers(low, high, arguments.prompts)
    ]
    if arguments.world is not None:
        begun = first_episodes(
            arguments.world, directory, arguments.prompts, prompt=arguments.prompt
        )
        prompts = [np.array(episode.observation, np.int32) for episode in begun]
    print(f"{arguments.prompts} prompts x {SIZE}, {arguments.tokens} tokens each")
    if {"sampling", "training", "threads"} & set(parts):
        ours = {name: Ours(directory, name) for name in arguments.precision or PRECISIONS}
        if "threads" in parts:
            compare_threads(ours, prompts, arguments)
        if {"sampling", "training"} & set(parts):
            plain = Plain(directory)
            if "sampling" in parts:
                compare_sampling(ours, plain, prompts, arguments)
            if "training" in parts:
                compare_training(ours, plain, prompts, arguments)
    if "gap" in parts:
        measure_gap(directory, prompts, arguments)
    if "deterministic" in parts:
        compare_deterministic(directory, prompts, arguments)
    if "memory" in parts:
        print("peak resident memory:", flush=True)
        for name in arguments.precision or PRECISIONS:
            process = multiprocessing.get_context("spawn").Process(
                target=peak_memory, args=(directory, name, prompts, arguments.tokens)
            )
            process.start()
            process.join()


if __name__ == "__main__":
    main()
