"""Groups roll out in other processes through the cookbook's rollout executor."""

import asyncio
import importlib
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tinker_cookbook.rl.rollouts import (
    do_group_rollout_and_filter_constant_reward,
    set_rollout_executor,
)
from tinker_cookbook.rl.types import TrajectoryGroup

from tests.warm import CONTEXT
from tokengym.agents.tinker.groups import TaskGroupBuilder
from tokengym.envs.registry import make_world

SAMPLER = '''
import asyncio
import os

import numpy as np
import tinker
from tokengym.envs.tokens.codec import ByteCodec


class Sampler:
    """Answers every prompt with one forecast, and encodes its process in the log-probabilities."""

    async def sample_async(self, prompt, num_samples, sampling_params):
        await asyncio.sleep(0)
        tokens = ByteCodec().write(f"Probability: 0.{sum(prompt.to_ints()) % 9}50")
        sequence = tinker.SampledSequence(
            stop_reason="stop",
            sequence_id="one",
            tokens_np=np.array(tokens, dtype=np.int32),
            logprobs_np=np.full(len(tokens), -os.getpid(), dtype=np.float32),
        )
        return tinker.SampleResponse(sequences=[sequence])
'''


@pytest.fixture
def sampler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a stand-in for the hosted sampler that other processes can import too."""
    (tmp_path / "far_sampler.py").write_text(SAMPLER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    yield importlib.import_module("far_sampler").Sampler()
    del sys.modules["far_sampler"]


@pytest.fixture
def groups(tokenizer_named: Callable[[str], str]) -> list[TaskGroupBuilder]:
    world = make_world("forecast")
    first = TaskGroupBuilder(world.task("train", 0), "byte", 2)
    return [first, replace(first, task=world.task("train", 1))]


def roll_out(
    groups: list[TaskGroupBuilder], sampler: Any, executor: Executor | None
) -> list[TrajectoryGroup | None]:
    async def run() -> list[TrajectoryGroup | None]:
        set_rollout_executor(executor)
        rollouts = [
            do_group_rollout_and_filter_constant_reward(
                sampler, group, 40, 1.0, do_remove_constant_reward_groups=False
            )
            for group in groups
        ]
        return list(await asyncio.gather(*rollouts))

    return asyncio.run(run())


@pytest.fixture(params=["pool", "dask"])
def executor(request: pytest.FixtureRequest, sampler: Any) -> Iterator[Executor]:
    if request.param == "pool":
        with ProcessPoolExecutor(max_workers=1, mp_context=CONTEXT) as pool:
            yield pool
        return
    distributed = pytest.importorskip("distributed")
    with distributed.Client(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None
    ) as client:
        yield client.get_executor()


def test_rollouts_elsewhere_equal_rollouts_here(
    groups: list[TaskGroupBuilder], sampler: Any, executor: Executor
) -> None:
    here = roll_out(groups, sampler, None)
    there = roll_out(groups, sampler, executor)
    for near, far in zip(here, there, strict=True):
        assert near is not None
        assert far is not None
        assert near.get_total_rewards() == far.get_total_rewards()
        assert near.metrics_G == far.metrics_G
        assert [r.transitions[0].ob for r in near.trajectories_G] == [
            r.transitions[0].ob for r in far.trajectories_G
        ]
        (pid,) = {r.transitions[0].ac.logprobs[0] for r in far.trajectories_G}
        assert pid not in {r.transitions[0].ac.logprobs[0] for r in near.trajectories_G}
