# ruff: noqa: D102  # the list of trials says what each method is for
"""How a server is tried: each method of a bench asks for one thing, and looks at the answer."""

import os
from collections.abc import Awaitable
from functools import partial
from importlib.metadata import version
from typing import Any

import httpx
import numpy as np
import tinker
from tinker.lib.retryable_exception import RetryableException

from tokengym.agents.conform.answers import WAIT, in_thread
from tokengym.agents.conform.gaps import Gap, ScoredReply, scored_replies, tokens_of_any_model
from tokengym.agents.training.batches.datums import laid_out
from tokengym.agents.training.connection import KEY_VARIABLE, ServiceRefusedError, refusal

# The SDK asserts what it takes for granted, raises ValueError where it gives up, and RuntimeError
# for a training run after a failed request.
REFUSALS = (
    *(tinker.TinkerError, RetryableException, httpx.HTTPError),
    *(AssertionError, ValueError, RuntimeError),
)
_LEARNING_RATE = 5e-4
_LARGEST_GAP = 0.1  # nats, root mean square: a clipped loss drops tokens by chance
_KEPT_SECONDS = 3600
_PROMPT = tokens_of_any_model(16)
_ASKED = tinker.ModelInput.from_ints(_PROMPT)
_ONES_T = np.ones(len(_PROMPT), np.float32)
_WEIGHED = laid_out(_PROMPT, weights=_ONES_T)
_REWARDED = laid_out(_PROMPT, logprobs=-_ONES_T, advantages=_ONES_T)


class TrialServer:
    """A server on trial. Methods raise where it does not do what they are named for.

    Args:
        base_url: its address; `None` for the hosted service's own.
        model: the model's name there; the first that it serves if empty.
        rank: of the adapter.
        step_loss: the loss of optimizer steps.

    Attributes:
        fresh: replies of a new adapter, which is the model itself, once there is a gap.
    """

    service: tinker.ServiceClient
    rest: tinker.RestClient
    client: tinker.TrainingClient
    sampler: tinker.SamplingClient

    def __init__(
        self, base_url: str | None, model: str, rank: int = 8, step_loss: str = "cross_entropy"
    ) -> None:
        self.base_url, self.model, self.rank, self.step_loss = base_url, model, rank, step_loss
        self.served: list[str] = []
        self.likeliest: list[int] = []
        self.fresh: list[ScoredReply] = []
        self.state = ""

    async def connect(self) -> str:
        self.rest = await in_thread(partial(tinker.RestClient, base_url=self.base_url))
        served = await self.rest.get_server_capabilities()
        self.served = [str(model.model_name) for model in served.supported_models]
        return f"by the protocol of tinker {version('tinker')}"

    async def find_model(self) -> str:
        self.model = self.model or next(iter(self.served), "")
        named = ", ".join(self.served[:3]) or "no model"
        _require(self.model in self.served, f"serves {named}")
        return self.model

    async def start_run(self) -> None:
        make = partial(self.service.create_lora_training_client, self.model, self.rank, seed=1)
        self.client = await (await in_thread(make))

    async def loss(self, name: str) -> None:
        await self.client.forward(*_lesson(name))  # which moves no weight

    async def custom_loss(self) -> None:
        def loss(_: object, logprobs: list[Any]) -> tuple[Any, dict[str, float]]:
            return -sum(item.sum() for item in logprobs), {}

        await self.client.forward_backward_custom([_WEIGHED], loss)

    async def optim_step(self) -> None:
        for _ in range(3):
            await self.client.forward_backward(*_lesson(self.step_loss))
            await self.client.optim_step(tinker.AdamParams(learning_rate=_LEARNING_RATE))

    async def save_weights(self) -> None:
        self.sampler = await self.client.save_weights_and_get_sampling_client()

    async def sample(self) -> None:
        samples = await self._sample(2, seed=1)
        _require(len(samples) == 2, "not as many as asked for")

    async def repeat(self) -> None:
        # Hot samples: those of a confident policy may be the same by chance.
        first, again = [await self._sample(4, seed=1, temperature=2.0) for _ in range(2)]
        _require(first == again, "ignored: equal seeds give other tokens")

    async def sample_greedily(self) -> None:
        (self.likeliest,) = await self._sample(1, temperature=0.0)
        same = await self._sample(1, temperature=0.0) == [self.likeliest]
        _require(same, "ignored: two samples differ")

    async def truncate(self, **params: Any) -> None:
        # Several hot samples: one of a confident policy may be the likeliest tokens by chance.
        hot = await self._sample(4, seed=2, temperature=2.0, **params)
        _require(hot == [self.likeliest] * 4, "ignored: other tokens than the likeliest one")

    async def stop(self) -> None:
        (tokens,) = await self._sample(1, temperature=0.0, stop=self.likeliest[:1])
        # The stop token itself may be a part of the reply or not.
        _require(len(tokens) <= 1, "ignored: goes on after a stop token")

    async def score_prompt(self) -> None:
        found: list[float | None] | None = await self.sampler.compute_logprobs(_ASKED)
        _require(found is not None and None not in found[1:], "ignored: tokens are not scored")

    async def score_alternatives(self) -> None:
        response = await self.sampler.sample(
            *(_ASKED, 1, tinker.SamplingParams(max_tokens=1)),
            include_prompt_logprobs=True,
            topk_prompt_logprobs=1,
        )
        _require(response.topk_prompt_logprobs is not None, "ignored")

    async def gap(self, **params: Any) -> str:
        replies = await scored_replies(self.client, self.sampler, **params)
        self.fresh = self.fresh or replies
        gap = Gap.of(replies)
        _require(gap.rms <= _LARGEST_GAP, f"too large: {gap}")
        return str(gap)

    async def gap_after_steps(self) -> str:
        await self.save_weights()
        return await self.gap()

    async def save_state(self) -> None:
        saved = await self.client.save_state("trial", ttl_seconds=_KEPT_SECONDS)
        self.state = str(saved.path)

    async def resume(self) -> None:
        opened = self.service.create_training_client_from_state_with_optimizer(self.state)
        await self.unload(await opened)

    async def find_state(self) -> None:
        await self.rest.get_weights_info_by_tinker_path(self.state)

    async def limit_state(self) -> None:
        await self.rest.set_checkpoint_ttl_from_tinker_path(self.state, _KEPT_SECONDS)

    async def delete_state(self) -> None:
        await self.rest.delete_checkpoint_from_tinker_path(self.state)

    async def refuse_model(self) -> str:
        return await _refused(self.service.create_lora_training_client("no/model", rank=1))

    async def refuse_token(self) -> str:
        read, settings = tinker.ModelInput.from_ints([1 << 30]), tinker.SamplingParams(max_tokens=1)
        return await _refused(self.sampler.sample(read, 1, settings))

    async def refuse_state(self) -> str:
        return await _refused(self.service.create_training_client_from_state(self.state))

    async def unload(self, client: tinker.TrainingClient | None = None) -> None:
        # A server may have room for few, and the SDK leaves them to the end of the session.
        if self.base_url is None:
            return
        headers = {"X-API-Key": os.environ.get(KEY_VARIABLE, "")}
        body = {"model_id": (client or self.client).model_id}
        async with httpx.AsyncClient(headers=headers, timeout=WAIT) as http:
            url = f"{self.base_url.rstrip('/')}/api/v1/unload_model"
            (await http.post(url, json=body)).raise_for_status()

    async def _sample(self, count: int, **params: Any) -> list[list[int]]:
        settings = tinker.SamplingParams(**{"max_tokens": 8, "stop": [], **params})
        sequences = (await self.sampler.sample(_ASKED, count, settings)).sequences
        whole = all(len(item.logprobs or ()) == len(item.tokens) for item in sequences)
        _require(whole, "no log-probability with each token")
        return [list(item.tokens) for item in sequences]


def _lesson(loss: Any) -> tuple[list[tinker.Datum], Any, dict[str, float] | None]:
    datum = _WEIGHED if loss == "cross_entropy" else _REWARDED
    return [datum], loss, {"beta": 0.1} if loss == "dro" else None


def _require(done: bool, missing: str) -> None:
    if not done:
        raise ServiceRefusedError(missing)


async def _refused(request: Awaitable[object]) -> str:
    """Return the reason for which a mistake is refused."""
    try:
        await request
    except REFUSALS as error:
        if getattr(error, "category", "") == tinker.types.RequestErrorCategory.Server:
            raise
        return refusal(error)
    raise ServiceRefusedError("accepted")
