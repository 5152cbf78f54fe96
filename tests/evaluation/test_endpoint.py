"""Laws of endpoints: whole conversations, retries, refusals, bounds, and nothing asked twice."""

import json
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.evaluation.endpoint_server import Endpoint, serving
from tokengym.agents.analysis.report import Table
from tokengym.agents.evaluation import chat_client
from tokengym.agents.evaluation.chat_client import KEY_VARIABLE, PATIENCE, Patience
from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.endpoint import EndpointError, parse_endpoint
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.play_missing import Progress
from tokengym.agents.evaluation.report import evaluation_report
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.evaluation.verify import verify_evaluation
from tokengym.agents.rollouts import RolloutRecord
from tokengym.envs import make_world
from tokengym.envs.core.errors import OptionError

Answer = tuple[str | None, str, str | None]


def forecast(body: dict[str, Any]) -> Answer:
    return "Probability: 0.4", "stop", None


def run(
    endpoint: Endpoint,
    folder: Path,
    concurrency: int = 4,
    world: str = "forecast",
    patience: Patience = PATIENCE,
    progress: Progress = lambda *_: None,
    model: str = "some/model",
    **changes: Any,
) -> list[RolloutRecord]:
    """Evaluate the endpoint's model; returns its rollouts."""
    policy = f"openai:{model}@{endpoint.url}"
    config = EvaluationConfig((WorldLevel.parse(world),), (policy,), **{"tasks": 6, **changes})
    run_evaluation(config, EvaluationFolder(folder), concurrency, progress, patience)
    return list(EvaluationFolder(folder).rollouts.read())


def results(folder: Path) -> dict[str, Any]:
    """Return the results of the evaluation's one policy."""
    (found,) = EvaluationFolder(folder).read()["results"]["policies"]
    return dict(found)


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


def test_a_model_that_does_not_know_the_form_is_told_apart_first(tmp_path: Path) -> None:
    with serving(Endpoint(lambda body: ("I think that", "length", None))) as endpoint:
        policy = f"openai:some/model@{endpoint.url}"
        config = EvaluationConfig((WorldLevel.parse("forecast"),), (policy, "half"), tasks=4)
        found = run_evaluation(config, EvaluationFolder(tmp_path), 1)
    first, second, *_ = evaluation_report(config, found).lines
    assert first == (
        f"{policy} in forecast:easy: 0% of the replies have the form that is asked for, so returns "
        "say little else. It reads the full prompts; try a larger --max-tokens, as most are cut "
        "off, --option prompt=terse for a model that was trained on those, or teach it the form "
        "with tokengym sft."
    )
    assert second.startswith("Tasks (test)")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_is_wrong_with_every_request_ends_the_evaluation(status: int, tmp_path: Path) -> None:
    endpoint = Endpoint(forecast, rejects=lambda body: (status, "no such thing"))
    with serving(endpoint), pytest.raises(EndpointError, match="no such thing"):
        run(endpoint, tmp_path, concurrency=2)
    assert list(EvaluationFolder(tmp_path).rollouts.read()) == []


FAULTS = ("", "hang", "drop", "refuse")
HASTY = Patience(timeout=1.0, retries=1)


def faulty(tasks: int) -> Endpoint:
    """Return an endpoint to which every hundredth question is too much, hangs, or is dropped."""
    world = make_world("forecast")
    asked = [world.start(task).text for task in world.first_tasks("test", tasks)]
    faults = {asked[n]: FAULTS[n % 100] for n in range(tasks) if n % 100 < len(FAULTS)}

    def fault(body: dict[str, Any]) -> str:
        return faults.get(body["messages"][-1]["content"], "")

    def unless_refused(body: dict[str, Any]) -> str:
        return "" if fault(body) == "refuse" else fault(body)

    def rejects(body: dict[str, Any]) -> tuple[int, str] | None:
        return (400, "context of 8 tokens") if fault(body) == "refuse" else None

    return Endpoint(forecast, rejects=rejects, fault=unless_refused)


def digest(folder: Path) -> dict[str, bytes]:
    files = {path.name: path.read_bytes() for path in (folder / "rollouts").iterdir()}
    shown = json.dumps(EvaluationFolder(folder).read()["results"]).encode()
    return {**files, "results": shown}


def test_an_endpoint_that_fails_now_and_then_is_evaluated_in_one_run(tmp_path: Path) -> None:
    """Of 200 conversations two are refused for ever, two dropped and two hung."""
    kinds = {"refused (status 400)": 2, "no connection": 2, "time-out": 2}
    with serving(faulty(200)) as endpoint:
        records = run(endpoint, tmp_path, 16, patience=HASTY, tasks=200)
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
        run(endpoint, tmp_path, 16, patience=HASTY, tasks=200)
        assert len(endpoint.asked) == before + 4
        assert results(tmp_path)["failures"] == {"refused (status 400)": 2}


def kill(endpoint: Endpoint, words: Sequence[str], folder: Path, answers: int) -> None:
    """Start the command, and kill it and its workers' parent after so many answers."""
    until = len(endpoint.asked) + answers
    command = [str(Path(sys.executable).parent / "tokengym"), *words]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as process:
        while len(endpoint.asked) < until:
            assert process.poll() is None
            time.sleep(0.002)
        process.kill()


def test_kills_change_nothing(tmp_path: Path) -> None:
    """Twenty of them: see `benchmarks/endpoint_faults.py`."""
    chance = random.Random(0)
    with serving(faulty(60)) as endpoint:
        run(endpoint, tmp_path / "whole", 16, patience=HASTY, tasks=60)
        policy = f"openai:some/model@{endpoint.url}"
        words = ["evaluate", "forecast", "--policy", policy, "--tasks", "60", "--out", "killed"]
        words += ["--timeout", "1", "--retries", "1"]
        asked = len(endpoint.asked)
        for workers in ("1", "2"):
            kill(endpoint, [*words, "--workers", workers], tmp_path, chance.randrange(1, 20))
        folder = EvaluationFolder(tmp_path / "killed")
        assert folder.read()["results"] is None
        run(endpoint, folder.folder, 16, patience=HASTY, tasks=60)
        # Of each kill, what 16 requests at once had not answered yet is asked for again.
        assert len(endpoint.asked) <= asked + 57 + 2 * 17
    assert digest(folder.folder) == digest(tmp_path / "whole")


def test_several_addresses_share_the_requests_at_the_rate_of_each(tmp_path: Path) -> None:
    """Of six requests each answers three, half a second apart; one that is down is passed over."""
    with serving(Endpoint(forecast)) as one, serving(Endpoint(forecast)) as other:
        both = Endpoint(forecast, url=f"{one.url},{other.url}")
        begun = time.monotonic()
        records = run(both, tmp_path / "both", patience=Patience(rate=120.0))
        assert time.monotonic() - begun >= 1.0
        assert (len(one.asked), len(other.asked)) == (3, 3)
        down = Endpoint(forecast, url=f"{one.url},http://127.0.0.1:9/v1")
        again = run(down, tmp_path / "down", tasks=2)
        assert len(one.asked) == 3 + 2
    assert [record.turns for record in again] == [record.turns for record in records[:2]]


def test_more_failures_than_allowed_stop_and_say_why(tmp_path: Path) -> None:
    broken = Endpoint(forecast, fault=lambda body: "break" if endpoint.asked else "")
    with serving(broken) as endpoint, pytest.raises(EndpointError) as stopped:
        run(endpoint, tmp_path, 1, patience=Patience(retries=0, max_failures=2))
    assert "3 rollouts failed, more than --max-failures 2" in str(stopped.value)
    assert "broken answer: '{\"choices\": []}'" in str(stopped.value)
    assert [record.lost for record in EvaluationFolder(tmp_path).rollouts.read()] == [
        *(False, True, True, True)
    ]


@pytest.mark.parametrize("fault", ["hang", "drop", "break"])
def test_an_endpoint_that_never_answers_ends_the_evaluation(fault: str, tmp_path: Path) -> None:
    with (
        serving(Endpoint(forecast, fault=lambda body: fault)) as endpoint,
        pytest.raises(EndpointError, match="Is a server running at http"),
    ):
        run(endpoint, tmp_path, patience=Patience(timeout=0.2, retries=0))
    assert list(EvaluationFolder(tmp_path).rollouts.read()) == []


def test_a_key_that_is_refused_is_named_and_the_mended_command_goes_on(
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
        more: dict[str, Any] = {"tasks": 9, "rollouts": 2, "prices": (1.0, 2.0)}
        assert len(run(endpoint, tmp_path, model="b", **more)) == 18
        assert len(endpoint.asked) == asked + 12
        assert results(tmp_path)["cost"] > 0.0
        for changes in ({"tasks": 4}, {"rollouts": 1}, {"temperature": 0.5}):
            with pytest.raises(OptionError, match="holds rollouts of another evaluation"):
                run(endpoint, tmp_path, model="b", **{**more, **changes})
        with pytest.raises(OptionError, match="holds rollouts of another evaluation"):
            run(endpoint, tmp_path, model="c", **more)


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
        ("openai:m@http://a/v1,http://b/v1", "m", "http://a/v1,http://b/v1"),
    ],
)
def test_an_endpoint_is_named_by_model_and_address(text: str, model: str, url: str) -> None:
    assert parse_endpoint(text) == (model, url)


@pytest.mark.parametrize(
    "text", ["openai:", "openai:@http://x", "openai:http://x", "openai:m@http://a,b"]
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="openai:MODEL@URL"):
        parse_endpoint(text)


def test_without_address_a_key_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    config = EvaluationConfig((WorldLevel.parse("forecast"),), ("openai:gpt",), tasks=2)
    with pytest.raises(OptionError, match="OPENAI_API_KEY"):
        run_evaluation(config, EvaluationFolder(tmp_path), 1, lambda *_: None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "20"}, 0.02),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        *(({"retry-after": text}, 0.0) for text in ("-3", "nan")),
        *(({"retry-after": text}, 120.0) for text in ("1e9", "inf")),
        *(({"retry-after": text}, None) for text in ("", "soon")),
        ({}, None),
    ],
)
def test_a_server_may_ask_to_wait_for_two_minutes_at_most(
    headers: dict[str, str], seconds: float | None
) -> None:
    response: Any = web.Response(headers=headers)
    assert chat_client._delay(response) == seconds
