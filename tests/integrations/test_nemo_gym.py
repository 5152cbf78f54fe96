"""Worlds in NeMo Gym: a resources server, which its `gymnasium_agent` plays row by row."""

import asyncio
import json
import runpy
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nemo_gym", reason="needs nemo-gym, and Python 3.12")

import nemo_gym.global_config
import uvicorn
from nemo_gym.config_types import BaseServerConfig
from nemo_gym.server_utils import (
    GlobalAIOHTTPAsyncClientConfig,
    HeadServer,
    ServerClient,
    get_response_json,
    set_global_aiohttp_client,
)
from nemo_gym.train_data_utils import compute_sample_metrics
from omegaconf import DictConfig, OmegaConf
from responses_api_agents.gymnasium_agent.app import GymnasiumAgent, GymnasiumAgentConfig
from responses_api_models.vllm_model.app import VLLMModel, VLLMModelConfig

from tests.docs.pages import ROOT
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
from tokengym.agents.adapters.rows import task_rows
from tokengym.agents.certify.source import TaskPlace
from tokengym.agents.certify.sources import open_source
from tokengym.agents.rollouts.json_lines import write_rows
from tokengym.envs.core.tools import NOT_PLAYED

EXAMPLE = ROOT / "examples/nemo_gym/resources_servers/tokengym"
APP = runpy.run_path(str(EXAMPLE / "app.py"))
WorldServer, WorldServerConfig = APP["WorldServer"], APP["WorldServerConfig"]
PARTS: dict[str, tuple[Any, Any]] = {
    "tokengym": (WorldServer, WorldServerConfig),
    "tokengym_agent": (GymnasiumAgent, GymnasiumAgentConfig),
    "policy_model": (VLLMModel, VLLMModelConfig),
}
Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Run coroutines in one event loop: NeMo Gym's HTTP client belongs to the first it sees."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()

    def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(600)

    async def connect() -> Any:
        return set_global_aiohttp_client(GlobalAIOHTTPAsyncClientConfig())

    client = run(connect())
    yield run
    run(client.close())
    nemo_gym.server_utils._GLOBAL_AIOHTTP_CLIENT = None
    loop.call_soon_threadsafe(loop.stop)


@contextmanager
def served(run: Run, world: Any, base_url: str, **model: str) -> Iterator[ServerClient]:
    """Run the example's servers, a model's server and the head server as NeMo Gym does."""
    asked: dict[str, Any] = {"base_url": base_url, "api_key": "none", "model": "scripted"}
    asked |= model
    asked |= {"return_token_id_information": False, "uses_reasoning_parser": False}
    block = {"responses_api_models": {"vllm_model": {"entrypoint": "app.py", **asked}}}
    settings = OmegaConf.merge(
        OmegaConf.load(EXAMPLE / "configs" / "tokengym.yaml"), {"policy_model": block}
    )
    assert isinstance(settings, DictConfig)
    settings.tokengym.resources_servers.tokengym.rollouts = world
    head = BaseServerConfig(host="127.0.0.1", port=0)
    client = ServerClient(head_server_config=head, global_config_dict=settings)
    running: list[tuple[uvicorn.Server, asyncio.Task[None]]] = []

    async def serve(app: Any) -> int:
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
        running.append((server, asyncio.create_task(server.serve())))
        while not server.started:
            await asyncio.sleep(0.01)
        return int(server.servers[0].sockets[0].getsockname()[1])

    async def stop() -> None:
        for server, task in running:
            server.should_exit = True
            await task

    for name, (server, config) in PARTS.items():
        ((_, kind),) = settings[name].items()
        ((_, values),) = kind.items()
        values.host, values.port = "127.0.0.1", 0
        made = server(config=config(name=name, **values), server_client=client)
        values.port = run(serve(made.setup_webserver()))
    head.port = run(serve(HeadServer(config=head).setup_webserver()))
    settings.head_server = {"host": head.host, "port": head.port}
    try:
        yield client
    finally:
        run(stop())


async def played(client: ServerClient, rows: list[dict[str, Any]]) -> list[Any]:
    """Let the agent that each row names play it."""
    answers = [await client.post(row["agent_ref"]["name"], "/run", json=row) for row in rows]
    return [await get_response_json(answer) for answer in answers]


@pytest.mark.parametrize("world", WORLDS)
def test_a_rollout_of_nemo_gym_is_the_same_episode(world: str, run: Run) -> None:
    own = play_own(world, index=2)
    answers = replies_by_text(own)
    (*_, row) = task_rows(world, "test", 3)
    with scripted_model(lambda text: (answers[text], "stop")) as url, served(run, world, url) as at:
        group = run(played(at, [row] * 3))
    for one in group:
        texts = [said["content"] for said in one["responses_create_params"]["input"]]
        texts += [said["content"] for said in one["response"]["output"] if said["role"] == "user"]
        assert texts == own.texts[:-1]
        assert one["reward"] == sum(own.rewards)
        assert one["info"] == {"return": sum(own.rewards), "well_formed": 1.0}
        assert one["terminated"]


@pytest.mark.parametrize("level", DESKS)
def test_native_calls_play_the_same_episode(level: str, run: Run) -> None:
    called = play_called(level)
    asked: list[dict[str, Any]] = []
    (row,) = task_rows(f"forecast:{level}", "test", 1)
    _, broken = compute_sample_metrics(json.dumps(row))  # what it checks data sets with
    assert not broken
    model = scripted_model(called.messages, asked)
    with model as url, served(run, f"forecast:{level}", url) as at:
        (one,) = run(played(at, [row]))
    assert one["reward"] == sum(called.played.rewards)
    assert one["info"]["return"] == sum(called.played.rewards)
    for body in asked:
        functions = [tool["function"] for tool in body["tools"]]
        assert functions == [tool["function"] for tool in TOOLS[level]]
    messages = asked[-1]["messages"]
    check_answered(messages)
    read = [said["content"] for said in messages if said["role"] in ("user", "tool")]
    assert [text for text in read if text != NOT_PLAYED] == called.played.texts[:-1]


def test_certify_grades_by_a_resources_server(tmp_path: Path) -> None:
    asked = {"input": [{"role": "user", "content": "A: 3 or B: 4?"}]}
    row = {"responses_create_params": asked, "options": [{"A": "3"}, {"B": "4"}]}
    row |= {"expected_answer": "B", "grading_mode": "strict_single_letter_boxed", "metadata": {}}
    (tmp_path / "rows.jsonl").write_text(f"{json.dumps(row)}\n" * 4)
    said = {"prompts": str(tmp_path / "rows.jsonl"), "reply_template": r"\boxed{{{}}}"}
    source = open_source("resources_servers.mcqa.app:MCQAResourcesServer", said)
    assert source.facts.package.startswith("nemo-gym 0.")
    episode = source.start(TaskPlace("", 0, 0))
    assert (episode.prompt, episode.reference) == ("A: 3 or B: 4?", ("B",))
    earned = [episode.reply(reply).reward for reply in (r"\boxed{B}", r"\boxed{A}", "\ud800")]
    assert earned == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("name", PLAYED)
def test_gym_eval_finds_what_our_evaluation_found(
    name: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Served()
    rows = list(task_rows(name, "test", TASKS))
    write_rows(rows, tmp_path / "test.jsonl")
    for row in rows:
        _, broken = compute_sample_metrics(json.dumps(row))  # what it checks data sets with
        assert not broken
    world = {"world": name, **OPTIONS}
    with served(run, world, model.url, api_key=model.key, model=model.model) as at:
        monkeypatch.setattr(nemo_gym.global_config, "_GLOBAL_CONFIG_DICT", at.global_config_dict)
        files = ["--input", "test.jsonl", "--output", "rollouts.jsonl", "--num-repeats", "1"]
        greedy = ["--temperature", "0", "--max-output-tokens", str(MAX_TOKENS)]
        where = {"host": at.head_server_config.host, "port": at.head_server_config.port}
        head = [f"+head_server.{key}={value}" for key, value in where.items()]
        run_command("gym", "eval", "run", "--no-serve", *files, *greedy, *head, folder=tmp_path)
    found = sorted(json_lines(tmp_path, "rollouts.jsonl"), key=lambda one: one["_ng_task_index"])
    assert [one["reward"] for one in found] == model.returns(name)
