"""Errors of finding, fetching and converting models."""

from tokengym.envs.core.errors import TokengymError


class ModelError(TokengymError, ValueError):
    """A model that cannot be used; the message names it and the reason."""


class ModelUnavailableError(TokengymError, OSError):
    """A model that could not be fetched or stored; the message names what was tried."""
