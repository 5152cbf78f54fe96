"""Laws of endpoints: whole conversations, retries, refusals, bounds, and nothing asked twice."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.endpoint_server import Endpoint, serving
from tokengym.agents.analysis.report import Table
from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.endpoint import EndpointError, EndpointName
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.report import evaluation_report
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.evaluation.verify import verify_evaluation
from tokengym.agents.rollouts import RolloutRecord
from tokengym.envs.core.errors import OptionError

Answer = tuple[str | None, str, str | None]


def forecast(body: dict[str, Any]) -> Answer:
    return "Probability: 0.4", "stop", None


def run(
    endpoint: Endpoint, folder: Path, concurrency: int = 4, world: str = "forecast", **changes: Any
) -> list[RolloutRecord]:
    """Evaluate the endpoint's model; returns its rollouts."""
    policy = f"openai:some/model@{endpoint.url}"
    config = EvaluationConfig((WorldLevel.parse(world),), (policy,), **{"tasks": 6, **changes})
    run_evaluation(config, EvaluationFolder(folder), concurrency, lambda *_: None)
    return list(EvaluationFolder(folder).rollouts.read())


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


def test_errors_of_the_moment_are_tried_again_and_requests_are_bounded(tmp_path: Path) -> None:
    busy = Endpoint(forecast, failures=[429, 500, 503, 429], together=3)
    with serving(busy) as endpoint:
        records = run(endpoint, tmp_path, concurrency=3, tasks=9, rollouts=2)
    assert len(records) == len(endpoint.asked) == 18
    assert endpoint.busiest == 3
    assert endpoint.failures == []


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


def test_what_was_stopped_goes_on_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    with serving(Endpoint(forecast, gives_up_after=5)) as endpoint:
        with pytest.raises(EndpointError, match="out of credit"):
            run(endpoint, tmp_path, concurrency=1, rollouts=2)
        assert len(endpoint.asked) == 5
        log = EvaluationFolder(tmp_path).rollouts
        path = log.path(log.segments()[0].name)
        path.write_bytes(path.read_bytes()[:-30])  # killed while the fifth was written
        endpoint.gives_up_after = None
        records = run(endpoint, tmp_path, rollouts=2)
        assert len(endpoint.asked) == 5 + 8
        assert run(endpoint, tmp_path, rollouts=2) == records
        assert len(endpoint.asked) == 5 + 8
    assert [(r.origin.group, r.origin.member) for r in records] == [
        (group, member) for group in range(6) for member in range(2)
    ]
    assert verify_evaluation(EvaluationFolder(tmp_path)).differences == []


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_limit_by_its_newer_name_is_tried_where_it_is_asked_for(
    concurrency: int, tmp_path: Path
) -> None:
    newer = Endpoint(forecast, refuses="max_tokens")
    with serving(newer) as endpoint:
        run(endpoint, tmp_path, concurrency=concurrency, tasks=4, max_tokens=7)
    assert [body["max_completion_tokens"] for body in newer.asked] == [7, 7, 7, 7]


@pytest.mark.parametrize("status", [400, 403, 413, 422])
def test_a_refused_conversation_is_a_failed_rollout_and_the_others_go_on(
    status: int, tmp_path: Path
) -> None:
    def too_long(body: dict[str, Any]) -> tuple[int, str] | None:
        """Refuse the third turn of every conversation but the first."""
        asked = [one["content"] for one in body["messages"] if one["role"] == "user"]
        later = seen.setdefault(asked[0], len(seen))
        return (status, "context of 8 tokens") if later and len(asked) > 2 else None

    seen: dict[str, int] = {}
    with serving(Endpoint(lambda body: ("hold", "stop", None), rejects=too_long)) as endpoint:
        records = run(endpoint, tmp_path, concurrency=1, world="energy:small", tasks=3)
        asked = len(endpoint.asked)
        assert run(endpoint, tmp_path, world="energy:small", tasks=3) == records
        assert len(endpoint.asked) == asked
    whole, *failed = records
    assert whole.failure is None
    assert [len(record.own_turns) for record in failed] == [2, 2]
    for record in failed:
        assert record.stop_reason == "abandoned"
        assert record.turns[-1].said is None
        assert record.failure is not None
        assert str(status) in record.failure
        assert "context of 8 tokens" in record.failure
    assert verify_evaluation(EvaluationFolder(tmp_path)).differences == []


def test_failed_rollouts_are_counted_in_the_table(tmp_path: Path) -> None:
    refused = iter([(400, "the filter"), None])  # its own request, and the probe's
    endpoint = Endpoint(forecast, rejects=lambda body: next(refused, None))
    with serving(endpoint):
        policy = f"openai:some/model@{endpoint.url}"
        config = EvaluationConfig((WorldLevel.parse("forecast"),), (policy,), tasks=4)
        results = run_evaluation(config, EvaluationFolder(tmp_path), 1)
    table = evaluation_report(config, results).parts[0]
    assert isinstance(table, Table)
    assert ("failed", "1 of 4") in table.rows
    assert results.to_dict()["policies"][0]["failures"] == {"refused (status 400)": 1}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_is_wrong_with_every_request_ends_the_evaluation(status: int, tmp_path: Path) -> None:
    endpoint = Endpoint(forecast, rejects=lambda body: (status, "no such thing"))
    with serving(endpoint), pytest.raises(EndpointError, match="no such thing"):
        run(endpoint, tmp_path, concurrency=2)
    assert list(EvaluationFolder(tmp_path).rollouts.read()) == []


def test_half_a_surrogate_pair_is_played_as_it_can_be_written(tmp_path: Path) -> None:
    with serving(Endpoint(lambda body: ("\ud83d Probability: 0.4", "stop", None))) as endpoint:
        records = run(endpoint, tmp_path, tasks=2)
    assert {record.turns[0].said for record in records} == {"? Probability: 0.4"}
    assert verify_evaluation(EvaluationFolder(tmp_path)).differences == []


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
    assert EndpointName.parse(text) == (model, url)


@pytest.mark.parametrize("text", ["openai:", "openai:@http://x/v1", "openai:http://x/v1"])
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="openai:MODEL@URL"):
        EndpointName.parse(text)


def test_without_address_a_key_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    config = EvaluationConfig((WorldLevel.parse("forecast"),), ("openai:gpt",), tasks=2)
    with pytest.raises(OptionError, match="OPENAI_API_KEY"):
        run_evaluation(config, EvaluationFolder(tmp_path), 1, lambda *_: None)
    assert list(tmp_path.iterdir()) == []
