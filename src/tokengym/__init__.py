"""Text environments for reinforcement learning of language models.

    import gymnasium, tokengym

    env = gymnasium.make("tokengym/Forecast-v1")
    world = tokengym.make_world("energy", level="day")

`tokengym.envs` has worlds, Tasks and Episodes, `tokengym.rewards` the arithmetic of rewards,
`tokengym.agents` policies, evaluation and training, `tokengym.testing` (an extra) contract tests
for worlds and rewards of your own. Importing this package registers every world with Gymnasium,
those of other installed packages too; a world loads when it is made.
"""

from pathlib import Path

if not (Path(__file__).parent / "envs").is_dir():
    # A checkout or an unpacked source distribution keeps agents, envs and rewards at its top.
    __path__.append(str(Path(__file__).resolve().parents[2]))

from tokengym import agents, envs, rewards
from tokengym.envs import (
    Reachable,
    Task,
    World,
    WorldSpec,
    baselines,
    make_world,
    register,
    spec,
    specs,
)
from tokengym.envs.registry import load_entry_points

__all__ = [
    "Reachable",
    "Task",
    "World",
    "WorldSpec",
    "__version__",
    "agents",
    "baselines",
    "envs",
    "make_world",
    "register",
    "rewards",
    "spec",
    "specs",
]

__version__ = "0.2.0"

load_entry_points(named_by_id=False)  # last: what is loaded here may use all of the above
del load_entry_points
