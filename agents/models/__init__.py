"""Language models by name: directories, GGUF files, the Hugging Face hub, and a reference model."""

from tokengym.agents.models.errors import ModelError, ModelUnavailableError
from tokengym.agents.models.resolve import Model, ModelKind, model_kind, resolve_model

__all__ = [
    "Model",
    "ModelError",
    "ModelKind",
    "ModelUnavailableError",
    "model_kind",
    "resolve_model",
]
