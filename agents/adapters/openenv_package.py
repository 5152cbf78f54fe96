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

from tokengym import __version__
from tokengym.agents.adapters.openenv import WorldEnvironment
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.registry import baselines
from tokengym.envs.rollouts import Rollouts
from tokengym.rewards.bounds import Range

_MEASURED = 32
"""Test Tasks on which the oracle and doing nothing are measured."""
_FILES = Path(__file__).with_name("openenv_files")


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
    environment, world = WorldEnvironment(rollouts, reward=reward), rollouts.world
    spec, level, known = world.spec, world.level, baselines(world.spec.id)
    paid = spec.return_range[rollouts.role] if reward == "return" else Range(0.0, 1.0)
    tasks = world.first_tasks("test", _MEASURED)

    def below_top(name: str) -> float:
        earned = statistics.fmean(environment.play(task, known[name]) for task in tasks)
        return round(max(0.0, paid.high - earned), 4)

    given = {name: value for name, value in settings.items() if value not in (None, {})}
    sizes = {split: world.size(split) for split in SPLITS}
    name = f"tokengym-{spec.short_name}"
    names = {
        "title": f"Tokengym {spec.short_name} ({level})",
        "summary": spec.summary,
        "name": name,
        "module": name.replace("-", "_"),
        "short_name": spec.short_name,
        "id": spec.id,
        "level": level,
        "version": __version__,
        "world": repr(spec.id),
        "settings": repr(json.loads(json.dumps({"world": spec.id, "level": level, **given}))),
        "reward": repr(reward),
        "low": float(paid.low),
        "high": float(paid.high),
        "oracle_tolerance": below_top("oracle"),
        "floor_margin": below_top("null"),
        "counts": json.dumps({split: size for split, size in sizes.items() if size is not None}),
        "scale": "" if reward == "return" else ": the share of what the Task's optimum earns",
    }
    (folder / "server").mkdir(parents=True, exist_ok=True)
    (folder / "outputs").mkdir(exist_ok=True)
    for file in _FILES.rglob("*.txt"):
        text = Template(file.read_text(encoding="utf-8")).substitute(names)
        (folder / file.relative_to(_FILES).with_suffix("")).write_text(text, encoding="utf-8")
