"""The Tinker bridge: the only part of the project that imports tinker, torch or transformers.

Names are loaded when they are first used: the cookbook takes seconds to import, and the local
service does without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_MODULES = {
    "Opponent": "coordinator",
    "Coordinator": "coordinator",
    "Member": "env",
    "RendererCodec": "codec",
    "TaskDataset": "dataset",
    "TaskDatasetBuilder": "dataset",
    "TaskGroupBuilder": "groups",
    "TinkerEnv": "env",
    "codec_named": "codec",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
