"""Endpoints that fail: requests are retried, failures counted, and killed evaluations go on."""

import random
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.evaluation.endpoint_runs import HASTY, digest, faulty, forecast, kill, results, run
from tests.evaluation.endpoint_server import Endpoint, serving
from tokengym.agents.evaluation import chat_client
from tokengym.agents.evaluation.endpoint import EndpointError
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.verify import verify_evaluation


def test_passing_errors_are_retried_within_bounds(tmp_path: Path) -> None:
    busy = Endpoint(forecast, failures=[429, 500, 503, 429], together=3)
    with serving(busy) as endpoint:
        records = run(endpoint, tmp_path, concurrency=3, tasks=9, rollouts=2)
    assert len(records) == len(endpoint.asked) == 18
    assert endpoint.busiest == 3
    assert endpoint.failures == []


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        *(({"retry-after": text}, 0.0) for text in ("-3", "nan")),
        *(({"retry-after": text}, 120.0) for text in ("1e9", "inf")),
        *(({"retry-after": text}, None) for text in ("", "soon")),
        ({}, None),
    ],
)
def test_servers_may_ask_for_waits_of_two_minutes(
    headers: dict[str, str], seconds: float | None
) -> None:
    response: Any = web.Response(headers=headers)
    assert chat_client._delay(response) == seconds


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


@pytest.mark.nightly
@pytest.mark.parametrize("status", [400, 403, 413, 422])
def test_a_refused_conversation_fails_its_rollout_alone(status: int, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_is_wrong_with_every_request_ends_the_evaluation(status: int, tmp_path: Path) -> None:
    endpoint = Endpoint(forecast, rejects=lambda body: (status, "no such thing"))
    with serving(endpoint), pytest.raises(EndpointError, match="no such thing"):
        run(endpoint, tmp_path, concurrency=2)
    assert list(EvaluationFolder(tmp_path).rollouts.read()) == []


@pytest.mark.nightly
def test_an_unreliable_endpoint_is_evaluated_in_one_run(tmp_path: Path) -> None:
    """Of 200 conversations two are refused for ever, two dropped and two hung."""
    kinds = {"refused (status 400)": 2, "no connection": 2, "time-out": 2}
    with serving(faulty(200)) as endpoint:
        records = run(endpoint, tmp_path, 16, **HASTY, tasks=200)
        found = results(tmp_path)
        assert found["failures"] == kinds
        assert found["lost"] == 4
        assert found["mean_return"]["samples"] == 196
        played = [record.total for record in records if not record.lost]
        assert found["mean_return"]["value"] == pytest.approx(sum(played) / 196)
        answered = [record for record in records if record.failure is None]
        assert len(answered) == 194
        assert verify_evaluation(EvaluationFolder(tmp_path)).differences == []

        # What was lost is tried again; nothing else is.
        before = len(endpoint.asked)
        endpoint.fault = lambda body: ""
        run(endpoint, tmp_path, 16, **HASTY, tasks=200)
        assert len(endpoint.asked) == before + 4
        assert results(tmp_path)["failures"] == {"refused (status 400)": 2}


@pytest.mark.nightly
def test_kills_change_nothing(tmp_path: Path) -> None:
    chance = random.Random(0)
    with serving(faulty(60)) as endpoint:
        run(endpoint, tmp_path / "whole", 16, **HASTY, tasks=60)
        policy = f"openai:some/model@{endpoint.url}"
        words = ["evaluate", "forecast", "--policy", policy, "--tasks", "60", "--out", "killed"]
        words += ["--timeout", "1", "--retries", "1"]
        asked = len(endpoint.asked)
        for workers in ("1", "2"):
            kill(endpoint, [*words, "--workers", workers], tmp_path, chance.randrange(1, 20))
        folder = EvaluationFolder(tmp_path / "killed")
        assert folder.read()["results"] is None
        run(endpoint, folder.folder, 16, **HASTY, tasks=60)
        # Of each kill, what 16 requests at once had not answered yet is asked for again.
        assert len(endpoint.asked) <= asked + 57 + 2 * 17
    assert digest(folder.folder) == digest(tmp_path / "whole")


def test_more_failures_than_allowed_stop_and_say_why(tmp_path: Path) -> None:
    broken = Endpoint(forecast, fault=lambda body: "break" if endpoint.asked else "")
    with serving(broken) as endpoint, pytest.raises(EndpointError) as stopped:
        run(endpoint, tmp_path, 1, retries=0, max_failures=2)
    assert "3 rollouts failed, more than --max-failures 2" in str(stopped.value)
    assert "broken answer: '{\"choices\": []}'" in str(stopped.value)
    assert [record.lost for record in EvaluationFolder(tmp_path).rollouts.read()] == [
        *(False, True, True, True)
    ]


@pytest.mark.parametrize("fault", ["hang", "drop", "break"])
def test_an_endpoint_that_never_answers_ends_the_evaluation(fault: str, tmp_path: Path) -> None:
    with (
        serving(Endpoint(forecast, fault=lambda body: fault)) as endpoint,
        pytest.raises(EndpointError, match=r"Is a server running at http.*, and of this API\?"),
    ):
        run(endpoint, tmp_path, timeout=0.2, retries=0)
    assert list(EvaluationFolder(tmp_path).rollouts.read()) == []
