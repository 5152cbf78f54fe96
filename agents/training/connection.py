"""Where samples and gradients come from: the local service, or a Tinker service by address."""

import contextlib
import os
import sys
import traceback
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeVar

from tokengym.agents.models import resolve_model
from tokengym.agents.service import LocalService, StartupError, guard
from tokengym.agents.service.config import ComputeSettings
from tokengym.agents.settings import settings_of
from tokengym.agents.toy_model import MODEL_DIR, TOY_MODEL
from tokengym.agents.training.config import JobConfig
from tokengym.envs.core.errors import OptionError, TokengymError
from tokengym.loopback import bypass_proxies

T = TypeVar("T")

SAVE_EVERY = 10
"""Steps from one state that a run keeps to the next."""
LISTENER_S = 10.0
"""How long an address may take to answer before anything is asked of it."""
_DAY = 24 * 3600

KEY_VARIABLE = "TINKER_API_KEY"
URL_VARIABLE = "TINKER_BASE_URL"


class ServiceRefusedError(TokengymError):
    """A service that could not be reached, or that answered a request with an error."""


@dataclass(frozen=True)
class ServiceTarget:
    """Which service a job runs on, before anything is started.

    Attributes:
        model: the model's name at a hosted service, or its directory on this machine; the
            tokenizer's name or directory too.
        base_url: address of the service; `None` for the hosted one's own, or for a local one.
        local: whether the job starts its own service.
        options: of a local service: the settings of `ComputeSettings`, and `trust_remote_code`.
    """

    model: str
    base_url: str | None
    local: bool
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def resolve(cls, config: JobConfig) -> Self:
        """Return the service a configuration asks for: local unless an address or a key is given.

        Raises:
            ModelError: if the local service is to serve what is no model, or one that cannot be
                had.
            OptionError: if a hosted service is to serve the toy model.
        """
        local = config.base_url is None and not os.environ.get(KEY_VARIABLE)
        address = None if local else config.base_url or os.environ.get(URL_VARIABLE)
        if config.model == TOY_MODEL and not local:
            raise OptionError(
                f"model={TOY_MODEL!r} is for the service that this command starts by itself, if "
                f"neither --base-url nor {KEY_VARIABLE} is set; {address or 'the hosted service'} "
                f"knows a model by its own name, such as {MODEL_DIR}"
            )
        model = config.model
        if local:
            directory = resolve_model(
                config.model,
                trust_remote_code=config.trust_remote_code,
                progress=partial(print, file=sys.stderr),
            )
            model = str(directory)
        for name, usual in (("precision", "auto"), ("memory", None)):
            if not local and (value := getattr(config, name)) != usual:
                raise OptionError(
                    f"--{name} {value} is for a local service; this one is at "
                    f"{address or 'its own address'}"
                )
        names = ("trust_remote_code", *settings_of(ComputeSettings))
        return cls(model, address, local, {name: getattr(config, name) for name in names})

    @property
    def save_interval(self) -> int:
        """Steps from one state saved for resuming to the next."""
        return 1 if self.local else SAVE_EVERY

    @property
    def kept_seconds(self) -> int:
        """How long a state is kept for resuming, in seconds.

        States in the run folder stay; a hosted service keeps them over a holiday.
        """
        return (3650 if self.local else 30) * _DAY


@dataclass(frozen=True)
class Connection:
    """A reachable service.

    Attributes:
        model: name by which it knows the model.
        base_url: its address; `None` for the hosted service's own.
        service: the local service, if it is ours.
    """

    model: str
    base_url: str | None
    service: LocalService | None

    async def guard(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work`, but fail if a local service ends first.

        Raises:
            ServiceDiedError: if it ended by itself; names its log.
        """
        if self.service is None:
            return await work
        return await guard(self.service, work)

    @classmethod
    @contextlib.contextmanager
    def open(
        cls, target: ServiceTarget, state_dir: Path | None = None, seed: int | None = None
    ) -> Iterator["Connection"]:
        """Start a local service if one is wanted, and stop it afterwards.

        Args:
            target: the service.
            state_dir: where a local service keeps its weights and log; if `None` in a folder that
                is deleted afterwards.
            seed: of a local service; random if `None`.

        Raises:
            ServiceRefusedError: if a local service does not start; and from what is done within, in
                place of the SDK's own errors.
        """
        if not target.local:
            with _refusals(target.base_url or "its own address"):
                bypass_proxies(target.base_url)
                _require_listener(target.base_url)
                yield cls(target.model, target.base_url, None)
            return
        with (
            TemporaryDirectory() as scratch,
            _started(
                LocalService(
                    target.model, state_dir=state_dir or Path(scratch), seed=seed, **target.options
                )
            ) as service,
            environment_variable(KEY_VARIABLE, service.api_key),
            _refusals(service.base_url),
        ):
            yield cls(service.model_name, service.base_url, service)


def _require_listener(address: str | None) -> None:
    """Refuse an address at which nothing listens, where the SDK would try for five minutes.

    Raises:
        ServiceRefusedError: if no connection can be made; any answer will do.
    """
    import httpx  # as the SDK asks, with the same proxies

    if address is None:
        return
    print(f"waiting for {address} to answer, {LISTENER_S:g} s at most", file=sys.stderr)
    try:
        httpx.get(f"{address.rstrip('/')}/api/v1/healthz", timeout=LISTENER_S)
    except (
        httpx.ConnectError,
        httpx.ConnectTimeout,
        httpx.InvalidURL,
        httpx.UnsupportedProtocol,
    ) as error:
        raise ServiceRefusedError(f"no service at {address}: {error}") from error
    except httpx.TransportError:
        return  # it listens, but a proxy or the service fails: the SDK tries again


@contextlib.contextmanager
def _started(service: LocalService) -> Iterator[LocalService]:
    """Start a local service, and stop it afterwards."""
    try:
        service.start()
    except StartupError as error:
        raise ServiceRefusedError(str(error)) from error
    try:
        yield service
    finally:
        service.stop()


@contextlib.contextmanager
def _refusals(address: str) -> Iterator[None]:
    """Turn an SDK error into one that names the service."""
    import tinker  # it loads torch, which those who only resolve a target need not wait for
    from tinker.lib.retryable_exception import RetryableException

    try:
        yield
    except (tinker.TinkerError, RetryableException) as error:
        raise ServiceRefusedError(f"the service at {address} refused: {refusal(error)}") from error
    except (AssertionError, ValueError) as error:
        # Raised by the SDK at an unexpected answer.
        *_, raised = traceback.walk_tb(error.__traceback__)
        if not str(raised[0].f_globals.get("__name__")).startswith("tinker."):
            raise
        raise ServiceRefusedError(
            f"the service at {address} sent an answer that the SDK cannot read: {refusal(error)}"
        ) from error


def refusal(error: BaseException) -> str:
    """Return what a server said, without what the SDK adds for its authors."""
    answer = getattr(error, "body", None) or getattr(error.__cause__, "body", None)
    detail = answer.get("detail") if isinstance(answer, dict) else None
    if isinstance(detail, list):  # pydantic's, of servers made with FastAPI
        detail = "; ".join(str(item.get("msg", item)) for item in detail)
    return str(detail or error).partition(" for self.request_id=")[0]


@contextlib.contextmanager
def environment_variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable, and restore it afterwards."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
