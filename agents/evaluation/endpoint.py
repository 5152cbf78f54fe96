"""An OpenAI-compatible endpoint as a player: sends whole conversations with the openai client."""

import asyncio
import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from tokengym.agents.loopback import bypass_proxies
from tokengym.agents.rollouts import RolloutOrigin, RolloutRecord, TurnExchange, record_episode
from tokengym.envs.core.display import shorten
from tokengym.envs.core.errors import OptionError, TokengymError
from tokengym.envs.core.play import Policy
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import DecodedReply

if TYPE_CHECKING:
    from openai import AsyncOpenAI

PREFIX = "openai:"
KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
_RETRIES = 8
"""Tries after the first; the client waits longer each time, or as long as the server asks."""
_SECONDS = 600.0
_CUT_OFF = "length"
REFUSALS = ("refusal", "content_filter")
"""Ends of a reply by which a model or its provider declines."""
_OF_ONE_CONVERSATION = (400, 403, 413, 422)
"""Statuses of a request refused for its conversation: its length, or what a filter found in it."""
_PROBE = [{"role": "user", "content": "Reply with the word yes."}]
"""A conversation that an endpoint answers if it answers any."""
_LONGEST_REASON = 500


class EndpointError(TokengymError):
    """An endpoint that cannot be reached, that refuses every request, or keeps failing."""


class EndpointName(NamedTuple):
    """What `openai:MODEL@URL` names.

    Attributes:
        model: the model, as the endpoint calls it.
        url: of the API, ending in `/v1` as a rule; `None` for the client's own.
    """

    model: str
    url: str | None

    @classmethod
    def parse(cls, policy: str) -> "EndpointName":
        """Read `openai:MODEL@URL`, or `openai:MODEL` for the client's own address.

        Raises:
            OptionError: if it has another form.
        """
        rest = policy.removeprefix(PREFIX)
        model, at, url = rest.rpartition("@")
        named = urlsplit(url)
        if at and model and named.scheme in ("http", "https") and named.netloc:
            return cls(model, url)
        if not rest or "://" in rest:
            raise OptionError(f"an endpoint is openai:MODEL@URL, got {policy!r}")
        return cls(rest, None)


def require_endpoint(name: EndpointName) -> None:
    """Refuse an endpoint that cannot be called from here.

    Raises:
        OptionError: if the client is not installed, or it has neither address nor key.
    """
    if importlib.util.find_spec("openai") is None:
        raise OptionError("endpoints need the openai client: pip install 'tokengym[openai]'")
    if name.url is None and not os.environ.get(KEY_VARIABLE):
        raise OptionError(f"openai:{name.model} without @URL needs {KEY_VARIABLE} to be set")


def connect(name: EndpointName) -> "AsyncOpenAI":
    """Return a client of an endpoint; its key is in `OPENAI_API_KEY`, if it needs one."""
    from openai import AsyncOpenAI

    bypass_proxies(name.url or os.environ.get(URL_VARIABLE))
    return AsyncOpenAI(
        base_url=name.url,
        api_key=os.environ.get(KEY_VARIABLE) or "none",
        max_retries=_RETRIES,
        timeout=_SECONDS,
    )


class _Answer(NamedTuple):
    """One answer of an endpoint; the reply is `None` where it refused the conversation."""

    reply: DecodedReply | None
    finish: str | None
    prompt_tokens: int | None
    completion_tokens: int | None


@dataclass
class EndpointPlayer:
    """A model behind an endpoint.

    A reply that ran out of tokens is malformed to the world; a refusal is played as what was said.
    Where the endpoint refuses the request, for the conversation's length or content, the rollout
    has failed: its last turn holds the reason, and the rest is played as empty replies.

    Attributes:
        client: of the endpoint.
        model: the model's name there.
        world: the world; it is forked.
        role: the role it plays.
        opponents: who plays each other role.
        origin: what its rollouts have in common.
        system: a text that precedes every conversation as the system's; none if empty.
        limit: the name of the parameter that limits a reply's tokens.
    """

    client: "AsyncOpenAI"
    model: str
    world: World
    role: str
    opponents: Mapping[str, Policy]
    origin: RolloutOrigin
    system: str = ""
    limit: str = field(default="max_tokens")

    async def play(self, task: Task, origin: RolloutOrigin) -> RolloutRecord:
        """Play one rollout.

        Raises:
            EndpointError: if the endpoint does not answer, after all retries, or refuses any
                request.
        """
        world = self.world.fork()
        rng = generator("evaluate", origin.seed, task.fingerprint, origin.member)
        messages: list[dict[str, str]] = []
        if self.system:
            messages.append({"role": "system", "content": self.system})
        exchanges: list[TurnExchange] = []
        answers: list[_Answer] = []
        turn: Turn = world.start(task)
        while not turn.done:
            if turn.role == self.role:
                messages.append({"role": "user", "content": turn.text})
                answers.append(await self._ask(messages))
                reply = answers[-1].reply
                if reply is not None:
                    messages.append({"role": "assistant", "content": reply.text})
            else:
                policy = self.opponents[turn.role]
                reply = DecodedReply(await asyncio.to_thread(policy, world, turn, rng), True)
            after = (
                world.stop(StopReason.ABANDONED)
                if reply is None
                else world.reply(reply.text, complete=reply.complete)
            )
            exchanges.append(TurnExchange(turn, reply, after, after))
            turn = after
        record = record_episode(origin, task, self.role, exchanges)
        own = iter(answers)
        turns = [
            _with_usage(turn_record, next(own)) if turn_record.role == self.role else turn_record
            for turn_record in record.turns
        ]
        return replace(record, turns=tuple(turns))

    async def _ask(self, messages: list[dict[str, str]]) -> _Answer:
        """Send the whole conversation and return the answer."""
        import openai

        limit = self.limit
        try:
            completion = await self._create(messages, limit)
        except openai.APIStatusError as error:
            if error.status_code not in _OF_ONE_CONVERSATION:
                raise EndpointError(f"{self.origin.policy} answers {error}") from error
            # Newer models of OpenAI's know the limit by this name alone.
            if "max_completion_tokens" in str(error) and limit != "max_completion_tokens":
                self.limit = "max_completion_tokens"
                return await self._ask(messages)
            if messages is _PROBE:
                raise EndpointError(f"{self.origin.policy} refuses any request: {error}") from error
            await self._ask(_PROBE)
            reason = str(error).encode("utf-8", "replace").decode("utf-8")
            return _Answer(None, shorten(reason, _LONGEST_REASON), None, None)
        except openai.OpenAIError as error:
            raise EndpointError(
                f"{self.origin.policy} failed after {_RETRIES} more tries: {error}"
            ) from error
        if not completion.choices:
            raise EndpointError(f"{self.origin.policy} answered without a choice: {completion}")
        choice, usage = completion.choices[0], completion.usage
        refusal = getattr(choice.message, "refusal", None)
        text = choice.message.content or refusal or ""
        finish = "refusal" if refusal else choice.finish_reason
        return _Answer(
            # JSON can spell half of a surrogate pair, which no file can hold.
            DecodedReply(text.encode("utf-8", "replace").decode("utf-8"), finish != _CUT_OFF),
            finish,
            None if usage is None else usage.prompt_tokens,
            None if usage is None else usage.completion_tokens,
        )

    async def _create(self, messages: list[dict[str, str]], limit: str) -> Any:
        settings: dict[str, Any] = {"messages": messages, limit: self.origin.max_tokens}
        return await self.client.chat.completions.create(
            model=self.model, temperature=self.origin.temperature, **settings
        )


def _with_usage(turn: Any, answer: _Answer) -> Any:
    return replace(
        turn,
        finish=answer.finish,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
    )
