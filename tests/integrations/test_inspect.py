"""Worlds as Inspect tasks: the same episodes, the scores, a log, and the cookbook's evaluator."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra `inspect`")

from inspect_ai import eval as inspect_eval
from inspect_ai import score as score_again
from inspect_ai.log import read_eval_log
from inspect_ai.model import Model, ModelAPI, ModelOutput, StopReason, get_model, modelapi

from tests.integrations.commands import MAX_TOKENS, OPTIONS, PLAYED, TASKS, Served, run_command
from tests.integrations.reference import (
    DESKS,
    TOOLS,
    WORLDS,
    check_answered,
    play_called,
    play_own,
    replies_by_text,
)
from tests.integrations.scripted_model import scripted_model
from tokengym.agents.adapters import inspect as adapter
from tokengym.envs import make_world
from tokengym.envs.core.tools import NOT_PLAYED


@modelapi("scripted")
class Scripted(ModelAPI):
    """Answers the last text. Inspect's own mock counts tokens with a file from the network."""

    def __init__(
        self, model_name: str, answer: Callable[[str], str], reason: StopReason, **_: Any
    ) -> None:
        super().__init__(model_name)
        self._answer, self._reason = answer, reason

    async def generate(self, input: Any, *_: Any, **__: Any) -> ModelOutput:
        return ModelOutput.from_content(
            "scripted", self._answer(input[-1].text), stop_reason=self._reason
        )


def model_that(answer: Callable[[str], str], reason: StopReason = "stop") -> Model:
    """Return a model that answers the last text."""
    return get_model("scripted/model", answer=answer, reason=reason, memoize=False)


def model_at(url: str) -> Model:
    """Return the model of an endpoint, with a client of its own: Inspect retries for ever."""
    name = "openai-api/tokengym/scripted"
    return get_model(name, base_url=url, api_key="none", memoize=False)


def evaluate(task: Any, model: Any, folder: Path, **settings: Any) -> Any:
    """Run a task; returns its log."""
    (log,) = inspect_eval(task, model=model, log_dir=str(folder), display="none", **settings)
    assert log.status == "success", log.error
    return log


def metrics(log: Any) -> dict[str, float]:
    """Return the metrics of a log's one scorer."""
    (score,) = log.results.scores
    return {name: metric.value for name, metric in score.metrics.items()}


@pytest.mark.parametrize("world", WORLDS)
def test_an_evaluation_plays_the_same_episodes(world: str, tmp_path: Path) -> None:
    owns = [play_own(world, split="test", index=index) for index in range(2)]
    answers: dict[str, str] = {}
    for own in owns:
        answers |= replies_by_text(own)
    log = evaluate(
        adapter.world_task(world, samples=2), model_that(answers.__getitem__), tmp_path, epochs=2
    )
    by_id = {own.task_id: own for own in owns}
    assert len(log.samples) == 4
    for sample in log.samples:
        own = by_id[sample.id]
        (score,) = sample.scores.values()
        assert score.value["return"] == sum(own.rewards)
        assert score.metadata["rewards"] == own.rewards
        shown = [message.text for message in sample.messages if message.role == "user"]
        assert shown == own.texts
    found = metrics(log)
    assert found["return"] == pytest.approx(sum(sum(own.rewards) for own in owns) / 2)
    assert found["well_formed"] == 1.0


@pytest.mark.parametrize("level", DESKS)
def test_native_calls_play_the_same_episode(
    level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = play_called(level)
    asked: list[dict[str, Any]] = []
    task = adapter.world_task("forecast", level, samples=1)
    with scripted_model(called.messages, asked) as url:
        log = evaluate(task, model_at(url), tmp_path)
    (sample,) = log.samples
    (score,) = sample.scores.values()
    assert score.metadata["rewards"] == called.played.rewards
    for declared in (
        tool for body in asked for tool in zip(body["tools"], TOOLS[level], strict=True)
    ):
        got, own = (tool["function"] for tool in declared)  # bounds are left out by the provider
        assert {**got, "parameters": None} == {**own, "parameters": None, "strict": True}
        assert got["parameters"]["required"] == own["parameters"]["required"]
    messages = asked[-1]["messages"]
    check_answered(messages)
    own = [one["content"] for one in messages if one["role"] in ("user", "tool")]
    assert [text for text in own if text != NOT_PLAYED] == called.played.texts[:-1]
    assert own.count(NOT_PLAYED) == sum(
        len(message.get("tool_calls", "1")) - 1 for message in called.messages[:-1]
    )
    monkeypatch.setenv("TOKENGYM_BASE_URL", url)
    monkeypatch.setenv("TOKENGYM_API_KEY", "none")
    read = read_eval_log(log.location)
    again = score_again(read, scorers=task.scorer, action="overwrite", display="none")
    assert metrics(again) == metrics(log)


def test_a_reply_that_was_cut_off_is_malformed(tmp_path: Path) -> None:
    model = model_that(lambda text: "Probability: 0.5", "max_tokens")
    log = evaluate(adapter.world_task("forecast", samples=2), model, tmp_path)
    assert metrics(log)["well_formed"] == 0.0


def test_episodes_ended_by_inspect_count_empty_replies(tmp_path: Path) -> None:
    task = adapter.world_task("energy", samples=1)
    log = evaluate(task, model_that(lambda text: "BATTERY 0"), tmp_path, message_limit=4)
    world = make_world("energy")
    world.start(world.task("test", 0))
    world.reply("BATTERY 0")
    world.reply("BATTERY 0")
    world.stop()
    (score,) = log.samples[0].scores.values()
    assert score.value["return"] == world.returns["operator"]


@pytest.mark.parametrize("played", PLAYED)
def test_inspect_eval_finds_what_our_evaluation_found(played: str, tmp_path: Path) -> None:
    served = Served()
    world, _, level = played.partition(":")
    words = ["-T", f"level={level}"] if level else []
    words += [word for one in OPTIONS.items() for word in ("-T", "=".join(one))]
    model = ["--model", f"openai-api/tokengym/{served.model}"]
    greedy = ["--temperature", "0", "--max-tokens", str(MAX_TOKENS), "-T", f"samples={TASKS}"]
    out = ["--log-dir", str(tmp_path), "--display", "plain", "--log-format", "json"]
    run_command(
        *("inspect", "eval", f"tokengym/{world}", *words, *model, *greedy, *out),
        folder=tmp_path,
        TOKENGYM_BASE_URL=served.url,
        TOKENGYM_API_KEY=served.key,
    )
    (file,) = tmp_path.glob("*.json")
    samples = sorted(read_eval_log(file).samples, key=lambda sample: sample.metadata["index"])
    scores = [score.value["return"] for sample in samples for score in sample.scores.values()]
    assert scores == served.returns(played)
