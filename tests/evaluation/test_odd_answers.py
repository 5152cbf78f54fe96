"""Laws of reading an endpoint's answers: whatever one holds, nothing paid for is lost by it."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp")

from hypothesis import example, given
from hypothesis import strategies as st

from tests.evaluation.endpoint_runs import forecast, results, run
from tests.evaluation.endpoint_server import Endpoint, serving
from tokengym.agents.evaluation import endpoint as endpoints
from tokengym.agents.evaluation.chat_answer import ChatAnswer
from tokengym.agents.evaluation.chat_client import EndpointSettings
from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.report import saved_report
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.execution.run_async import run_async
from tokengym.envs import make_world

GOOD = "Probability: 0.4"
ONCE: dict[str, Any] = {"timeout": 20.0, "retries": 0}

words = st.text(st.characters(), max_size=6)  # halves of surrogate pairs too
scalars = st.none() | st.booleans() | st.integers() | st.floats() | words | st.just(10**400)
junk = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2)
)


def holding(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return objects that may have each of the fields, or be anything."""
    return st.fixed_dictionaries({}, optional={**fields, "more": junk}) | junk


parts = holding(type=st.sampled_from(("text", "thinking", "image_url")) | junk, text=words | junk)
messages = holding(
    content=words | st.lists(parts, max_size=3) | junk, refusal=junk, reasoning=words
)
choices = holding(message=messages, finish_reason=st.sampled_from(("stop", "error", "")) | junk)
counts = scalars | st.sampled_from(("9", "9.0", "nine", -1, 3.5))
answers = holding(
    choices=st.lists(choices, min_size=1, max_size=2) | junk,
    usage=holding(prompt_tokens=counts, completion_tokens=counts),
    model=st.sampled_from(("some/model", "another")) | junk,
)


def answer(content: Any, finish: Any = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    return {"choices": [{"message": message, "finish_reason": finish}], **more}


@pytest.fixture(scope="module")
def server() -> Iterator[Endpoint]:
    with serving(Endpoint(forecast)) as made:
        yield made


@pytest.mark.nightly
@given(sent=answers)
@example(sent=answer(GOOD, usage="12 tokens"))
@example(sent=answer(GOOD, usage=float("nan")))
@example(sent=answer(GOOD, usage={"prompt_tokens": "9", "completion_tokens": [5]}))
@example(sent=answer(GOOD, usage={"prompt_tokens": True, "completion_tokens": -1}))
@example(sent=answer(GOOD, usage={"prompt_tokens": 10**400, "completion_tokens": 9.0}))
@example(sent=answer([{"type": "text", "text": GOOD}], {"reason": "stop"}, model=["x"]))
@example(sent=answer(None, reasoning=GOOD))
def test_no_answer_raises_and_what_is_noted_can_be_written(sent: Any, server: Endpoint) -> None:
    server.body = lambda _: json.dumps(sent).encode()
    asked = endpoints.Endpoint.named(f"openai:some/model@{server.url}", EndpointSettings(**ONCE))
    asked.answered = True  # so that a broken answer is a failure of this request alone

    async def ask() -> tuple[str | None, Mapping[str, Any]]:
        async with asked.client:
            reply, noted, _ = await asked.ask([{"role": "user", "content": "?"}])
            return None if reply is None else reply.text, noted

    text, noted = run_async(ask())
    json.dumps([text, noted], allow_nan=False, ensure_ascii=False).encode()
    for name in ("prompt_tokens", "completion_tokens"):
        count = noted.get(name)
        assert count is None or (type(count) is int and 0 <= count <= 2**53)
    if text is None:
        assert noted["finish"].startswith("broken answer")


@pytest.mark.nightly
@pytest.mark.parametrize("sent", [b"[" * 100_000, b"\xff", b"1" * 5000, b"null", b""])
def test_what_is_no_answer_at_all_is_a_broken_one(sent: bytes, server: Endpoint) -> None:
    server.body = lambda _: sent
    asked = endpoints.Endpoint.named(f"openai:some/model@{server.url}", EndpointSettings(**ONCE))
    asked.answered = True

    async def ask() -> str:
        async with asked.client:
            return str((await asked.ask([]))[1]["finish"])

    assert run_async(ask()).startswith("broken answer")


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (answer([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "ab"),
        (answer([{"type": "thinking", "text": "no"}, {"type": "text", "text": "b"}]), "b"),
        (answer(None, reasoning="no"), ""),
        (answer([{"type": "image_url", "image_url": {}}]), ""),
        (answer("a", usage=[1], model=5), "a"),
    ],
)
def test_the_reply_is_its_text_and_never_its_reasoning(sent: Any, text: str) -> None:
    assert ChatAnswer.read(json.dumps(sent).encode()).text == text


@pytest.mark.parametrize(
    "finish", ["length", "max_tokens", "MAX_TOKENS", "model_length", "max_output_tokens"]
)
def test_a_reply_is_cut_off_by_whatever_name(finish: str, tmp_path: Path) -> None:
    with serving(Endpoint(lambda _: (GOOD, finish, None))) as endpoint:
        run(endpoint, tmp_path, tasks=2)
    assert results(tmp_path)["cut_off"]["value"] == 1.0


def test_a_broken_answer_fails_its_rollout_alone(tmp_path: Path) -> None:
    """Eight questions get one each; a later run asks those that failed again, and no other."""
    odd: list[Any] = [
        answer(GOOD, usage="none"),
        answer(5),
        answer([{"type": "text", "text": GOOD}], usage={"prompt_tokens": float("nan")}),
        {"error": {"message": "overloaded"}},
        answer(GOOD, usage={"prompt_tokens": 10**400, "completion_tokens": "5"}),
        {"choices": []},
        answer("", "error"),
        answer(GOOD, 7, usage=[]),
    ]
    world = make_world("forecast")
    place = {world.start(task).text: n for n, task in enumerate(world.first_tasks("test", 8))}

    def body(request: dict[str, Any]) -> bytes | None:
        number = place.get(request["messages"][-1]["content"])
        return None if number is None or mended else json.dumps(odd[number]).encode()

    mended = False
    with serving(Endpoint(forecast, body=body)) as endpoint:
        first = run(endpoint, tmp_path, tasks=8, **ONCE)
        assert [record.lost for record in first] == [n in (1, 3, 5, 6) for n in range(8)]
        assert results(tmp_path)["failures"] == {"broken answer": 4}
        asked, mended = len(endpoint.asked), True
        again = run(endpoint, tmp_path, tasks=8, **ONCE)
        assert len(endpoint.asked) == asked + 4
    assert not any(record.lost for record in again)
    assert results(tmp_path)["malformed"]["value"] == 0.0


def test_another_model_is_recorded_and_reported(tmp_path: Path) -> None:
    sent = json.dumps(answer(GOOD, model="some/model-mini")).encode()
    with serving(Endpoint(forecast, body=lambda _: sent)) as endpoint:
        config = EvaluationConfig(("forecast",), (f"openai:some/model@{endpoint.url}",), tasks=4)
        run_evaluation(config, EvaluationFolder(tmp_path))
    records = list(EvaluationFolder(tmp_path).rollouts.read())
    assert {turn.model for record in records for turn in record.turns} == {"some/model-mini"}
    assert results(tmp_path)["other_models"] == {"some/model-mini": 4}
    report = saved_report(EvaluationFolder(tmp_path))
    assert report is not None
    (line,) = (line for line in report.lines if "mini" in line)
    assert line.endswith("4 replies are of another model, some/model-mini.")


def test_the_model_that_was_asked_for_is_not_remarked(tmp_path: Path) -> None:
    with serving(Endpoint(forecast)) as endpoint:
        (first, *_) = run(endpoint, tmp_path, tasks=2)
    assert first.turns[0].model is None
    assert results(tmp_path)["other_models"] == {}
