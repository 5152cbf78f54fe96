"""A local service that speaks the Tinker wire protocol for any Hugging Face causal language model.

`LocalService` runs it as a child process, `guard` ends a training run when that child dies, and
`serve` runs it in this process. Importing this package loads neither torch nor tinker.
"""

from typing import TYPE_CHECKING

from tokengym.agents.service.client import LocalService, guard
from tokengym.agents.service.config import CHECKPOINT_SCHEME, ServiceConfig
from tokengym.agents.service.errors import (
    ModelDirectoryError,
    ServiceDiedError,
    ServiceError,
    StartupError,
    UnknownResourceError,
)
from tokengym.lazy import lazy_attributes

if TYPE_CHECKING:
    from tokengym.agents.service.engine.checkpoints import copy_checkpoint
    from tokengym.agents.service.http.server import serve

__all__ = [
    "CHECKPOINT_SCHEME",
    "LocalService",
    "ModelDirectoryError",
    "ServiceConfig",
    "ServiceDiedError",
    "ServiceError",
    "StartupError",
    "UnknownResourceError",
    "copy_checkpoint",
    "guard",
    "serve",
]

# These need torch, which takes seconds to load.
__getattr__ = lazy_attributes(__name__)
