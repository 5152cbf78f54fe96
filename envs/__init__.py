"""Text environments for reinforcement learning of language models.

Importing this package registers every world with Gymnasium; nothing of a world loads until it is
made. `gymnasium.make("tokengym:tokengym/Forecast-v1")` needs no import.
"""

if __name__ != "tokengym.envs":
    raise ImportError("import tokengym.envs: the bare name would load each module a second time")

from typing import TYPE_CHECKING

from tokengym.envs.core.errors import (
    DataError,
    EpisodeStateError,
    OptionError,
    RoleError,
    TaskError,
    TokenError,
    TokengymError,
    UnknownWorldError,
)
from tokengym.envs.core.form import ReplyForm
from tokengym.envs.core.grammar import Grammar, complaint, last_match
from tokengym.envs.core.metric import Metric
from tokengym.envs.core.optimum import Optimum
from tokengym.envs.core.play import PlayedEpisode, Policy, play
from tokengym.envs.core.question import QuestionWorld
from tokengym.envs.core.spec import Reachable, WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world, register, spec, specs
from tokengym.envs.tokens.codec import ByteCodec, Codec
from tokengym.envs.tokens.episode import Episode
from tokengym.lazy import lazy_attributes

if TYPE_CHECKING:
    from tokengym.envs.disruption.paper import Paper
    from tokengym.envs.gymnasium.aec_env import TextAECEnv
    from tokengym.envs.gymnasium.env import TextEnv
    from tokengym.envs.gymnasium.vector_env import TextVectorEnv
    from tokengym.envs.rollouts import Rollout, Rollouts, is_complete

__all__ = [
    "ByteCodec",
    "Codec",
    "DataError",
    "Episode",
    "EpisodeStateError",
    "Grammar",
    "Metric",
    "Optimum",
    "OptionError",
    "Paper",
    "PlayedEpisode",
    "Policy",
    "QuestionWorld",
    "Reachable",
    "ReplyForm",
    "RoleError",
    "Rollout",
    "Rollouts",
    "StopReason",
    "Task",
    "TaskError",
    "TextAECEnv",
    "TextEnv",
    "TextVectorEnv",
    "TokenError",
    "TokengymError",
    "Turn",
    "UnknownWorldError",
    "World",
    "WorldSpec",
    "baselines",
    "complaint",
    "is_complete",
    "last_match",
    "make_world",
    "play",
    "register",
    "spec",
    "specs",
]

__getattr__ = lazy_attributes(__name__)


def __dir__() -> list[str]:
    return __all__
