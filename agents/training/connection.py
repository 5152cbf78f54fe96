"""Where samples and gradients come from: the local service, or a Tinker service by address."""

import contextlib
import os
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tokengym.agents.service import LocalService, guard
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.agents.training.config import STARTING_POLICY, TrainSettings
from tokengym.envs.core.errors import OptionError, TokengymError

T = TypeVar("T")

KEY_VARIABLE = "TINKER_API_KEY"
URL_VARIABLE = "TINKER_BASE_URL"


class ServiceRefusedError(TokengymError):
    """A service that could not be reached, or that answered a request with an error."""


def wants_local_service(settings: TrainSettings) -> bool:
    """Whether a job runs on the local service: no address is given and no key is set."""
    return settings.base_url is None and not os.environ.get(KEY_VARIABLE)


def resolve_model(settings: TrainSettings) -> str:
    """Return the model's name, or its directory where it is on this machine.

    Raises:
        OptionError: if the local service is to serve what is no model directory, or a hosted one
            the starting policy.
    """
    if settings.model == STARTING_POLICY:
        if not wants_local_service(settings):
            raise OptionError(
                f"model={STARTING_POLICY!r} is served by the local service only; name a model of "
                f"the service at hand, or unset {KEY_VARIABLE}"
            )
        return str(MODEL_DIR.resolve())
    if wants_local_service(settings):
        path = Path(settings.model)
        if not (path / "config.json").is_file():
            raise OptionError(
                f"the local service needs a Hugging Face model directory, got {settings.model!r}; "
                f"for hosted models set {KEY_VARIABLE}"
            )
        return str(path.resolve())
    return settings.model


@dataclass(frozen=True)
class Connection:
    """A reachable service.

    Attributes:
        model: name by which it knows the model, and the tokenizer's name or directory.
        base_url: its address; `None` for the hosted service's own.
        service: the local service, if it is ours.
    """

    model: str
    base_url: str | None
    service: LocalService | None

    @property
    def local(self) -> bool:
        """Whether the service runs here and lasts as long as the job."""
        return self.service is not None

    async def guard(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work`, but no longer than a local service lives.

        Raises:
            ServiceDiedError: if it ended by itself; names its log.
        """
        if self.service is None:
            return await work
        return await guard(self.service, work)

    @classmethod
    @contextlib.contextmanager
    def open(cls, settings: TrainSettings, folder: Path) -> Iterator["Connection"]:
        """Start a local service if the job wants one, and stop it afterwards.

        Args:
            settings: the job.
            folder: the run folder; a local service keeps its weights and log there.

        Raises:
            ServiceRefusedError: from what is done within, in place of the SDK's own errors.
        """
        model = resolve_model(settings)
        if not wants_local_service(settings):
            address = settings.base_url or os.environ.get(URL_VARIABLE)
            with _refusals(address or "its own address"):
                yield cls(model, address, None)
            return
        with (
            LocalService(model, state_dir=folder / "service") as service,
            _environment(KEY_VARIABLE, service.api_key),
            _refusals(service.base_url),
        ):
            yield cls(service.model_name, service.base_url, service)


@contextlib.contextmanager
def _refusals(address: str) -> Iterator[None]:
    """Tell an error of the SDK in a line that names the service."""
    import tinker  # it loads torch, which those who only ask for a model's name need not wait for

    try:
        yield
    except tinker.TinkerError as error:
        raise ServiceRefusedError(f"the service at {address} said: {error}") from error


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """Set a variable that the client reads, and put back what was there."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
