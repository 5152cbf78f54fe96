"""The errors of the local service: the value that was wrong and the rule it broke.

Each one carries the HTTP status it is answered with and inherits from the matching built-in type.
"""

from __future__ import annotations

from typing import ClassVar


class ServiceError(Exception):
    """Base of every error the service raises on purpose."""

    status: ClassVar[int] = 500


class BadRequestError(ServiceError, ValueError):
    """The request is understood and breaks a rule; the message names the value and the rule."""

    status = 400


class UnauthorizedError(ServiceError, PermissionError):
    """The API key is missing or wrong."""

    status = 401


class UnknownResourceError(ServiceError, LookupError):
    """A session, training run, sampler or checkpoint that this service does not hold."""

    status = 404


class ConflictingNameError(ServiceError, FileExistsError):
    """A checkpoint of that name exists and the caller did not ask to overwrite it."""

    # Not 409: the SDK repeats a request answered 409 for five minutes.
    status = 400


class GoneError(ServiceError, LookupError):
    """The result of a request that this service no longer holds."""

    status = 410


class UnsupportedError(ServiceError, NotImplementedError):
    """Something the hosted service offers and this one does not."""

    # Not 501: the SDK takes every 5xx for a passing failure and tries again.
    status = 400


class OverloadedError(ServiceError, RuntimeError):
    """Too many samples are queued; the SDK backs off and sends the request again."""

    status = 429


class ModelDirectoryError(ServiceError, ValueError):
    """The directory to serve does not hold a causal language model with its tokenizer."""


class StartupError(ServiceError, RuntimeError):
    """The service process ended, or said nothing, before it was ready."""


class ServiceDiedError(ServiceError, ConnectionError):
    """The service process ended while somebody still needed it."""
