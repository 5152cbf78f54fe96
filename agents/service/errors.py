"""The errors of the local service; each message gives the value and the rule it breaks.

Each class has the HTTP status of its response and inherits from the matching built-in type.
"""

from typing import ClassVar


class ServiceError(Exception):
    """Base of every error the service raises deliberately."""

    status: ClassVar[int] = 500


class BadRequestError(ServiceError, ValueError):
    """A request that breaks a rule, cannot fit, or asks for what this service does not have."""

    # Not 409 for names that are taken, nor 5xx: the SDK would retry for minutes, to the same end.
    status = 400


class DamagedFileError(ServiceError, ValueError):
    """A file of the state directory does not hold what was written to it."""

    # Not 5xx: the SDK would retry, to the same end.
    status = 400


class UnknownResourceError(ServiceError, LookupError):
    """A session, training run, sampler or checkpoint that this service does not have."""

    status = 404


class GoneError(ServiceError, LookupError):
    """A result that this service no longer holds."""

    status = 410


class OverloadedError(ServiceError, RuntimeError):
    """There is no room for a request for now; the SDK backs off and retries."""

    status = 429


class ModelDirectoryError(ServiceError, ValueError):
    """The directory to serve does not hold a causal language model with its tokenizer."""


class StartupError(ServiceError, RuntimeError):
    """The service could not start, or ended or stayed silent before it was ready."""


class ServiceDiedError(ServiceError, ConnectionError):
    """The service process ended while it was still needed."""
