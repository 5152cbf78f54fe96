"""Worlds in verifiers before 0.4, and in retrain as far as it goes without its trainer."""

import json
import tomllib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# Collecting imports the package alone: its parts take seconds, and every worker collects.
pytest.importorskip("verifiers", reason="needs the extra `verifiers` (verifiers<0.4)")
if find_spec("verifiers.legacy") is None:
    pytest.skip("needs the extra `verifiers` (verifiers<0.4)", allow_module_level=True)

import verifiers as vf

from tests.docs.pages import ROOT
from tests.forecasting.questions_file import plain, write_lines
from tests.neighbours.commands import (
    MAX_TOKENS,
    OPTIONS,
    PLAYED,
    TASKS,
    Served,
    json_lines,
    run_command,
)
from tests.neighbours.reference import (
    DESKS,
    LEVELS,
    SPLITS,
    TOOLS,
    WORLDS,
    check_answered,
    paid_by,
    play_called,
    play_own,
    replies_by_text,
)
from tests.neighbours.scripted_model import scripted_model
from tokengym.envs import baselines, make_world

ID = "tokengym-verifiers"


def roll_out(env: Any, row: Any, url: str, count: int = 1, **sampling: Any) -> list[Any]:
    """Play a row of the environment's data with the model at `url`."""
    client = vf.ClientConfig(
        client_type="openai_chat_completions", api_base_url=url, api_key_var="UNSET"
    )
    inputs = [{**row, "example_id": 0} for _ in range(count)]
    played = env.generate_sync(
        inputs, client, model="scripted", sampling_args=sampling, state_columns=["turn_rewards"]
    )
    return list(played["outputs"])


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("world", WORLDS)
def test_a_rollout_of_verifiers_is_the_same_episode(
    world: str, split: str, shows: Callable[[str, str], None]
) -> None:
    own = play_own(world, split=split, index=1, **paid_by(world, split))
    env = vf.load_environment(ID, world=world, tasks=2, evaluation_tasks=2)
    row = (env.get_eval_dataset() if split == "test" else env.get_dataset())[1]
    assert row["info"]["task_id"] == own.task_id
    assert [message["content"] for message in row["prompt"]] == own.texts[:1]
    answers = replies_by_text(own)
    with scripted_model(lambda text: (answers[text], "stop")) as url:
        outputs = roll_out(env, row, url, count=3)  # a group on one Task
    for output in outputs:
        assert output["reward"] == sum(own.rewards)
        assert output["turn_rewards"] == own.rewards
        shown = [m["content"] for m in output["completion"] if m["role"] == "user"]
        assert shown == own.texts[1:]
        assert output["metrics"]["_well_formed"] == 1.0
    shows("plays", world)
    shows("group", world)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("level", DESKS)
def test_native_calls_play_the_same_episode(
    level: str, split: str, shows: Callable[[str, str], None]
) -> None:
    called = play_called(level, split, 1)
    requests: list[dict[str, Any]] = []
    env = vf.load_environment(ID, world="forecast", level=level, tasks=2, evaluation_tasks=2)
    row = (env.get_eval_dataset() if split == "test" else env.get_dataset())[1]
    with scripted_model(called.messages, requests) as url:
        outputs = roll_out(env, row, url, count=2)
    for output in outputs:
        assert output["reward"] == sum(called.played.rewards)
        assert output["turn_rewards"] == called.played.rewards
    for request in requests:
        functions = [tool["function"] for tool in request["tools"]]
        assert functions == [tool["function"] for tool in TOOLS[level]]
        check_answered(request["messages"])
    shows("tools", level)


def test_a_reply_that_was_cut_off_is_malformed() -> None:
    env = vf.load_environment(ID, world="forecast", tasks=1)
    with scripted_model(lambda text: ("Probability: 0.5", "length")) as url:
        (output,) = roll_out(env, env.get_dataset()[0], url)
    assert output["metrics"]["_well_formed"] == 0.0


@pytest.mark.parametrize(("world", "level"), LEVELS)
def test_every_level_has_rows(world: str, level: str) -> None:
    env = vf.load_environment(ID, world=world, level=level, tasks=1, evaluation_tasks=1)
    task = make_world(world, level).task("train", 0)
    (row,) = env.get_dataset()
    assert row["info"] == {"split": "train", "index": 0, "task_id": task.fingerprint}


def test_an_evaluation_plays_no_training_task_whatever_the_training_split() -> None:
    for split in ("train", "validation"):
        env = vf.load_environment(ID, world="forecast", split=split, tasks=3, evaluation_tasks=3)
        assert [row["info"]["split"] for row in env.get_dataset()] == [split] * 3
        assert [row["info"]["split"] for row in env.get_eval_dataset()] == ["test"] * 3


@pytest.mark.parametrize("world", WORLDS)
def test_retrain_loads_a_world_by_its_id_and_plays_a_group(
    world: str, shows: Callable[[str, str], None]
) -> None:
    bridge = pytest.importorskip("retrain.verifiers_bridge", reason="retrain is not installed")
    from retrain.config import TrainConfig

    own = play_own(world, split="train", index=0, **paid_by(world, "train"))
    config = TrainConfig()
    config.environment_provider = "verifiers"
    config.environment_id = ID
    config.environment_args = f'{{"world": "{world}", "tasks": 2}}'
    config.seed = -1
    env = bridge.load_verifiers_environment(config)
    assert bridge.is_multiturn_environment(env)
    example = bridge.load_examples_from_environment(env, config)[0]
    answers = replies_by_text(own)

    class Characters:
        """A tokenizer of one token a character."""

        def encode(self, text: str) -> list[int]:
            return list(map(ord, text))

        def batch_decode(self, ids: list[list[int]], **_: Any) -> list[str]:
            return ["".join(map(chr, row)) for row in ids]

    class Helper:
        """A sampler that plays the scripted episode."""

        def sample(self, prompts: list[list[int]], *_: Any) -> list[Any]:
            texts = Characters().batch_decode(prompts)
            found = [
                next(answers[text] for text in reversed(answers) if shown.endswith(text))
                for shown in texts
            ]
            return [[(list(map(ord, reply)), [0.0] * len(reply))] for reply in found]

    rewards, turns, _, turn_rewards, *_ = bridge.run_multiturn_group(
        env,
        helper=Helper(),
        tokenizer=Characters(),
        model_name="scripted",
        prompt=example.prompt,
        answer=example.reference,
        task=example.task,
        info=example.info,
        num_rollouts=2,
        max_tokens=512,
        temperature=1.0,
        top_p=1.0,
    )
    assert rewards == [sum(own.rewards)] * 2
    assert turn_rewards == [own.rewards] * 2
    for rollout in turns:
        assert [turn.completion_text for turn in rollout] == own.replies
    shows("retrain plays", world)
    shows("retrain group", world)


def test_a_rollout_that_verifiers_ends_is_paid_as_if_the_rest_were_empty() -> None:
    env = vf.load_environment(ID, world="energy", tasks=1)
    env.max_turns = 2
    with scripted_model(lambda text: ("BATTERY 0", "stop")) as url:
        (output,) = roll_out(env, env.get_dataset()[0], url)
    world = make_world("energy")
    world.start(world.task("train", 0))
    world.reply("BATTERY 0")
    world.reply("BATTERY 0")
    world.stop()
    assert output["reward"] == world.returns["operator"]


@pytest.mark.parametrize("played", PLAYED)
def test_vf_eval_finds_what_our_evaluation_found(
    played: str, tmp_path: Path, shows: Callable[[str, str], None]
) -> None:
    served = Served()
    words = ["-a", json.dumps({"world": played, **OPTIONS}), "-n", str(TASKS), "-r", "1"]
    model = ["-m", served.model, "-b", served.url, "-k", "SERVICE_KEY"]
    greedy = ["-T", "0", "-t", str(MAX_TOKENS), "-s", "-d", "-o", str(tmp_path)]
    run_command("vf-eval", ID, *words, *model, *greedy, folder=tmp_path, SERVICE_KEY=served.key)
    rows = json_lines(tmp_path, "results.jsonl")
    rows.sort(key=lambda row: row["info"]["index"])
    assert [row["info"]["split"] for row in rows] == ["test"] * TASKS
    assert [row["reward"] for row in rows] == served.returns(played)
    assert all({"skill", "reachable"} <= set(row) for row in rows)
    shows("own command", f"vf-eval: {played}")


def test_an_evaluation_has_as_many_tasks_as_were_asked_for_and_their_skill() -> None:
    env: Any = vf.load_environment(ID, world="forecast:easy", evaluation_tasks=3)
    rows = env._get_eval_inputs(8, rollouts_per_example=2)
    assert sorted({row["info"]["index"] for row in rows}) == list(range(8))
    world, oracle = make_world("forecast", "easy"), baselines("forecast")["oracle"]
    replies = {}
    for row in rows:
        turn = world.start(world.task("test", row["info"]["index"]))
        replies[turn.text] = oracle(world, turn, np.random.default_rng(0))
    with scripted_model(lambda text: (replies[text], "stop")) as url:
        client = vf.ClientConfig(
            client_type="openai_chat_completions", api_base_url=url, api_key_var="UNSET"
        )
        made = env.evaluate_sync(client, "scripted", num_examples=8)
    skills = [output["metrics"]["skill"] for output in made["outputs"]]
    assert sum(skills) / len(skills) == pytest.approx(1.0)
    reachable = [output["metrics"]["reachable"] for output in made["outputs"]]
    assert reachable == pytest.approx(skills)  # here the oracle reads nothing but the text


def test_a_split_with_fewer_tasks_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = str(write_lines(tmp_path / "questions.jsonl", (plain(day) for day in range(120))))
    has = make_world("forecast", data=data).size("test")
    assert has
    env: Any = vf.load_environment(ID, world="forecast", data=data, skill=False)
    env.logger.addHandler(caplog.handler)
    assert len(env._get_eval_inputs(1000)) == has
    assert f"the test split has {has} Tasks, not 1000" in caplog.text


def test_the_package_for_the_environments_hub_loads_with_its_defaults(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from verifiers.legacy.scripts.eval import get_env_eval_defaults

    folder = ROOT / "examples" / "tokengym_worlds"
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    assert project["project"]["name"] == folder.name.replace("_", "-")
    assert project["project"]["tags"]
    files = project["tool"]["hatch"]["build"]["include"]
    assert all((folder / name).is_file() for name in (*files, "README.md"))
    monkeypatch.syspath_prepend(folder)
    assert get_env_eval_defaults("tokengym-worlds") == {
        "num_examples": 100,
        "rollouts_per_example": 1,
    }
    env: Any = vf.load_environment("tokengym-worlds", world="energy:small", tasks=1)
    assert env.get_dataset()[0]["info"]["index"] == 0
