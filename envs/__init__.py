"""Text environments for reinforcement learning of language models.

Importing this package registers every world with Gymnasium; nothing of a world loads until it is
made. `gymnasium.make("tokengym:tokengym/Forecast-v0")` needs no import.
"""

from tokengym.envs.core.rollout import Policy
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import Optimum, World
from tokengym.envs.registration import register
from tokengym.envs.registry import baselines, make_world, spec, specs
from tokengym.envs.tokens.codec import ByteCodec, Codec
from tokengym.envs.tokens.episode import Episode

__all__ = [
    "ByteCodec",
    "Codec",
    "Episode",
    "Optimum",
    "Policy",
    "StopReason",
    "Task",
    "Turn",
    "World",
    "WorldSpec",
    "baselines",
    "make_world",
    "register",
    "spec",
    "specs",
]
