"""Laws of endpoints: whole conversations, refusals, limits, keys, addresses, and their names."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.endpoint_runs import Answer, forecast, results, run
from tests.evaluation.endpoint_server import Endpoint, serving
from tests.integrations.reference import DESKS, TOOLS, check_answered, play_called
from tokengym.agents.evaluation.chat_client import KEY_VARIABLE
from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.endpoint import EndpointError, parse_endpoint
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.evaluation.verify import verify_evaluation
from tokengym.envs.core.errors import OptionError


def test_a_model_reads_the_whole_conversation_each_turn(tmp_path: Path) -> None:
    def turns(body: dict[str, Any]) -> Answer:
        return f"GO {len(body['messages'])}", "stop", None

    with serving(Endpoint(turns)) as endpoint:
        records = run(endpoint, tmp_path, world="warehouse", tasks=2, system="Be brief.")
    asked = sorted((body["messages"] for body in endpoint.asked), key=len)
    record = records[0]
    whole = [{"role": "system", "content": "Be brief."}]
    for turn in record.turns:
        whole.append({"role": "user", "content": turn.read})
        assert whole in asked
        assert turn.said is not None
        whole.append({"role": "assistant", "content": turn.said})
    assert {body["model"] for body in endpoint.asked} == {"some/model"}
    assert {(body["temperature"], body["max_tokens"]) for body in endpoint.asked} == {(1.0, 1024)}
    assert (record.origin.temperature, record.origin.max_tokens) == (1.0, 1024)
    (stated,) = EvaluationFolder(tmp_path).read()["results"]["policies"]
    assert (stated["temperature"], stated["max_tokens"]) == (1.0, 1024)
    assert record.turns[-1].prompt_tokens == len(json.dumps(whole[:-1]))
    assert verify_evaluation(EvaluationFolder(tmp_path)).differences == []


def test_refusals_and_cut_off_replies_are_recorded_as_such(tmp_path: Path) -> None:
    said = iter([(None, "stop", "I cannot help"), (None, "content_filter", None)])

    def difficult(body: dict[str, Any]) -> Answer:
        return next(said, ("Probability: 0.4", "length", None))

    with serving(Endpoint(difficult)) as endpoint:
        records = run(endpoint, tmp_path, concurrency=1, tasks=3)
    found = [(turn.said, turn.finish, turn.malformed) for (turn,) in (r.turns for r in records)]
    assert found == [
        ("I cannot help", "refusal", True),
        ("", "content_filter", True),
        ("Probability: 0.4", "length", True),
    ]
    (result,) = EvaluationFolder(tmp_path).read()["results"]["policies"]
    assert result["refused"]["value"] == pytest.approx(2 / 3)
    assert result["cut_off"]["value"] == pytest.approx(1 / 3)
    assert verify_evaluation(EvaluationFolder(tmp_path)).differences == []


@pytest.mark.parametrize("concurrency", [1, 4])
def test_the_newer_name_of_a_limit_is_tried_when_asked(concurrency: int, tmp_path: Path) -> None:
    newer = Endpoint(forecast, refuses="max_tokens")
    with serving(newer) as endpoint:
        run(endpoint, tmp_path, concurrency=concurrency, tasks=4, max_tokens=7)
    assert [body["max_completion_tokens"] for body in newer.asked] == [7, 7, 7, 7]


def test_a_mended_key_lets_the_command_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    endpoint = Endpoint(forecast, rejects=lambda body: (401, "no key"))
    with serving(endpoint):
        with pytest.raises(EndpointError, match="OPENAI_API_KEY is not set"):
            run(endpoint, tmp_path)
        monkeypatch.setenv(KEY_VARIABLE, "wrong")
        with pytest.raises(EndpointError, match="OPENAI_API_KEY is not accepted"):
            run(endpoint, tmp_path)
        endpoint.rejects = lambda body: None
        assert len(run(endpoint, tmp_path)) == 6


def test_an_unknown_model_is_answered_with_those_there_are(tmp_path: Path) -> None:
    def unknown(body: dict[str, Any]) -> tuple[int, str] | None:
        return None if body["model"] == "b" else (404, "no such model")

    with serving(Endpoint(forecast, rejects=unknown, models=["b", "c"])) as endpoint:
        with pytest.raises(EndpointError, match="The models there are: b, c"):
            run(endpoint, tmp_path)
        # Nothing was played: the folder is free for the right name, then for more of the same.
        assert len(run(endpoint, tmp_path, model="b")) == 6
        asked = len(endpoint.asked)
        more: dict[str, Any] = {"tasks": 9, "rollouts": 2, "price_read": 1.0}
        assert len(run(endpoint, tmp_path, model="b", **more)) == 18
        assert len(endpoint.asked) == asked + 12
        assert results(tmp_path)["cost"] > 0.0
        for changes in ({"tasks": 4}, {"rollouts": 1}, {"temperature": 0.5}):
            with pytest.raises(OptionError, match="holds rollouts of another evaluation"):
                run(endpoint, tmp_path, model="b", **{**more, **changes})
        with pytest.raises(OptionError, match="holds rollouts of another evaluation"):
            run(endpoint, tmp_path, model="c", **more)


@pytest.mark.parametrize(
    ("text", "model", "url"),
    [
        ("openai:gpt@http://127.0.0.1:1/v1", "gpt", "http://127.0.0.1:1/v1"),
        ("openai:org/model@v2@https://x/v1", "org/model@v2", "https://x/v1"),
        ("openai:gpt", "gpt", None),
        ("openai:m@v2", "m@v2", None),
    ],
)
def test_an_endpoint_is_named_by_model_and_address(text: str, model: str, url: str) -> None:
    assert parse_endpoint(text) == (model, url)


@pytest.mark.parametrize("text", ["openai:", "openai:@http://x", "openai:http://x"])
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="openai:MODEL@URL"):
        parse_endpoint(text)


def test_without_address_a_key_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    config = EvaluationConfig(("forecast",), ("openai:gpt",), tasks=2)
    with pytest.raises(OptionError, match="OPENAI_API_KEY"):
        run_evaluation(config, EvaluationFolder(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("prompt", ["full", "terse"])
@pytest.mark.parametrize("level", DESKS)
def test_tools_are_declared_and_native_calls_play_the_same_episode(
    level: str, prompt: str, tmp_path: Path
) -> None:
    called = play_called(level, "test", 0, prompt=prompt)

    def answer(body: dict[str, Any]) -> bytes:
        first, *_ = messages = body["messages"]
        message = {"content": "answer(probability=0.5)"}
        if first["content"] == called.played.texts[0]:
            message = called.messages[sum(one["role"] == "assistant" for one in messages)]
        choice = {"message": {"role": "assistant", **message}, "finish_reason": "stop"}
        return json.dumps({"choices": [choice], "model": body["model"]}).encode()

    with serving(Endpoint(lambda body: ("", "stop", None), body=answer)) as endpoint:
        options = {"prompt": prompt}
        records = run(endpoint, tmp_path, world=f"forecast:{level}", tasks=2, options=options)
    record = next(one for one in records if one.turns[0].read == called.played.texts[0])
    assert [turn.said for turn in record.turns] == called.played.replies
    assert [turn.reward for turn in record.turns] == called.played.rewards
    for body in endpoint.asked:
        assert body["tools"] == TOOLS[level]
        check_answered(body["messages"])


def test_an_endpoint_that_knows_no_tools_is_asked_for_lines(tmp_path: Path) -> None:
    def reject(body: dict[str, Any]) -> tuple[int, str] | None:
        return (400, '"auto" tool choice requires a parser') if "tools" in body else None

    def line(body: dict[str, Any]) -> Answer:
        return "answer(probability=0.5)", "stop", None

    with serving(Endpoint(line, rejects=reject)) as endpoint:
        records = run(endpoint, tmp_path, world="forecast:desk", tasks=2)
    assert all("tools" not in body for body in endpoint.asked)
    assert [record.turns[0].malformed for record in records] == [False, False]
