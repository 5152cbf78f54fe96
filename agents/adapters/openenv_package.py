"""A folder that OpenEnv's own commands accept as an environment: `openenv.yaml` and its files.

The manifest states what was measured: how far the oracle's mean return is from the top of the
declared range, and how far doing nothing is.
"""

import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

import yaml

from tokengym import __version__
from tokengym.agents.adapters.openenv import WorldEnvironment
from tokengym.envs.adapters.start import Rollouts
from tokengym.envs.core.seeding import generator
from tokengym.envs.registry import baselines
from tokengym.rewards.bounds import Range

_MEASURED = 32
"""Test Tasks on which the oracle and doing nothing are measured."""
_FILES = Path(__file__).with_name("openenv_files")


def manifest(rollouts: Rollouts, reward: str = "return") -> dict[str, Any]:
    """Return what `openenv.yaml` states of a world: reward range, oracle, floor margin, Tasks."""
    environment = WorldEnvironment(rollouts, reward=reward)
    world = rollouts.world
    spec, known = world.spec, baselines(world.spec.id)
    top = spec.return_range[rollouts.role] if reward == "return" else Range(0.0, 1.0)
    tasks = world.first_tasks("test", _MEASURED)

    def mean(name: str) -> float:
        rngs = [generator("openenv", name, task.fingerprint) for task in tasks]
        played = zip(tasks, rngs, strict=True)
        return statistics.fmean(environment.play(task, known[name], rng) for task, rng in played)

    sizes = {split: world.size(split) for split in ("train", "validation", "test")}
    counts = {split: size for split, size in sizes.items() if size is not None}
    return {
        "spec_version": 1,
        "name": f"tokengym-{spec.short_name}",
        "version": __version__,
        "type": "space",
        "runtime": "fastapi",
        "app": "server.app:app",
        "port": 8000,
        "validation": {
            "reward": {
                "range": [float(top.low), float(top.high)],
                "oracle_tolerance": round(max(0.0, top.high - mean("oracle")), 4),
                "floor_margin": round(max(0.0, top.high - mean("null")), 4),
            },
            "resources": {
                "cpu": 1.0,
                "memory_mb": 1024,
                "disk_mb": 512,
                "episode_timeout_s": 600.0,
            },
            "capabilities": {
                "verifier": {"kind": "reward_channel"},
                "oracle": {"form": "script", "location": "oracle.py"},
                "task_api": True,
                "declared_task_count": counts,
            },
            "network": {"mode": "no-network"},
            "task_distribution": {"dataset_version": f"{spec.id} {world.level}"},
            "types": {"tags": ["text", spec.short_name]},
        },
    }


def write_package(
    folder: Path, rollouts: Rollouts, settings: Mapping[str, Any], reward: str = "return"
) -> None:
    """Write the files that `openenv init` writes, for a world, with the oracle's script.

    Args:
        folder: made if need be.
        rollouts: the world and the role to play.
        settings: keyword arguments of `Rollouts` from which it was made, plain values.
        reward: `return` or `share`, see `openenv.REWARDS`.
    """
    said = manifest(rollouts, reward)
    spec, level = rollouts.world.spec, rollouts.world.level
    given = {name: value for name, value in settings.items() if value not in (None, {})}
    low, high = said["validation"]["reward"]["range"]
    names = {
        "title": f"Tokengym {spec.short_name} ({level})",
        "summary": spec.summary,
        "name": said["name"],
        "module": said["name"].replace("-", "_"),
        "version": __version__,
        "world": repr(spec.id),
        "settings": repr(json.loads(json.dumps({"world": spec.id, "level": level, **given}))),
        "reward": repr(reward),
        "low": low,
        "high": high,
        "scale": "" if reward == "return" else ": the share of what the Task's optimum earns",
    }
    (folder / "server").mkdir(parents=True, exist_ok=True)
    (folder / "outputs").mkdir(exist_ok=True)
    for file in _FILES.rglob("*.txt"):
        text = Template(file.read_text(encoding="utf-8")).substitute(names)
        (folder / file.relative_to(_FILES).with_suffix("")).write_text(text, encoding="utf-8")
    manifested = yaml.safe_dump(said, sort_keys=False)
    (folder / "openenv.yaml").write_text(manifested, encoding="utf-8")
