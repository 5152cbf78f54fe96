"""Who plays the groups of rollouts that the checks of `teaches` count."""

from collections.abc import Callable

import numpy as np

from tokengym.agents.certify.bench import FIXED, NUMBER, Bench
from tokengym.agents.certify.source import Policy, TaskPlace
from tokengym.agents.evaluation.endpoint import PREFIX, Endpoint
from tokengym.agents.execution.run_async import run_async
from tokengym.envs.core.errors import OptionError

Player = Callable[[Bench, TaskPlace, int], Policy]
"""From a Task and the number of a rollout of it to the policy that plays the rollout."""


def player(name: str) -> Player:
    """Return who is meant by a name.

    Args:
        name: one of `SCRIPTED`, an endpoint `openai:MODEL@URL`, or `FILE.py:NAME` of a function
            from the text to answer and the number of the turn to a reply.

    Raises:
        OptionError: if nobody is.
    """
    if name in SCRIPTED:
        return SCRIPTED[name]
    if name.startswith(PREFIX):
        Endpoint.named(name)  # what cannot be asked is refused before anything is played
        return lambda bench, place, member: _conversation(name)
    if name.rpartition(":")[0].endswith(".py"):
        from tokengym.agents.certify.sources.python import load

        own: Policy = load(name)
        return lambda bench, place, member: own
    known = [*SCRIPTED]
    raise OptionError(f"--policy takes {known}, openai:MODEL@URL or FILE.py:NAME, got {name!r}")


def _conversation(name: str) -> Policy:
    """Return a model that answers the whole conversation so far."""
    messages: list[dict[str, str]] = []

    async def ask() -> str | None:
        model = Endpoint.named(name)
        async with model.client:
            reply = (await model.ask(messages)).reply
            return None if reply is None else reply.text

    def policy(text: str, turn: int) -> str | None:
        messages.append({"role": "user", "content": text})
        said = run_async(ask())
        messages.append({"role": "assistant", "content": said or ""})
        return said

    return policy


def _noisy(bench: Bench, place: TaskPlace, member: int) -> Policy:
    """Give a reply that is right, nearly right, or wrong, each with a chance of a third."""
    rng, own = bench.rng("noise", place, member), bench.view(place).reference
    other = bench.other(place, int(rng.integers(1, len(bench.chosen))))
    kind = int(rng.integers(3)) if own else 2
    said = own if kind == 0 else tuple(_blurred(reply, rng) for reply in own)
    said = other if kind == 2 else said
    return bench.say(*(said or (FIXED[member % len(FIXED)],)))


def _other(bench: Bench, place: TaskPlace, member: int) -> Policy:
    return bench.say(*bench.other(place, 1 + member % (len(bench.chosen) - 1)))


SCRIPTED: dict[str, Player] = {"noisy": _noisy, "others": _other}
"""Replies near the right one, and right replies to other Tasks; neither reads the prompt."""


def _blurred(reply: str, rng: np.random.Generator) -> str:
    """Return a reply with other numbers, or without some of its words where it has none."""
    if NUMBER.search(reply):
        return NUMBER.sub(lambda match: _near(match[0], rng), reply)
    words = reply.split(" ")
    kept = [word for word in words if rng.random() < 0.8]
    return " ".join(kept) if len(words) > 1 else reply[: int(rng.integers(len(reply) + 1))]


def _near(number: str, rng: np.random.Generator) -> str:
    value = float(number) * float(rng.normal(1.0, 0.2))
    return f"{value:.{len(number.partition('.')[2])}f}"
