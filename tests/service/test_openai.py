"""OpenAI's client talks to base models and to saved policies, and gets what the SDK gets."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import openai
import pytest
import tinker
from tinker.types import AdamParams, ModelInput, SamplingParams

from tests.every import every
from tests.service.asking import TALK, datum, status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokengym.agents.service import LocalService

MESSAGES: Any = [{"role": "user", "content": "Probability?"}]


@pytest.fixture(scope="module")
def harness(starting_service: LocalService) -> Iterator[openai.OpenAI]:
    url, key = f"{starting_service.base_url}/v1", starting_service.api_key
    with openai.OpenAI(base_url=url, api_key=key, max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def sdk(starting_service: LocalService) -> Any:
    return tinker.ServiceClient(
        base_url=starting_service.base_url, api_key=starting_service.api_key
    )


def _sampled(sdk: Any, tokens: list[int], count: int, **which: str) -> Any:
    params = SamplingParams(max_tokens=12, seed=5)
    sampler = sdk.create_sampling_client(**which)
    return sampler.sample(ModelInput.from_ints(tokens), count, params).result().sequences


@pytest.mark.nightly
def test_a_chat_has_the_samplers_tokens_and_logprobs(
    harness: openai.OpenAI, sdk: Any, starting_service: LocalService
) -> None:
    run = sdk.create_lora_training_client(starting_service.model_name, rank=4, seed=3).result()
    run.forward_backward([datum(TALK)], "cross_entropy")
    run.optim_step(AdamParams(learning_rate=0.01)).result()
    path = run.save_weights_for_sampler("for-chat").result().path
    answers = {}
    for model in (path, starting_service.model_name):
        answer: Any = harness.chat.completions.create(
            model=model, messages=MESSAGES, n=2, seed=5, max_tokens=12, logprobs=True
        )
        which = {"model_path": path} if model == path else {"base_model": model}
        expected = _sampled(sdk, answer.prompt_token_ids, 2, **which)
        for choice, sequence in zip(answer.choices, expected, strict=True):
            assert choice.token_ids == sequence.tokens
            logprobs = [entry.logprob for entry in choice.logprobs.content]
            assert logprobs == pytest.approx(sequence.logprobs, abs=1e-6)
            assert choice.finish_reason == sequence.stop_reason
        assert answer.usage.prompt_tokens == len(answer.prompt_token_ids)
        assert answer.usage.completion_tokens == sum(len(s.tokens) for s in expected)
        answers[model] = sum(entry.logprob for entry in answer.choices[0].logprobs.content)
    # Another policy, or the test above compares the base model with itself.
    difference = answers[path] - answers[starting_service.model_name]
    assert abs(difference) > 1e-3, difference


def test_a_special_token_that_a_message_spells_is_text(
    harness: openai.OpenAI, sdk: Any, starting_service: LocalService
) -> None:
    tokenizer = sdk.create_sampling_client(base_model=starting_service.model_name).get_tokenizer()
    special = tokenizer.eos_token
    settings: Any = {"model": starting_service.model_name, "max_tokens": 1}
    prompts = []
    for content in ("a b", f"a{special} b"):
        messages: Any = [{"role": "user", "content": content}]
        answer: Any = harness.chat.completions.create(**settings, messages=messages)
        prompts.append(answer.prompt_token_ids)
    without, with_it = prompts
    counts = [ids.count(tokenizer.eos_token_id) for ids in prompts]
    assert counts[0] == counts[1]
    assert f"a{special} b" in tokenizer.decode(with_it)
    templated = tokenizer.apply_chat_template(
        [{"role": "user", "content": "a b"}], add_generation_prompt=True, return_dict=False
    )
    assert without == list(templated)


def test_a_stream_adds_up_to_the_answer(
    harness: openai.OpenAI, starting_service: LocalService
) -> None:
    settings: Any = {
        "model": starting_service.model_name,
        "messages": MESSAGES,
        "seed": 2,
        "max_tokens": 16,
        "temperature": 1.5,
        "stop": ["00"],
        "logprobs": True,
        "top_logprobs": 2,
    }
    harness.chat.completions.create(**settings)  # so that both that follow read a kept prompt
    whole: Any = harness.chat.completions.create(**settings)
    text, tokens, logprobs, reasons = "", [], [], []
    stream: Any = harness.chat.completions.create(
        **settings, stream=True, stream_options={"include_usage": True}
    )
    for piece in stream:
        if not piece.choices:
            assert piece.usage == whole.usage
            continue
        (choice,) = piece.choices
        text += choice.delta.content
        tokens += choice.token_ids
        logprobs += choice.logprobs.content
        reasons.append(choice.finish_reason)
    (expected,) = whole.choices
    assert text == expected.message.content
    assert tokens == expected.token_ids
    assert logprobs == expected.logprobs.content
    assert all(len(entry.top_logprobs) == 2 for entry in logprobs)
    assert reasons[-1] == expected.finish_reason
    assert not any(reasons[:-1])


def test_completions_take_texts_and_tokens_and_leave_out_the_stop(
    harness: openai.OpenAI, sdk: Any, starting_service: LocalService
) -> None:
    tokenizer = sdk.create_sampling_client(base_model=starting_service.model_name).get_tokenizer()
    texts = ["Probability: 0.", "Probability"]
    answers: list[Any] = [
        harness.completions.create(
            model=starting_service.model_name,
            prompt=prompt,
            n=2,
            seed=1,
            temperature=0,
            logprobs=1,
            stop=["0"],
            max_tokens=6,
        )
        for prompt in (texts, [tokenizer.encode(text) for text in texts])
    ]
    first, second = ([c.token_ids for c in answer.choices] for answer in answers)
    assert first == second
    assert [choice.index for choice in answers[0].choices] == [0, 1, 2, 3]
    for choice in answers[0].choices:
        said = tokenizer.decode(choice.token_ids, skip_special_tokens=True)
        assert choice.text == said.split("0")[0]
        assert "".join(choice.logprobs.tokens).startswith(choice.text)
        assert choice.prompt_token_ids == tokenizer.encode(texts[choice.index // 2])


@every(
    ("changes", "said"),
    [
        ({"model": "nothing"}, "got 'nothing'"),
        ({"model": "tinker://x"}, "tinker://run/weights/name"),
        ({"n": 0}, "got 0 times 1"),
        ({"n": 2000}, "1 to 1024"),
        ({"temperature": -1}, "got -1"),
        ({"temperature": 1e-40}, "got 1e-40"),
        ({"max_tokens": 10**9}, "got 1000000000"),
        ({"presence_penalty": 0.5}, "presence_penalty: Input should be 0"),
        ({"extra_body": {"surprise": 1}}, "surprise: Extra inputs"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "image_url"),
        ({"stop": [""]}, "stop strings"),
        ({"messages": [3] * 2000}, "at most 1000 faults, got 2000"),
        ({"extra_body": {"tools": [{"type": "function"}]}}, "tools.0.function: Field required"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}]}, "tool_calls"),
        ({"messages": [{"role": "user", "content": None}]}, "content: Field required"),
        ({"extra_body": {"model": None}}, "model: Field required"),
        ({"logprobs": True, "top_logprobs": 9999}, "got 9999"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(
    harness: openai.OpenAI, starting_service: LocalService, changes: dict[str, Any], said: str
) -> None:
    settings = {"model": starting_service.model_name, "messages": MESSAGES, **changes}
    with pytest.raises(openai.APIStatusError, match=said):
        harness.chat.completions.create(**settings)


def test_what_says_nothing_is_no_reason_to_refuse(
    harness: openai.OpenAI, starting_service: LocalService
) -> None:
    settings: Any = {"model": starting_service.model_name, "seed": 3, "max_tokens": 8}
    first: Any = harness.chat.completions.create(**settings, messages=MESSAGES)
    said = first.choices[0].message
    second = {"role": "user", "content": [{"type": "text", "text": "Again?"}]}
    plain = [*MESSAGES, {"role": "assistant", "content": said.content}, second]
    # As clients send a reply back: every field of the message, most of them null or empty.
    sent = [*MESSAGES, {**said.model_dump(), "tool_calls": None, "annotations": []}, second]
    null = ("tools", "tool_choice", "response_format", "stream_options", "n", "top_p", "top_k")
    nothing: dict[str, Any] = {
        **dict.fromkeys(null),
        "logit_bias": {},
        "stop": [],
        "stop_token_ids": [],
    }
    expected, answer = (
        harness.chat.completions.create(**settings, messages=messages, extra_body=more)
        for messages, more in ((plain, {}), (sent, nothing))
    )
    assert answer.choices == expected.choices
    assert answer.usage == expected.usage


@pytest.mark.nightly
def test_others_are_answered_while_a_large_chat_is_tokenised(
    harness: openai.OpenAI, starting_service: LocalService
) -> None:
    large: Any = [{"role": "user", "content": "Hello there, my " * 60_000}]

    def seconds(messages: Any) -> float:
        before = time.perf_counter()
        with pytest.raises(openai.BadRequestError, match="tokens"):
            harness.chat.completions.create(
                model=starting_service.model_name, messages=messages, max_tokens=1 << 30
            )
        return time.perf_counter() - before

    with ThreadPoolExecutor(1) as threads:
        chat = threads.submit(seconds, large)
        waits = []
        while not chat.done():
            waits.append(seconds(MESSAGES))
    # On the event loop, one of them would wait for nearly all of it.
    assert max(waits) <= chat.result() / 2


def test_the_models_are_listed_and_the_key_is_asked_for(
    harness: openai.OpenAI, service: LocalService
) -> None:
    assert len(harness.models.list().data) == 1
    with (
        openai.OpenAI(base_url=f"{service.base_url}/v1", api_key="tml-wrong") as stranger,
        pytest.raises(openai.AuthenticationError, match="must be the key"),
    ):
        stranger.models.list()


def test_a_model_without_a_chat_template_names_the_other_route(service: LocalService) -> None:
    with (
        openai.OpenAI(base_url=f"{service.base_url}/v1", api_key=service.api_key) as client,
        pytest.raises(openai.BadRequestError, match="use /v1/completions"),
    ):
        client.chat.completions.create(model=service.model_name, messages=MESSAGES)


def test_a_client_that_goes_leaves_nothing_behind(
    harness: openai.OpenAI, starting_service: LocalService
) -> None:
    before = status(starting_service)["bytes_of_requests"]
    # So hot that hardly any reply ends by itself before it was looked at.
    options: dict[str, Any] = {"n": 64, "max_tokens": 800, "temperature": 2.0, "logprobs": 0}
    hasty = harness.with_options(timeout=0.3, max_retries=0)
    with ThreadPoolExecutor(1) as threads:
        name = starting_service.model_name
        gone = threads.submit(lambda: hasty.completions.create(model=name, prompt="a", **options))
        while status(starting_service)["bytes_of_requests"] == before and not gone.done():
            pass
        assert not gone.done()
        with pytest.raises(openai.APITimeoutError):
            gone.result()
    for _ in range(100):
        if status(starting_service)["bytes_of_requests"] == before:
            break
        time.sleep(0.1)
    assert status(starting_service)["bytes_of_requests"] == before
    assert " ERROR " not in starting_service.log_path.read_text()
