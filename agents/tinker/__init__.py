"""The Tinker bridge: the only part of the project that imports tinker, torch or transformers.

Names are loaded when they are first used: the cookbook takes seconds to import, and the local
service does without it.
"""

from typing import TYPE_CHECKING

from tokengym.lazy import lazy_attributes

if TYPE_CHECKING:
    from tokengym.agents.tinker.codec import RendererCodec, codec_named
    from tokengym.agents.tinker.coordinator import Coordinator, Opponent
    from tokengym.agents.tinker.dataset import TaskDataset, TaskDatasetBuilder
    from tokengym.agents.tinker.env import Member, TinkerEnv
    from tokengym.agents.tinker.groups import TaskGroupBuilder

__all__ = [
    "Coordinator",
    "Member",
    "Opponent",
    "RendererCodec",
    "TaskDataset",
    "TaskDatasetBuilder",
    "TaskGroupBuilder",
    "TinkerEnv",
    "codec_named",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        "Coordinator": "tokengym.agents.tinker.coordinator",
        "Member": "tokengym.agents.tinker.env",
        "Opponent": "tokengym.agents.tinker.coordinator",
        "RendererCodec": "tokengym.agents.tinker.codec",
        "TaskDataset": "tokengym.agents.tinker.dataset",
        "TaskDatasetBuilder": "tokengym.agents.tinker.dataset",
        "TaskGroupBuilder": "tokengym.agents.tinker.groups",
        "TinkerEnv": "tokengym.agents.tinker.env",
        "codec_named": "tokengym.agents.tinker.codec",
    },
)
