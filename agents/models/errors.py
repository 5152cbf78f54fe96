"""Errors of finding, fetching and converting models."""

from tokengym.envs.core.errors import TokengymError


class ModelUnavailableError(TokengymError, OSError):
    """A model that could not be fetched or stored; the message names what was tried."""
