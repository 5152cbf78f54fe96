"""Sampling through the SDK: what comes back, from which distribution, and when it ends."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tinker
from tinker import types
from tinker.types import AdamParams, ModelInput, SamplingParams

from tests.service.asking import datum

if TYPE_CHECKING:
    from tokengym.agents.service import LocalService

PROMPT = "the price is 7. answer: "


@pytest.fixture(scope="module")
def tuned(client: Any, service: LocalService) -> Any:
    """A training client some optimizer steps away from the base model."""
    run = client.create_lora_training_client(service.model_name, rank=8, seed=3).result()
    tokens = run.get_tokenizer().encode("the battery charges at 3 o'clock")
    for _ in range(4):
        run.forward_backward([datum(tokens)], "cross_entropy")
        run.optim_step(AdamParams(learning_rate=3e-3)).result()
    return run


@pytest.fixture(scope="module")
def sampler(tuned: Any) -> Any:
    return tuned.save_weights_and_get_sampling_client().result()


@pytest.fixture(scope="module")
def prompt(sampler: Any) -> ModelInput:
    return ModelInput.from_ints(sampler.get_tokenizer().encode(PROMPT))


def _tokens(response: types.SampleResponse) -> list[list[int]]:
    return [list(sequence.tokens) for sequence in response.sequences]


@pytest.mark.parametrize(
    "shape", [{}, {"temperature": 0.4}, {"temperature": 2.0, "top_k": 9, "top_p": 0.8}]
)
def test_sampler_and_trainer_agree_on_sampled_logprobs(
    tuned: Any, sampler: Any, prompt: ModelInput, shape: dict[str, Any]
) -> None:
    response = sampler.sample(prompt, 6, SamplingParams(max_tokens=12, stop=[], **shape)).result()
    wholes = [prompt.to_ints() + tokens for tokens in _tokens(response)]
    data = [datum(whole, [0.0] * (len(whole) - 1)) for whole in wholes]
    trained = tuned.forward(data, "cross_entropy").result()
    for sequence, whole, output in zip(
        response.sequences, wholes, trained.loss_fn_outputs, strict=True
    ):
        count = len(sequence.tokens)
        scored = sampler.compute_logprobs(ModelInput.from_ints(whole)).result()
        assert scored[0] is None
        np.testing.assert_allclose(sequence.logprobs, scored[-count:], atol=1e-4)
        np.testing.assert_allclose(
            sequence.logprobs, output["logprobs"].to_numpy()[-count:], atol=1e-4
        )


def test_a_seed_draws_the_same_alone_and_in_a_crowd(sampler: Any, prompt: ModelInput) -> None:
    params = SamplingParams(max_tokens=10, seed=11, stop=[])

    async def crowd() -> list[types.SampleResponse]:
        others = [
            sampler.sample(
                ModelInput.from_ints(prompt.to_ints()[: 3 + index]),
                3,
                SamplingParams(max_tokens=4 + index, temperature=0.7),
            )
            for index in range(5)
        ]
        wanted = [sampler.sample(prompt, 2, params) for _ in range(2)]
        return [await request for request in [*wanted, *others]]

    alone = _tokens(sampler.sample(prompt, 2, params).result())
    first, second, *_ = asyncio.run(crowd())
    assert _tokens(first) == _tokens(second) == alone
    assert alone[0] != alone[1]
    other = SamplingParams(max_tokens=10, seed=12, stop=[])
    assert _tokens(sampler.sample(prompt, 2, other).result()) != alone


def test_without_a_seed_samples_differ(sampler: Any, prompt: ModelInput) -> None:
    response = sampler.sample(prompt, 8, SamplingParams(max_tokens=10, stop=[])).result()
    assert len({tuple(tokens) for tokens in _tokens(response)}) == 8
    assert len({sequence.sequence_id for sequence in response.sequences}) == 8


def test_temperature_zero_is_the_likeliest_token_each_time(
    sampler: Any, prompt: ModelInput
) -> None:
    params = SamplingParams(max_tokens=5, temperature=0.0, stop=[])
    (tokens,) = _tokens(sampler.sample(prompt, 1, params).result())
    grown = prompt.to_ints()
    for token in tokens:
        best = sampler.sample(
            ModelInput.from_ints(grown),
            1,
            SamplingParams(max_tokens=1, stop=[]),
            topk_sample_logprobs=1,
        ).result()
        assert best.sequences[0].topk_logprobs[0][0][0] == token
        grown.append(token)
    # Nor is there a choice where all but the likeliest are left out, at whatever temperature.
    for few in ({"top_k": 1}, {"top_p": 1e-6}):
        hot = SamplingParams(max_tokens=5, temperature=3.0, stop=[], **few)
        assert _tokens(sampler.sample(prompt, 2, hot).result()) == [tokens] * 2
    rest = SamplingParams(max_tokens=None, stop=[])
    (whole,) = _tokens(sampler.sample(prompt, 1, rest).result())
    assert len(whole) == 256 - prompt.length


def test_a_stop_token_ends_the_sequence_and_is_its_last(sampler: Any, prompt: ModelInput) -> None:
    free = SamplingParams(max_tokens=12, seed=5, stop=[])
    (tokens,) = _tokens(sampler.sample(prompt, 1, free).result())
    stop = tokens[4]
    params = SamplingParams(max_tokens=12, seed=5, stop=[stop])
    (sequence,) = sampler.sample(prompt, 1, params).result().sequences
    assert list(sequence.tokens) == tokens[: tokens.index(stop) + 1]
    assert sequence.stop_reason == "stop"


def test_a_stop_string_ends_the_sequence_where_it_first_occurs(
    sampler: Any, prompt: ModelInput
) -> None:
    tokenizer = sampler.get_tokenizer()
    free = SamplingParams(max_tokens=20, seed=6, stop=[])
    (tokens,) = _tokens(sampler.sample(prompt, 1, free).result())
    text = tokenizer.decode(tokens[3:6])
    params = SamplingParams(max_tokens=20, seed=6, stop=[text])
    (sequence,) = sampler.sample(prompt, 1, params).result().sequences
    first = next(n for n in range(21) if text in tokenizer.decode(tokens[:n]))
    assert list(sequence.tokens) == tokens[:first]
    assert sequence.stop_reason == "stop"


@pytest.mark.nightly
def test_the_end_token_stops_only_when_no_stop_is_given(sampler: Any, prompt: ModelInput) -> None:
    end = sampler.get_tokenizer().eos_token_id
    default = SamplingParams(max_tokens=200, seed=1, temperature=3.0)
    ended = sampler.sample(prompt, 16, default).result().sequences
    stopped = [sequence for sequence in ended if sequence.stop_reason == "stop"]
    # At this temperature the 320 tokens are near enough equally likely for one of 16 to meet it.
    assert stopped
    assert all(sequence.tokens[-1] == end for sequence in stopped)
    none = SamplingParams(max_tokens=200, seed=1, temperature=3.0, stop=[])
    for sequence in sampler.sample(prompt, 16, none).result().sequences:
        assert (len(sequence.tokens), sequence.stop_reason) == (200, "length")


def test_partial_prompt_logprobs_agree_with_all(sampler: Any, prompt: ModelInput) -> None:
    whole = sampler.compute_logprobs(prompt).result()
    last = sampler.compute_logprobs(prompt, prompt_logprobs_last_n=2).result()
    assert last[:-2] == [None] * (prompt.length - 2)
    assert last[-2:] == pytest.approx(whole[-2:])
    response = sampler.sample(
        prompt,
        1,
        SamplingParams(max_tokens=2),
        include_prompt_logprobs=True,
        topk_prompt_logprobs=320,
    ).result()
    assert response.prompt_logprobs[1:] == pytest.approx(whole[1:], abs=1e-5)
    assert response.topk_prompt_logprobs[0] is None
    for place, token in enumerate(prompt.to_ints()[1:], start=1):
        ranked = dict(response.topk_prompt_logprobs[place])
        assert ranked[token] == pytest.approx(whole[place], abs=1e-5)
        assert math.fsum(math.exp(value) for value in ranked.values()) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"max_tokens": 0}, "max_tokens must be 1 to"),
        ({"max_tokens": 999}, "context is 256.*got 999"),
        ({"temperature": -1.0}, "temperature must be 0 or at least 1e-05, got -1"),
        ({"top_p": 0.0}, "top_p must be above 0"),
        ({"stop": [""]}, "stop strings must not be empty"),
    ],
)
def test_a_bad_parameter_is_refused_with_its_value(
    sampler: Any, prompt: ModelInput, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(tinker.BadRequestError, match=said):
        sampler.sample(prompt, 1, SamplingParams(**{"max_tokens": 4, **change})).result()


def test_a_bad_prompt_is_refused_with_its_value(sampler: Any) -> None:
    params = SamplingParams(max_tokens=2)
    for tokens, said in (
        ([], "got 0"),
        ([320], "320 to 320"),
        ([-4], "got -1"),
        ([2**40], "below 320"),
        ([1] * 256, "got 256"),
    ):
        with pytest.raises(tinker.BadRequestError, match=said):
            sampler.sample(ModelInput.from_ints(tokens), 1, params).result()


def test_what_only_the_hosted_service_does_is_refused_by_name(
    sampler: Any, prompt: ModelInput
) -> None:
    params = SamplingParams(max_tokens=1)
    with pytest.raises(tinker.BadRequestError, match="prompt_alt_tokens_k is not supported"):
        sampler.sample(prompt, 1, params, prompt_alt_tokens_k=2).result()


def test_a_cancelled_request_leaves_the_service_free(
    service: LocalService, sampler: Any, prompt: ModelInput
) -> None:
    long = sampler.sample(prompt, 64, SamplingParams(max_tokens=220, stop=[]))
    long.future().cancel()
    response = sampler.sample(prompt, 1, SamplingParams(max_tokens=2)).result()
    assert len(response.sequences) == 1


def test_targets_are_scored_in_the_layout_they_were_asked_in(
    sampler: Any, prompt: ModelInput
) -> None:
    tokens = prompt.to_ints()
    generator = np.random.default_rng(0)
    asked = generator.integers(0, 300, (len(tokens) - 1, 3))
    asked[:, 0], asked[2:5, 1:] = tokens[1:], -1
    params = SamplingParams(max_tokens=1)
    dense = types.TensorData.from_numpy(asked)
    found = sampler.sample(prompt, 1, params, target_prompt_logprobs=dense).result()
    values = found.target_prompt_logprobs.to_numpy()
    whole = sampler.compute_logprobs(prompt).result()
    np.testing.assert_allclose(values[:, 0], whole[1:], atol=1e-4)
    assert not values[asked < 0].any()
    assert (values[asked >= 0] < 0).all()
    everything = sampler.sample(prompt, 1, params, topk_prompt_logprobs=320).result()
    place = everything.topk_prompt_logprobs[7]
    assert values[6, 2] == pytest.approx(dict(place)[asked[6, 2]], abs=1e-4)

    cells = asked >= 0
    sparse = types.TensorData(
        data=asked[cells].tolist(),
        dtype="int64",
        shape=list(asked.shape),
        sparse_crow_indices=np.append(0, np.cumsum(cells.sum(axis=1))).tolist(),
        sparse_col_indices=np.nonzero(cells)[1].tolist(),
    )
    answer = sampler.sample(prompt, 1, params, target_prompt_logprobs=sparse).result()
    got = answer.target_prompt_logprobs
    assert got.sparse_col_indices == sparse.sparse_col_indices
    assert got.sparse_crow_indices == sparse.sparse_crow_indices
    np.testing.assert_allclose(got.data, values[cells], atol=1e-4)
    for wrong, said in (
        (asked[:-1], f"{len(tokens) - 1}, K"),
        (np.where(asked == asked[0, 0], 2**40, asked), "-1, got"),
        (np.where(asked == asked[0, 0], -2, asked), "got -2"),
    ):
        with pytest.raises(tinker.APIStatusError, match=said):
            sampler.sample(
                prompt, 1, params, target_prompt_logprobs=types.TensorData.from_numpy(wrong)
            ).result()
