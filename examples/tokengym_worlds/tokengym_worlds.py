"""The worlds of Tokengym on the Environments Hub, for verifiers before 0.4."""

from tokengym.agents.adapters.verifiers import load_environment

__all__ = ["load_environment"]
