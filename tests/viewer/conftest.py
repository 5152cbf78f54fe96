"""Runs to look at: scripted episodes on record, with made-up tokens; a server; a browser."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.evaluation.written_run import scale_of, write_evaluation
from tests.viewer.browser import Browser, find_chromium
from tokengym.agents.rollouts import RolloutOrigin, RolloutRecord, record_play, train_segment
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.presets import preset
from tokengym.agents.viewer import Viewer, open_runs
from tokengym.envs import baselines, make_world, play

STEPS, GROUPS, SIZE = 3, 4, 4
HOSTILE = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'></script><!-- "
    "<svg onload=window.hacked=1> javascript:window.hacked=1 \u2028 \x1b[31m \u202e"
)
"""What a model may say; whoever shows it as anything but text is hacked."""


def rollout(world: str, kind: str, step: int | None, group: int, member: int) -> RolloutRecord:
    """An episode of a script, as if a model had sampled it; even groups of step 1 are dead."""
    made, known = make_world(world, preset(world).level, prompt="terse"), baselines(world)
    dead = step == 1 and group % 2 == 0
    split = "train" if kind == "train" else "test"
    key = (0,) if dead else (group, member)
    played = play(made, made.task(split, group), known["random"], seed=key)
    origin = RolloutOrigin(
        kind, step, group, member, policy="a policy", options={"prompt": "terse"}
    )
    record = record_play(origin, played, made.spec.roles[0])
    turns = [
        replace(
            turn,
            pieces=(pieces := tuple((turn.said or "").replace(" ", "\0 ").split("\0"))),
            tokens=tuple(range(len(pieces))),
            logprobs=tuple(-0.9 * at for at in range(len(pieces))),
            completion_tokens=len(pieces),
        )
        for turn in record.turns
    ]
    return replace(record, turns=turns, advantage=0.0 if kind == "train" else None)


def write_run(folder: Path, world: str) -> RunFolder:
    """A run folder with three steps and an evaluation."""
    run = RunFolder(folder)
    run.write_config(preset(world, steps=STEPS, groups_per_batch=GROUPS, group_size=SIZE))
    rows = []
    for step in range(STEPS):
        records = [
            rollout(world, "train", step, group, member)
            for group in range(GROUPS)
            for member in range(SIZE)
        ]
        if step == 2:
            last = records[-1].turns[-1]
            hostile = replace(
                last, said=HOSTILE, read=HOSTILE, pieces=(HOSTILE,), tokens=(7,), logprobs=(-1.0,)
            )
            records[-1] = replace(records[-1], turns=[*records[-1].turns[:-1], hostile])
        run.rollouts.append(train_segment(step), records)
        mean = sum(record.total for record in records) / len(records)
        metrics = {"env/all/reward/total": mean, "env/all/reward_uniform_group_rate": step % 2 / 2}
        rows.append({"step": step, **metrics})
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    evaluate(run, world, {"before": 0})
    return run


def evaluate(run: RunFolder, world: str, members: dict[str, int]) -> None:
    """Write the evaluation of a run: of each policy its rollouts of six Tasks."""
    levels = {"null": 0.0, "random": 0.4, "blind": 0.6, "oracle": 0.9}
    returns = {name: (level,) * 6 for name, level in levels.items()}
    replies = tuple(f"the oracle's {task}" for task in range(6))
    scale = replace(scale_of(**returns), label="best x", reachable="random", replies=replies)
    played = {
        policy: [[rollout(world, "evaluation", None, group, member) for group in range(6)]]
        for policy, member in members.items()
    }
    write_evaluation(run, played, [scale])


@pytest.fixture(scope="session")
def runs_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs."""
    folder = tmp_path_factory.mktemp("runs")
    write_run(folder / "first", "forecast")
    write_run(folder / "second", "forecast")
    return folder


@contextmanager
def serving(runs: Path) -> Iterator[Viewer]:
    """A server of the runs, which ends with the block even if a test in it fails."""
    with Viewer(open_runs([runs])) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="session")
def viewer(runs_folder: Path) -> Iterator[Viewer]:
    """A server of the two runs."""
    with serving(runs_folder) as server:
        yield server


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One headless Chromium for all tests."""
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium is installed")
    opened = Browser(program, tmp_path_factory.mktemp("chromium"))
    yield opened
    opened.close()
