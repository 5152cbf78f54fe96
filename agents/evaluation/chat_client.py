"""Chat completions of an OpenAI-compatible endpoint, over aiohttp: tries, delays and failures."""

import asyncio
import json
import os
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from tokengym.agents.evaluation.chat_answer import ChatAnswer
from tokengym.agents.settings import Settings, option
from tokengym.envs.core.errors import TokengymError
from tokengym.loopback import bypass_proxies

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
OPENAI_URL = "https://api.openai.com/v1"
_HUNG = "time-out"
_BUSY = (408, 409, 425, 429)
"""Statuses that a later try may change, beside those from 500."""
_TRIES_OF_HUNG = 2
"""Tries of a request that gets no answer in time: one that hung twice hangs again."""
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0
_LONGEST_DELAY = 120.0
"""Seconds between two tries; the last one is the most that a server may ask for."""
_UNREADABLE = (ValueError, LookupError, TypeError, RecursionError)
"""Exceptions of reading JSON that has another form than expected."""


@dataclass(frozen=True, kw_only=True)
class EndpointSettings(Settings):
    """Requests to endpoints.

    Attributes:
        concurrency: most requests at once.
        timeout: seconds until a request without an answer is given up.
        retries: tries after the first, of what a later try may change.
        max_failures: most failed rollouts of a policy in a world; `None` for a tenth of them, but
            at least 20.
    """

    concurrency: int = option(16, "requests to an endpoint at once", least=1)
    timeout: float = option(600.0, "seconds until a request is given up", above=0)
    retries: int = option(8, "retries of a request that a later try may answer", least=0)
    max_failures: int | None = option(
        None,
        "failed rollouts of a policy in a world that are tolerated; a tenth, but at least 20, if "
        "not given",
        least=0,
    )


USUAL_SETTINGS = EndpointSettings()


@dataclass(eq=False)
class RequestError(TokengymError):
    """A request without a usable answer.

    Attributes:
        what: what happened, in a few words.
        reason: what the server said, or how it failed.
        status: of the answer; `None` if there was none.
        delay: seconds that the server asks to wait; `None` if it does not say.
    """

    what: str
    reason: str
    status: int | None = None
    delay: float | None = None

    def __str__(self) -> str:
        """State both."""
        return f"{self.what}: {self.reason}"

    @property
    def of_conversation(self) -> bool:
        """Whether it was refused for its conversation: its length, or what a filter found in it."""
        return self.status in (400, 403, 413, 422)

    @property
    def may_pass(self) -> bool:
        """Whether a later try may be answered."""
        status = self.status
        return status is None or status < 400 or status in _BUSY or status >= 500


class ChatClient:
    """A client of one endpoint; use it as an asynchronous context.

    Args:
        url: of the API; `None` for the one in `OPENAI_BASE_URL`, or OpenAI's own.
        settings: how it is asked.

    Attributes:
        url: of the API.
        settings: how it is asked.
    """

    def __init__(self, url: str | None, settings: EndpointSettings) -> None:
        self.url = (url or os.environ.get(URL_VARIABLE) or OPENAI_URL).rstrip("/")
        self.settings = settings
        self._session: ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Open the connections."""
        import aiohttp

        key = os.environ.get(KEY_VARIABLE)
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=aiohttp.ClientTimeout(total=self.settings.timeout),
            connector=aiohttp.TCPConnector(limit=0),
        )
        self._proxy = _proxy(self.url)
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close the connections."""
        assert self._session is not None
        await self._session.close()

    async def complete(self, body: Mapping[str, Any], *, retries: int | None = None) -> ChatAnswer:
        """Return the answer to a request.

        Args:
            body: the request.
            retries: tries after the first; those of the settings if `None`.

        Raises:
            RequestError: if there is none after all tries, or the status says that no try will
                change it.
        """
        left = self.settings.retries if retries is None else retries
        wait, hung = _FIRST_WAIT, 0
        while True:
            try:
                return await self._try(body)
            except RequestError as error:
                hung += error.what == _HUNG
                if left == 0 or hung == _TRIES_OF_HUNG or not error.may_pass:
                    raise
                left, delay = left - 1, error.delay
            # Clients that were refused together must not come back together.
            await asyncio.sleep(wait * random.uniform(0.75, 1.0) if delay is None else delay)
            wait = min(2.0 * wait, _LONGEST_WAIT)

    async def models(self) -> list[str]:
        """Return the names of the endpoint's models; none if it does not tell."""
        import aiohttp

        assert self._session is not None
        try:
            async with self._session.get(f"{self.url}/models", proxy=self._proxy) as response:
                listed = json.loads(await response.read())["data"]
                return [str(model["id"]) for model in listed]
        except (aiohttp.ClientError, TimeoutError, *_UNREADABLE):
            return []

    async def _try(self, body: Mapping[str, Any]) -> ChatAnswer:
        """Send a request once.

        Raises:
            RequestError: if there is no usable answer.
        """
        import aiohttp

        assert self._session is not None
        try:
            async with self._session.post(
                f"{self.url}/chat/completions", json=body, proxy=self._proxy
            ) as response:
                content = await response.read()
        except TimeoutError:
            raise RequestError(_HUNG, f"no answer in {self.settings.timeout:g} s") from None
        except aiohttp.ClientError as error:
            raise RequestError("no connection", str(error) or type(error).__name__) from None
        if response.status >= 400:
            raise RequestError(
                f"status {response.status}", _reason(content), response.status, _delay(response)
            )
        try:
            return ChatAnswer.read(content)
        except _UNREADABLE:
            shown = repr(content[:200].decode("utf-8", "replace"))
            raise RequestError("broken answer", shown, response.status) from None


def _proxy(url: str) -> str | None:
    """Return the environment's proxy for an address, if it has one.

    Asked to trust the environment, aiohttp looks it up in threads, for each request anew.
    """
    bypass_proxies(url)
    parts = urlsplit(url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


def _reason(content: bytes) -> str:
    """Return what an error's body says, in OpenAI's form or any other."""
    text = content.decode("utf-8", "replace")
    try:
        said = json.loads(text)["error"]
    except _UNREADABLE:
        return text
    return str(said.get("message", said)) if isinstance(said, dict) else str(said)


def _delay(response: "ClientResponse") -> float | None:
    """Return for how many seconds the server asks to wait; `None` if it does not say."""
    try:
        seconds = float(response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return min(max(0.0, seconds), _LONGEST_DELAY)  # in this order NaN is no delay
