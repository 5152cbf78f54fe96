"""Language models by name: directories, GGUF files, the Hugging Face hub, and a reference model.

Modules that need the extra `tinker` are imported at first use: the base install reads `files`.
"""

from typing import TYPE_CHECKING

from tokengym.agents.models.files import ModelError, ModelUnavailableError
from tokengym.lazy import lazy_attributes

if TYPE_CHECKING:
    from tokengym.agents.models.resolve import is_model_name, resolve_model

__all__ = ["ModelError", "ModelUnavailableError", "is_model_name", "resolve_model"]

__getattr__ = lazy_attributes(__name__)
