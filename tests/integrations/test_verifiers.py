"""Worlds in verifiers: a taskset, an environment, and a harness that starts nothing."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verifiers", minversion="0.4", reason="needs the extra `verifiers`")

import verifiers.v1 as vf
from verifiers.v1.utils.loaders import environment_class, load_environment, taskset_config_type

from tests.integrations.commands import (
    MAX_TOKENS,
    OPTIONS,
    PLAYED,
    TASKS,
    Served,
    json_lines,
    run_command,
)
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
from tokengym.agents.certify.source import TaskPlace, play, say
from tokengym.agents.certify.sources import open_source
from tokengym.agents.toy_model import MODEL_DIR

ID = "tokengym-verifiers"


def environment(**settings: Any) -> Any:
    """Make the environment as an entry point of verifiers does: by its id."""
    taskset = taskset_config_type(ID)(id=ID, **settings)
    config_class = environment_class(ID).__orig_bases__[0].__args__[0]
    return load_environment(config_class(taskset=taskset))


def run(
    env: Any, url: str, index: int, count: int = 1, client_type: Any = vf.EvalClientConfig
) -> list[Any]:
    """Run episodes of one task with the model at `url`."""
    client = client_type(base_url=url, api_key_var="UNSET")
    context = vf.ModelContext(model="scripted", client=client)

    async def play() -> list[Any]:
        task = list(env.taskset)[index]
        async with env.serving():
            slots = env.slots(task, count)
            return await asyncio.gather(*(env.run_slot(slot, context) for slot in slots))

    return asyncio.run(play())


@pytest.mark.parametrize("world", WORLDS)
def test_an_episode_of_verifiers_is_the_same_episode(world: str) -> None:
    own = play_own(world, split="test", index=1)
    answers = replies_by_text(own)
    env = environment(world=world, split="test", tasks=2)
    with scripted_model(lambda text: (answers[text], "stop")) as url:
        episodes = run(env, url, 1, count=3)  # a group on one Task
    for episode in episodes:
        assert episode.ok, episode.errors
        assert episode.task.key == own.task_id
        (trace,) = episode.traces
        assert trace.rewards["return"].score == sum(own.rewards)
        assert trace.metrics["well_formed"] == 1.0
        shown = [message.content for message in trace.messages if message.role == "user"]
        assert shown == own.texts[:-1]
        assert [message.content for message in trace.assistant_messages] == own.replies


@pytest.mark.parametrize("level", DESKS)
def test_native_calls_play_the_same_episode(level: str) -> None:
    called = play_called(level, "test", 1)
    requests: list[dict[str, Any]] = []
    env = environment(world=f"forecast:{level}", split="test", tasks=2)
    with scripted_model(called.messages, requests) as url:
        episodes = run(env, url, 1, count=2)
    for episode in episodes:
        assert episode.ok, episode.errors
        assert episode.traces[0].rewards["return"].score == sum(called.played.rewards)
    for request in requests:
        assert request["tools"] == TOOLS[level]
        check_answered(request["messages"])


def test_a_source_of_certificates_plays_the_same_episode() -> None:
    options = {"world": "energy", "split": "test", "tasks": 3}
    source = open_source(f"verifiers:{ID}", options)
    own = open_source("energy", {})
    place, said = TaskPlace("test", 0, 1), own.start(TaskPlace("test", 0, 1)).reference
    trace, expected = play(source, place, say(*said)), play(own, place, say(*said))
    assert source.facts.size == 3
    assert (trace.prompt, trace.replies) == (expected.prompt, expected.replies)
    assert trace.total == pytest.approx(expected.total, abs=1e-9)
    assert trace.texts[:-1] == expected.texts[:-1]


def test_a_reply_that_was_cut_off_is_malformed() -> None:
    env = environment(world="forecast", tasks=1)
    with scripted_model(lambda text: ("Probability: 0.5", "length")) as url:
        (episode,) = run(env, url, 0)
    assert episode.traces[0].metrics["well_formed"] == 0.0


def test_evaluation_plays_no_training_task() -> None:
    def trainer(**settings: Any) -> Any:
        return vf.TrainClientConfig(renderer_model_name=str(MODEL_DIR), **settings)

    nowhere = "http://127.0.0.1:9/v1"
    plain, named = environment(tasks=1), environment(tasks=1, split="train")
    assert [task.data.split for env in (plain, named) for task in env.taskset] == ["test", "train"]
    (refused,) = run(plain, nowhere, 0, client_type=trainer)
    assert "training needs the taskset's split, such as 'train'" in str(refused.errors)
    (begun,) = run(named, nowhere, 0, client_type=trainer)
    assert "split" not in str(begun.errors)
    assert begun.traces


@pytest.mark.parametrize("played", PLAYED)
def test_vf_eval_finds_what_our_evaluation_found(played: str, tmp_path: Path) -> None:
    served = Served()
    options = json.dumps(OPTIONS)
    words = ["--env.taskset.world", played, "--env.taskset.options", options, "-n", str(TASKS)]
    model = ["-m", served.model, "--client.base-url", served.url]
    key = ["--client.api-key-var", "SERVICE_KEY", "-r", "1", "--no-rich", "--no-push"]
    greedy = ["--sampling.temperature", "0", "--sampling.max-tokens", str(MAX_TOKENS)]
    out = ["--output-dir", str(tmp_path)]
    run_command(
        "vf-eval", ID, *words, *model, *key, *greedy, *out, folder=tmp_path, SERVICE_KEY=served.key
    )
    episodes = json_lines(tmp_path, "traces.jsonl")
    episodes.sort(key=lambda episode: episode["task"]["data"]["index"])
    traces = [trace for episode in episodes for trace in episode["traces"]]
    assert [trace["rewards"]["return"]["score"] for trace in traces] == served.returns(played)
