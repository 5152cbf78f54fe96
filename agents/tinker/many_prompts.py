"""Sampling many prompts at once, in plain Python, from any Tinker service."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import tinker

AT_ONCE = 64
"""Default number of concurrent requests."""


def sample_prompts(
    client: tinker.SamplingClient,
    prompts: Iterable[tinker.ModelInput | Sequence[int] | str],
    n: int = 1,
    *,
    at_once: int = AT_ONCE,
    **params: Any,
) -> list[list[tinker.SampledSequence]]:
    """Sample `n` replies to every prompt; blocks until all are there.

    A service reads a prompt once for all replies of one request. So there is one request for each
    prompt that differs from the others, with the replies of all its repetitions, and a prompt is
    prefilled as rarely as possible.

    Args:
        client: samples from the weights that it was made for.
        prompts: tokens, or text that the client's tokenizer encodes as it stands.
        n: replies to each, at least 1.
        at_once: most requests under way, at least 1.
        **params: fields of `tinker.SamplingParams`, such as `max_tokens`, `temperature`, `stop`
            and `seed`.

    Returns:
        the replies to each prompt, in the order of the prompts; each has `tokens`, `logprobs` and
        `stop_reason`.

    Raises:
        ValueError: if `n` or `at_once` is below 1, or a prompt is empty.
    """
    if n < 1 or at_once < 1:
        raise ValueError(f"n and at_once must be at least 1, got {n} and {at_once}")
    asked = [_tokens(client, prompt) for prompt in prompts]
    if not all(asked):
        raise ValueError(f"prompt {asked.index(())} is empty: a reply needs a token to follow")
    distinct = Counter(asked)
    requests: list[tinker.APIFuture[tinker.SampleResponse]] = []
    for place, (tokens, times) in enumerate(distinct.items()):
        if place >= at_once:
            requests[place - at_once].result()
        prompt, settings = tinker.ModelInput.from_ints([*tokens]), tinker.SamplingParams(**params)
        requests.append(client.sample(prompt, n * times, settings))
    answers = (iter(request.result().sequences) for request in requests)
    replies = dict(zip(distinct, answers, strict=True))
    return [list(islice(replies[tokens], n)) for tokens in asked]


def _tokens(
    client: tinker.SamplingClient, prompt: tinker.ModelInput | Sequence[int] | str
) -> tuple[int, ...]:
    if isinstance(prompt, str):
        return tuple(client.get_tokenizer().encode(prompt))
    return tuple(prompt.to_ints() if isinstance(prompt, tinker.ModelInput) else prompt)
