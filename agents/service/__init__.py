"""A local service that speaks the Tinker wire protocol for any Hugging Face causal language model.

`LocalService` runs it as a child process, `guard` ends a training run when that child dies, and
`serve` runs it in this process. Importing this package loads neither torch nor tinker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokengym.agents.service.errors import (
    ModelDirectoryError,
    ServiceDiedError,
    ServiceError,
    StartupError,
)
from tokengym.agents.service.launch import LocalService, guard

if TYPE_CHECKING:
    from tokengym.agents.service.server import serve

__all__ = [
    "LocalService",
    "ModelDirectoryError",
    "ServiceDiedError",
    "ServiceError",
    "StartupError",
    "guard",
    "serve",
]


def __getattr__(name: str) -> Any:
    # Only the process that serves needs torch, which takes seconds to load.
    if name == "serve":
        from tokengym.agents.service.server import serve

        return serve
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
