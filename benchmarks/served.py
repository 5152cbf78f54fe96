"""A served model without HTTP, and what plain transformers does beside it; for the benchmarks."""

from __future__ import annotations

import tempfile
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tokengym.agents.service.config import ServiceConfig
from tokengym.agents.service.engine.checkpoints import CheckpointStore
from tokengym.agents.service.generation.jobs import SampleRequest, SampleResult
from tokengym.agents.service.served_model import ServedModel
from tokengym.agents.tinker.codec import codec_name, codec_named
from tokengym.envs.registry import make_world
from tokengym.envs.tokens.episode import Episode

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from tokengym.agents.service.generation.sampler import Sampler


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that all of these benchmarks have."""
    parser.add_argument("--model", default="smollm2", help="a name that `tokengym models` knows")
    parser.add_argument("--threads", type=int, default=2)


@contextmanager
def served_model(directory: Path, *, deterministic: bool = False) -> Iterator[ServedModel]:
    """Serve a model within the block."""
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder)
        config = ServiceConfig(models=(directory,), state_dir=state, deterministic=deterministic)
        yield ServedModel(directory, config, CheckpointStore(state), lambda: 1)


def sample_all(sampler: Sampler, requests: Iterable[SampleRequest]) -> list[SampleResult]:
    """Sample requests that come at once; returns their results in the same order."""
    futures: list[Future[SampleResult]] = []
    for request in requests:
        futures.append(Future())
        sampler.submit(request, futures[-1])
    while sampler.busy:
        sampler.step()
    return [future.result() for future in futures]


def first_episodes(
    name: str, directory: Path, count: int, copies: int = 1, **options: Any
) -> list[Episode]:
    """Begin `copies` episodes of each of a world's first held-out Tasks, in a model's tokens."""
    world = make_world(name, **options)
    codec = codec_named(codec_name("qwen3_instruct", str(directory)))
    tasks = world.first_tasks("test", count)
    return [Episode(world.fork(), task, codec) for task in tasks for _ in range(copies)]


def generate(
    model: Any, ids: torch.Tensor, mask: torch.Tensor, tokens: int, **options: Any
) -> torch.Tensor:
    """Sample so many tokens with `transformers.generate` after prompts [B, L], padded left."""
    with torch.inference_mode():
        found: torch.Tensor = model.generate(
            input_ids=ids,
            attention_mask=mask,
            do_sample=True,
            top_k=0,
            max_new_tokens=tokens,
            min_new_tokens=tokens,
            pad_token_id=0,
            **options,
        )
    return found
