"""Policies, rollouts, evaluation, training and the `tokengym` command.

What is named here is imported when it is first used; all but `Estimate`, `evaluate` and `play` need
`pip install tokengym[tinker]`.
"""

from typing import TYPE_CHECKING

from tokengym.envs.core.lazy import lazy_attributes
from tokengym.envs.core.rollout import play

if TYPE_CHECKING:
    from tokengym.agents.analysis.evaluate import Estimate, evaluate
    from tokengym.agents.service import LocalService
    from tokengym.agents.tinker.codec import RendererCodec, codec_named
    from tokengym.agents.tinker.dataset import TaskDataset, TaskDatasetBuilder
    from tokengym.agents.tinker.env import TinkerEnv
    from tokengym.agents.tinker.groups import TaskGroupBuilder
    from tokengym.agents.tinker.language_model import LanguageModelOpponent

__all__ = [
    "Estimate",
    "LanguageModelOpponent",
    "LocalService",
    "RendererCodec",
    "TaskDataset",
    "TaskDatasetBuilder",
    "TaskGroupBuilder",
    "TinkerEnv",
    "codec_named",
    "evaluate",
    "play",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        "Estimate": "tokengym.agents.analysis.evaluate",
        "LanguageModelOpponent": "tokengym.agents.tinker.language_model",
        "LocalService": "tokengym.agents.service",
        "RendererCodec": "tokengym.agents.tinker.codec",
        "TaskDataset": "tokengym.agents.tinker.dataset",
        "TaskDatasetBuilder": "tokengym.agents.tinker.dataset",
        "TaskGroupBuilder": "tokengym.agents.tinker.groups",
        "TinkerEnv": "tokengym.agents.tinker.env",
        "codec_named": "tokengym.agents.tinker.codec",
        "evaluate": "tokengym.agents.analysis.evaluate",
    },
)


def __dir__() -> list[str]:
    return __all__
