"""A folder that OpenEnv's own commands accept as an environment: `openenv.yaml` and its files.

The manifest states what was measured: how far the oracle's mean return is from the top of the
declared range, and how far doing nothing is.
"""

import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tokengym import __version__
from tokengym.envs.adapters.start import Rollouts
from tokengym.envs.core.seeding import generator
from tokengym.envs.registry import baselines

_MEASURED = 32
"""Test Tasks on which the oracle and the null policy are measured."""
_APP = '''"""The server: `uvicorn app:app`."""

from tokengym.agents.adapters.openenv import build_app
from tokengym.envs import Rollouts

# In a container a server listens on all addresses.
app = build_app(Rollouts({world!r}, {level!r}, **{settings!r}), host="0.0.0.0")
'''
_ORACLE = '''"""Play test Tasks with the oracle and print what it earns on each."""

import numpy as np

from tokengym.envs import Rollouts, baselines

rollouts = Rollouts({world!r}, {level!r}, **{settings!r})
for task in rollouts.world.first_tasks("test", 8):
    played = rollouts.start(task).play(baselines({world!r})["oracle"], np.random.default_rng(0))
    print(task.fingerprint, played)
'''


def manifest(rollouts: Rollouts) -> dict[str, Any]:
    """Return what `openenv.yaml` states of a world: reward range, oracle, floor margin, Tasks."""
    world = rollouts.world
    spec, known = world.spec, baselines(world.spec.id)
    top = spec.return_range[rollouts.role]
    tasks = world.first_tasks("test", _MEASURED)

    def mean(name: str) -> float:
        rngs = [generator("openenv", name, task.fingerprint) for task in tasks]
        played = zip(map(rollouts.start, tasks), rngs, strict=True)
        return statistics.fmean(one.play(known[name], rng) for one, rng in played)

    sizes = {split: world.size(split) for split in ("train", "validation", "test")}
    counts = {split: size for split, size in sizes.items() if size is not None}
    return {
        "spec_version": 1,
        "name": f"tokengym-{spec.short_name}",
        "version": __version__,
        "type": "space",
        "runtime": "fastapi",
        "app": "app:app",
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


def write_package(folder: Path, rollouts: Rollouts, settings: Mapping[str, Any]) -> None:
    """Write `openenv.yaml`, the app that it names, and the oracle's script.

    Args:
        folder: made if need be.
        rollouts: the world and the role to play.
        settings: keyword arguments of `Rollouts` from which it was made, plain values.
    """
    folder.mkdir(parents=True, exist_ok=True)
    said = yaml.safe_dump(manifest(rollouts), sort_keys=False)
    (folder / "openenv.yaml").write_text(said, encoding="utf-8")
    given = {name: value for name, value in settings.items() if value not in (None, {})}
    names = {
        "world": rollouts.world.spec.id,
        "level": rollouts.world.level,
        "settings": json.loads(json.dumps(given)),
    }
    (folder / "app.py").write_text(_APP.format(**names), encoding="utf-8")
    (folder / "oracle.py").write_text(_ORACLE.format(**names), encoding="utf-8")
