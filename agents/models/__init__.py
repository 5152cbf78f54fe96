"""Language models by name: directories, GGUF files, the Hugging Face hub, and a reference model."""

from tokengym.agents.models.files import ModelError, ModelUnavailableError
from tokengym.agents.models.resolve import is_model_name, resolve_model

__all__ = ["ModelError", "ModelUnavailableError", "is_model_name", "resolve_model"]
