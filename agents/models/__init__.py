"""Language models by name: directories, GGUF files, the Hugging Face hub, and a reference model."""

from tokengym.agents.model_files import ModelError
from tokengym.agents.models.errors import ModelUnavailableError
from tokengym.agents.models.resolve import Model, ModelKind, model_kind, resolve_model

__all__ = [
    "Model",
    "ModelError",
    "ModelKind",
    "ModelUnavailableError",
    "model_kind",
    "resolve_model",
]
