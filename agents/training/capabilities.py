"""What a service that is not ours can do of what a run needs, asked before the run begins.

Each capability is tried with a few tokens on a training run of its own, which is unloaded
afterwards: a server may answer a field that it does not know with success.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar, get_args

import aiohttp
import numpy as np
import tinker

from tokengym.agents.training.batches.datums import laid_out
from tokengym.agents.training.connection import (
    KEY_VARIABLE,
    Connection,
    ServiceRefusedError,
    refusal,
)
from tokengym.agents.training.job import Job
from tokengym.agents.training.policy_trainers import service_session
from tokengym.envs.tokens.codec import Message

T = TypeVar("T")

_SECONDS = 300.0  # a server may compile a model for every new shape
_REASON = 120  # characters of what a server says
_TOKENS = 8
NEEDED = "needs it"
_NOT_TRIED = ("custom", "stable_reinforce")  # runs in the client; wants recorded samples
LOSSES = tuple(name for name in get_args(tinker.types.LossFnType) if name not in _NOT_TRIED)


class Capability(NamedTuple):
    """Something that a service of the protocol can or cannot do.

    Attributes:
        name: what it is.
        missing: why it cannot be had; empty where it can.
        use: what the run needs it for; empty where it does without.
    """

    name: str
    missing: str
    use: str


@dataclass
class _Trials:
    """What was tried."""

    uses: dict[str, str]
    rows: list[Capability] = field(default_factory=list)

    def note(self, name: str, missing: str = "") -> None:
        self.rows.append(Capability(name, missing, self.uses.get(name, "")))

    async def attempt(
        self, name: str, request: Awaitable[T], wrong: Callable[[T], str] = lambda _: ""
    ) -> T | None:
        """Await a request and note what came of it.

        Args:
            name: of the capability.
            request: that uses it.
            wrong: says what is wrong with an answer; nothing if it is right.

        Returns:
            the answer, if it is right.
        """
        try:
            answer = await asyncio.wait_for(request, _SECONDS)
        # The SDK asserts what it takes for granted, and raises ValueError where it gives up.
        except (tinker.TinkerError, AssertionError, ValueError, TimeoutError) as error:
            self.note(name, refusal(error)[:_REASON] or f"no answer in {_SECONDS:g} s")
            return None
        missing = wrong(answer)
        self.note(name, missing)
        return None if missing else answer


async def service_capabilities(job: Job, connection: Connection) -> list[Capability]:
    """Try what a service can do.

    Args:
        job: what is to run there.
        connection: to the service.

    Raises:
        ServiceRefusedError: if no training run can be made there.
    """
    trials = _Trials(_uses(job))
    prompt = list(job.codec.render([Message("0.5", own=False)]))
    async with service_session(connection.base_url) as service:
        served = await tinker.RestClient(base_url=connection.base_url).get_server_capabilities()
        names = [str(model.model_name) for model in served.supported_models]
        known = connection.model in names
        trials.note("the model", "" if known else f"serves {', '.join(names[:3])}")
        client = await service.create_lora_training_client(
            connection.model, rank=job.config.lora_rank
        )
        await _try_losses(trials, client, prompt)
        sampler = await trials.attempt(
            "weights for sampling", client.save_weights_and_get_sampling_client()
        )
        if sampler is not None:
            await _try_sampling(trials, sampler, prompt)
        await _try_checkpoints(trials, client, tinker.RestClient(base_url=connection.base_url))
        if connection.base_url is not None:
            await _unload(trials, connection.base_url, client)
    return trials.rows


def require(rows: list[Capability]) -> None:
    """Refuse a service that lacks what the run cannot do without.

    Raises:
        ServiceRefusedError: naming what it lacks.
    """
    lacking = [f"{row.name} ({row.missing})" for row in rows if row.missing and row.use == NEEDED]
    if lacking:
        raise ServiceRefusedError(f"the service lacks what the run needs: {'; '.join(lacking)}")


def _uses(job: Job) -> dict[str, str]:
    """Return what a job uses the capabilities for."""
    needed = ["the model", "weights for sampling", "samples", "stop", "save_state"]
    needed += [f"loss {job.config.token_loss}"]
    needed += ["loss cross_entropy"] if job.learning.warm_start else []
    needed += ["prompt_logprobs"] if job.learning.kl or job.teacher else []
    return {
        **dict.fromkeys(needed, NEEDED),
        "seed": "repeats with it",
        "weights_info": "finds lost states with it",
        "delete": "clears old states with it",
        "ttl_seconds": "clears old states with it",
    }


async def _try_losses(trials: _Trials, client: tinker.TrainingClient, prompt: list[int]) -> None:
    """Try every loss in a forward pass, which moves no weight."""
    ones_T = np.ones(len(prompt), np.float32)
    for loss in LOSSES:
        if loss == "cross_entropy":
            datum = laid_out(prompt, weights=ones_T)
        else:
            datum = laid_out(prompt, logprobs=-ones_T, advantages=ones_T)
        settings = {"beta": 0.1} if loss == "dro" else None
        await trials.attempt(f"loss {loss}", client.forward([datum], loss, settings))


async def _try_sampling(trials: _Trials, sampler: tinker.SamplingClient, prompt: list[int]) -> None:
    """Try the fields of a sampling request, and whether they do what they say."""
    asked = tinker.ModelInput.from_ints(prompt)

    def sample(count: int = 1, **params: Any) -> Awaitable[tinker.SampleResponse]:
        return sampler.sample(
            asked, count, tinker.SamplingParams(**{"max_tokens": _TOKENS, "stop": [], **params})
        )

    first = await trials.attempt("samples", sample(2, seed=1), _incomplete)
    if first is None:
        return
    same = _unlike(_tokens(first), "equal seeds give other tokens")
    await trials.attempt("seed", sample(2, seed=1), same)
    greedy = await trials.attempt("temperature 0", sample(temperature=0.0))
    if greedy is None:
        return
    (tokens,) = _tokens(greedy)
    # Several hot samples: a single one of a confident policy may be the likeliest tokens by chance.
    likeliest = _unlike([tokens] * 4, "other tokens than the most probable one are sampled")
    hot = partial(sample, 4, seed=2, temperature=2.0)
    await trials.attempt("top_k", hot(top_k=1), likeliest)
    await trials.attempt("top_p", hot(top_p=1e-6), likeliest)
    await trials.attempt("stop", sample(temperature=0.0, stop=tokens[:1]), _unstopped)
    for name in ("prompt_logprobs", "topk_prompt_logprobs"):
        request = sampler.sample(
            asked,
            1,
            tinker.SamplingParams(max_tokens=1),
            include_prompt_logprobs=True,
            topk_prompt_logprobs=int(name.startswith("topk")),
        )
        await trials.attempt(name, request, partial(_ignored, name))


async def _try_checkpoints(
    trials: _Trials, client: tinker.TrainingClient, rest: tinker.RestClient
) -> None:
    """Try the routes by which a run saves, finds and clears its states."""
    saved = await trials.attempt("save_state", client.save_state("trial", ttl_seconds=3600))
    if saved is None:
        return
    path = str(saved.path)
    await trials.attempt("weights_info", rest.get_weights_info_by_tinker_path(path))
    await trials.attempt("ttl_seconds", rest.set_checkpoint_ttl_from_tinker_path(path, 3600))
    await trials.attempt("delete", rest.delete_checkpoint_from_tinker_path(path))


async def _unload(trials: _Trials, base_url: str, client: tinker.TrainingClient) -> None:
    """Free the training run of the trials: a server may have room for few."""
    body, headers = {"model_id": client.model_id}, {"X-API-Key": os.environ.get(KEY_VARIABLE, "")}
    async with aiohttp.ClientSession() as http:
        url = f"{base_url.rstrip('/')}/api/v1/unload_model"
        async with http.post(url, json=body, headers=headers) as answer:
            trials.note("unload_model", "" if answer.ok else f"{answer.status} {answer.reason}")


def _incomplete(response: tinker.SampleResponse) -> str:
    whole = [len(item.logprobs or ()) == len(item.tokens) for item in response.sequences]
    return "" if whole == [True, True] else "not as many as asked for, or no log-probabilities"


def _unlike(expected: list[list[int]], what: str) -> Callable[[tinker.SampleResponse], str]:
    return lambda response: "" if _tokens(response) == expected else what


def _unstopped(response: tinker.SampleResponse) -> str:
    # The stop token itself may be a part of the reply or not.
    return "" if len(_tokens(response)[0]) <= 1 else "goes on after a stop token"


def _ignored(name: str, response: tinker.SampleResponse) -> str:
    return "ignored" if getattr(response, name) is None else ""


def _tokens(response: tinker.SampleResponse) -> list[list[int]]:
    return [list(sequence.tokens) for sequence in response.sequences]
