"""An OpenAI-compatible endpoint as a player: whole conversations, and what becomes of failures.

A failed request ends its rollout, not the evaluation: its last turn holds the reason. Only what is
wrong with every request stops, with the sentence that helps.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tokengym.agents.evaluation.chat_answer import ChatAnswer
from tokengym.agents.evaluation.chat_client import (
    KEY_VARIABLE,
    USUAL_SETTINGS,
    ChatClient,
    EndpointSettings,
    RequestError,
)
from tokengym.agents.rollouts import RolloutOrigin, RolloutRecord, record_episode
from tokengym.agents.rollouts.record import REFUSED
from tokengym.agents.tinker.chat_tools import next_messages, with_call
from tokengym.envs.core.display import shorten
from tokengym.envs.core.episode import DecodedReply, OpponentPolicy, TextEpisode
from tokengym.envs.core.errors import OptionError, TokengymError
from tokengym.envs.core.play import Policy
from tokengym.envs.core.task import Task
from tokengym.envs.core.tools import Tool, openai_tools
from tokengym.envs.core.turn import StopReason
from tokengym.envs.core.world import World
from tokengym.envs.rollouts import is_complete
from tokengym.installed import require_extra

PREFIX = "openai:"
ENDPOINT_TOKENS = 1024
"""Most tokens of an endpoint's reply, unless asked otherwise."""
REFUSALS = ("refusal", "content_filter")
"""Ends of a reply by which a model or its provider declines."""
_PROBE = [{"role": "user", "content": "Reply with the word yes."}]
"""A conversation that an endpoint answers if it answers any."""
_LONGEST_REASON = 500
_MODELS_SHOWN = 10


class EndpointError(TokengymError):
    """An endpoint that refuses every request, never answers, or fails too often."""


def parse_endpoint(policy: str) -> tuple[str, str | None]:
    """Read `openai:MODEL@URL`, or `openai:MODEL` for the client's own address.

    Returns:
        the model, as the endpoint calls it, and the address of the API, ending in `/v1` as a rule;
        `None` for the client's own.

    Raises:
        OptionError: if it has another form.
    """
    rest = policy.removeprefix(PREFIX)
    model, at, url = rest.rpartition("@")
    parts = urlsplit(url)
    if at and model and parts.scheme in ("http", "https") and parts.netloc:
        return model, url
    if not rest or "://" in rest:
        raise OptionError(f"an endpoint is openai:MODEL@URL, got {policy!r}")
    return rest, None


class _Answer(NamedTuple):
    """One answer of an endpoint; the reply is `None` where the request failed."""

    reply: DecodedReply | None
    noted: Mapping[str, Any]
    """Facts about the reply for the turn's record."""
    message: dict[str, Any] = {}
    """The reply as it goes back into the conversation."""


@dataclass
class Endpoint:
    """A model behind an endpoint, in all worlds of an evaluation.

    Attributes:
        client: of the endpoint.
        policy: as the user named it.
        model: the model's name there.
        temperature: of sampling.
        max_tokens: most tokens of a reply.
        limit: the name of the parameter that limits a reply's tokens.
        takes_tools: whether tools may be declared: not once it has refused them.
        answered: whether it has ever answered: if so, a failure is not of every request.
    """

    client: ChatClient
    policy: str
    model: str
    temperature: float
    max_tokens: int
    limit: str = "max_tokens"
    takes_tools: bool = True
    answered: bool = False
    _probing: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    def named(
        cls,
        policy: str,
        settings: EndpointSettings = USUAL_SETTINGS,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> "Endpoint":
        """Return the endpoint of a policy's name; see `parse_endpoint`.

        Args:
            policy: the name.
            settings: how it is asked.
            temperature: 1 if `None`.
            max_tokens: `ENDPOINT_TOKENS` if `None`.

        Raises:
            OptionError: if the name has another form, aiohttp is not installed, or there is neither
                address nor key.
        """
        model, url = parse_endpoint(policy)
        require_extra("openai", "an endpoint")
        if url is None and not os.environ.get(KEY_VARIABLE):
            raise OptionError(f"openai:{model} without @URL needs {KEY_VARIABLE} to be set")
        sampled_at = 1.0 if temperature is None else temperature
        limit = max_tokens or ENDPOINT_TOKENS
        return cls(ChatClient(url, settings), policy, model, sampled_at, limit)

    async def ask(self, messages: list[dict[str, Any]], tools: Sequence[Tool] = ()) -> _Answer:
        """Send a whole conversation; a failure of this request alone is an answer without a reply.

        Tools are declared natively, and a native call is read as its line. An endpoint that refuses
        them is asked without: the texts say how a line calls one.

        Raises:
            EndpointError: if every request fails.
        """
        try:
            answer = await self._complete(messages, tools=tools)
        except RequestError as error:
            if not (error.may_pass or error.of_conversation):
                raise await self._explained(error) from None
            await self._require_answers()
            what = f"{REFUSED} ({error.what})" if error.of_conversation else error.what
            reason = shorten(_writable(f"{what}: {error.reason}"), _LONGEST_REASON)
            return _Answer(None, {"finish": reason})
        finish = "refusal" if answer.refusal else answer.finish_reason
        complete = is_complete(finish) or finish in REFUSALS
        other = None if answer.model == self.model else answer.model
        noted = answer.model_dump(include={"prompt_tokens", "completion_tokens"})
        noted |= {"finish": finish, "model": other}
        message: dict[str, Any] = {"role": "assistant", "content": answer.text}
        text = answer.text
        if tools and answer.message.get("tool_calls"):
            text = with_call(text, answer.message)
            message["tool_calls"] = answer.message["tool_calls"]
        return _Answer(DecodedReply(text, complete), noted, message)

    async def _complete(
        self, messages: list[dict[str, Any]], retries: int | None = None, tools: Sequence[Tool] = ()
    ) -> ChatAnswer:
        limit, sampling = self.limit, {"model": self.model, "temperature": self.temperature}
        body = {**sampling, "messages": messages, limit: self.max_tokens}
        declared = bool(tools) and self.takes_tools
        if declared:
            body["tools"] = openai_tools(tools)
        try:
            answer = await self.client.complete(body, retries=retries)
        except RequestError as error:
            # Newer models of OpenAI's know the limit by this name alone.
            if "max_completion_tokens" in str(error) and limit != "max_completion_tokens":
                self.limit = "max_completion_tokens"
                return await self._complete(messages, retries, tools)
            # Servers that know no tools, or that were not started with a parser of calls.
            if declared and "tool" in str(error).lower():
                self.takes_tools = False
                return await self._complete(messages, retries, tools)
            raise
        self.answered = True
        return answer

    async def _require_answers(self) -> None:
        """Find out, after a first failure, whether the endpoint answers at all.

        Raises:
            EndpointError: if it does not.
        """
        async with self._probing:
            if self.answered:
                return
            try:
                await self._complete(_PROBE, 0)
            except RequestError as error:
                raise await self._explained(error) from None

    async def _explained(self, error: RequestError) -> EndpointError:
        """Return what is wrong with every request, and what helps."""
        what = f"{self.policy}: {error}"
        if error.status == 401:
            state = "is not accepted" if os.environ.get(KEY_VARIABLE) else "is not set"
            return EndpointError(
                f"{what}. {KEY_VARIABLE} {state}: set it to a key of this endpoint"
            )
        if error.status is None or error.status < 400:
            return EndpointError(
                f"{what}. Is a server running at {self.client.url}, and of this API?"
            )
        models = await self.client.models()
        if self.model not in models[:_MODELS_SHOWN] and models:
            shown = ", ".join(models[:_MODELS_SHOWN])
            more = ", …" if len(models) > _MODELS_SHOWN else ""
            return EndpointError(f"{what}. The models there are: {shown}{more}")
        if error.status == 404:
            return EndpointError(f"{what}. The address of an API usually ends in /v1")
        return EndpointError(f"{what}. It refuses any request with these settings")


@dataclass(frozen=True)
class EndpointPlayer:
    """A model behind an endpoint, in one role of one world.

    A reply that ran out of tokens is malformed to the world; a refusal is played as its text.
    Where a request fails, the rollout has failed: its last turn holds the reason, and the rest is
    played as empty replies.

    Attributes:
        endpoint: who replies.
        world: the world; it is forked.
        role: the role it plays.
        opponents: who plays each other role.
        origin: what its rollouts have in common.
        system: a text that precedes every conversation as the system's; none if empty.
    """

    endpoint: Endpoint
    world: World
    role: str
    opponents: Mapping[str, Policy]
    origin: RolloutOrigin
    system: str = ""

    async def play(self, task: Task, origin: RolloutOrigin) -> RolloutRecord:
        """Play one rollout.

        Raises:
            EndpointError: if the endpoint refuses every request, or answers none.
        """
        others = {role: _in_thread(who) for role, who in self.opponents.items()}
        episode = TextEpisode(self.world.fork(), task, opponents=others)
        await episode.advance_awaiting()
        messages: list[dict[str, Any]] = []
        if self.system:
            messages.append({"role": "system", "content": self.system})
        answers: list[_Answer] = []
        while not episode.done:
            last = answers[-1].message if answers else None
            messages += next_messages(episode.turn.text, last)
            answers.append(await self.endpoint.ask(messages, self.world.tools))
            reply = answers[-1].reply
            if reply is None:
                episode.stop(StopReason.ABANDONED)
                break
            messages.append(answers[-1].message)
            episode.say(reply.text, complete=reply.complete)
            await episode.advance_awaiting()
        record = record_episode(origin, task, self.role, episode.exchanges)
        own = iter(answers)
        turns = [
            replace(one, **next(own).noted) if one.role == self.role else one
            for one in record.turns
        ]
        return replace(record, turns=tuple(turns))


def _in_thread(policy: Policy) -> OpponentPolicy:
    """Return a policy that plans in a thread, while other rollouts go on."""
    return lambda world, turn, rng: asyncio.to_thread(policy, world, turn, rng)


def _writable(text: str) -> str:
    """Return text without halves of surrogate pairs, which JSON can spell and no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
