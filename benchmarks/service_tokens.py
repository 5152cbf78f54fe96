"""Tokens per second of the local Tinker service's arithmetic, as ratios within one run.

    python benchmarks/service_tokens.py [--hidden 192 --layers 6] [--threads 2]

Sampling: 16 prompts, 8 samples each, beside `transformers.generate` with the same model, prompts,
number of samples and tokens. Training: forward_backward over the same 128 sequences with prompts
shared and not shared. Every pair is measured turn by turn and the median is shown; the ratio is
what holds on another machine, the tokens per second are not.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from tokengym.agents.service.engine.adapters import LoraAdapters, LoraSpec
from tokengym.agents.service.engine.base_model import BaseModel, load_base_model
from tokengym.agents.service.engine.forward import packed_forward
from tokengym.agents.service.engine.trainer import Datum, LossRequest, Trainer
from tokengym.agents.service.generation.decoder import SharedPromptDecoder
from tokengym.agents.service.generation.prefix_cache import PrefixCache
from tokengym.agents.service.generation.token_sampling import (
    TokenSampling,
    sample_tokens,
    sequence_key,
    uniforms,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

GROUPS, SIZE = 16, 8
VOCABULARY = 1024


def make_base_model(hidden: int, layers: int) -> BaseModel:
    """A random Qwen3-like model of the asked size."""
    with tempfile.TemporaryDirectory() as folder:
        words = {f"w{token}": token for token in range(VOCABULARY)}
        tokenizer = Tokenizer(WordLevel(words, unk_token="w1"))
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="w0").save_pretrained(folder)
        eos = 0
        torch.manual_seed(0)
        heads = max(1, hidden // 32)
        config = Qwen3Config(
            vocab_size=VOCABULARY,
            hidden_size=hidden,
            intermediate_size=hidden * 8 // 3,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=max(1, heads // 3),
            head_dim=32,
            max_position_embeddings=1024,
            tie_word_embeddings=True,
            eos_token_id=eos,
            pad_token_id=eos,
        )
        Qwen3ForCausalLM(config).save_pretrained(folder)
        return load_base_model(Path(folder))


def sample_ours(base_model: BaseModel, prompts: list[NDArray[np.int32]], tokens: int) -> None:
    """Sample `SIZE` sequences for each prompt, as the service does."""
    rows = [prompt for prompt in prompts for _ in range(SIZE)]
    decoder = SharedPromptDecoder(base_model.sampled, PrefixCache(1 << 28), "base")
    samplings = [TokenSampling(seed=row) for row in range(len(rows))]
    keys = np.array([sequence_key(row, 0) for row in range(len(rows))], np.uint64)
    logits = decoder.admit(rows)
    for step in range(tokens):
        drawn, _, _ = sample_tokens(logits, samplings, uniforms(keys, np.full(len(rows), step)))
        if step + 1 < tokens:
            logits = decoder.step(drawn)


def sample_generate(base_model: BaseModel, prompts: list[NDArray[np.int32]], tokens: int) -> None:
    """The same with `transformers.generate`, left-padded as its documentation asks."""
    longest = max(len(prompt) for prompt in prompts)
    ids = torch.zeros(len(prompts), longest, dtype=torch.long)
    mask = torch.zeros(len(prompts), longest, dtype=torch.long)
    for line, prompt in enumerate(prompts):
        ids[line, longest - len(prompt) :] = torch.from_numpy(prompt.astype(np.int64))
        mask[line, longest - len(prompt) :] = 1
    model: Any = base_model.sampled
    with torch.inference_mode():
        model.generate(
            input_ids=ids.to(base_model.device),
            attention_mask=mask.to(base_model.device),
            do_sample=True,
            top_k=0,
            num_return_sequences=SIZE,
            max_new_tokens=tokens,
            min_new_tokens=tokens,
        )


def make_data(prompts: list[NDArray[np.int32]], tokens: int) -> list[Datum]:
    """A group of rollouts for each prompt."""
    generator = np.random.default_rng(1)
    data = []
    for prompt in prompts:
        for _ in range(SIZE):
            reply = generator.integers(5, VOCABULARY, tokens)
            whole = np.concatenate([prompt, reply]).astype(np.int32)
            weight = (np.arange(len(whole) - 1) >= len(prompt) - 1).astype(np.float32)
            inputs: dict[str, Any] = {
                "target_tokens": whole[1:].astype(np.int64),
                "logprobs": -weight,
                "advantages": weight * generator.normal(),
            }
            data.append(Datum(whole[:-1], inputs))
    return data


def compare(
    names: tuple[str, str], runs: tuple[Callable[[], None], Callable[[], None]], tokens: int, n: int
) -> None:
    """Time two ways of doing the same turn by turn; print tokens per second and the ratio."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(n + 1):
        for run, spent in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            # The first turn warms up.
            if turn:
                spent.append(time.perf_counter() - start)
    first, second = (statistics.median(spent) for spent in times)
    ratios = [other / own for own, other in zip(*times, strict=True)]
    print(f"  {names[0]:34s} {tokens / first:10.0f} tokens/s")
    print(f"  {names[1]:34s} {tokens / second:10.0f} tokens/s")
    print(f"  ratio {statistics.median(ratios):.2f} (of {n}: {min(ratios):.2f}-{max(ratios):.2f})")


def main() -> None:
    """Run both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hidden", type=int, default=192)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=12, help="sampled tokens of each sequence")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    base_model = make_base_model(arguments.hidden, arguments.layers)
    generator = np.random.default_rng(0)
    lengths = generator.integers(60, 121, GROUPS)
    prompts = [generator.integers(5, VOCABULARY, length).astype(np.int32) for length in lengths]
    weights = sum(parameter.numel() for parameter in base_model.sampled.parameters())
    print(
        f"{weights / 1e6:.1f} M parameters, {GROUPS} prompts x {SIZE}, "
        f"{arguments.tokens} tokens each"
    )

    print("sampling, sampled tokens:")
    compare(
        ("shared prompts (ours)", "transformers.generate"),
        (
            lambda: sample_ours(base_model, prompts, arguments.tokens),
            lambda: sample_generate(base_model, prompts, arguments.tokens),
        ),
        GROUPS * SIZE * arguments.tokens,
        arguments.turns,
    )

    data = make_data(prompts, arguments.tokens)
    request = LossRequest(data, "importance_sampling")
    trainers = []
    for name, share in (("shared", True), ("plain", False)):
        own = make_base_model(arguments.hidden, arguments.layers)
        forward = packed_forward(own.trained, own.device, share=share)
        trainer = Trainer(LoraAdapters(own.trained), forward, own.vocabulary, own.context)
        trainer.create(name, LoraSpec(32, seed=1))
        trainers.append(trainer)
    print("forward_backward, all tokens:")
    compare(
        ("prompts shared", "every sequence by itself"),
        (
            lambda: void(trainers[0].forward_backward("shared", request)),
            lambda: void(trainers[1].forward_backward("plain", request)),
        ),
        sum(len(datum.tokens) for datum in data),
        arguments.turns,
    )


def void(_result: object) -> None:
    """Drop a result."""


if __name__ == "__main__":
    main()
