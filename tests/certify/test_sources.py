"""Each source against its package, used directly."""

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from tests.certify.synthetic import QUICK
from tests.testing.broken import DrawsAnew
from tests.testing.thermometer import POLICIES, SPEC, Thermometer
from tokengym.agents.certify.certificate import certify
from tokengym.agents.certify.finding import Status
from tokengym.agents.certify.source import TaskPlace, play, say
from tokengym.agents.certify.sources import is_recorded, open_source
from tokengym.agents.certify.sources.worlds import TokengymWorld
from tokengym.agents.rollouts import RolloutLog, RolloutOrigin, record_play
from tokengym.envs import make_world
from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.core.play import play as play_world
from tokengym.envs.core.task import Task
from tokengym.envs.registry import baselines


@pytest.mark.parametrize("target", ["forecast", "energy:day", "disruption"])
def test_a_world_pays_the_reference_what_it_pays_the_oracle(target: str) -> None:
    source = open_source(target, {})
    world = make_world(*target.split(":"))
    role = world.spec.roles[0]
    for index in range(2):
        place = TaskPlace("test", 0, index)
        episode = source.start(place)
        task = world.task("test", index)
        assert episode.prompt == world.start(task).text
        oracle = {**baselines(world.spec.id)}["oracle"]
        scripted = {**dict.fromkeys(world.spec.roles, oracle)}
        if len(world.spec.roles) == 1:
            played = play_world(world, task, scripted)
            trace = play(source, place, say(*episode.reference))
            assert trace.total == played.returns[role]
        assert episode.claim is None or episode.claim == world.optimum(task)[role].value


def test_a_task_played_often_is_drawn_only_twice() -> None:
    drawn: list[int] = []

    class Counts(Thermometer):
        def task(self, split: str = "train", index: int = 0) -> Task:
            drawn.append(index)
            return super().task(split, index)

    source = TokengymWorld(Counts(SPEC), POLICIES["oracle"])
    for _ in range(4):
        play(source, TaskPlace("train", 0, 7), say("20"))
    assert drawn == [7, 7]


def test_redrawing_a_task_escapes_the_seed() -> None:
    for world, status in ((Thermometer, Status.PASSED), (DrawsAnew, Status.FAILED)):
        source = TokengymWorld(world(SPEC), POLICIES["oracle"])
        (found,) = certify(source, "own", QUICK, only=["runtime.seed_control"]).findings
        assert found.status is status, found


def test_a_choice_of_gymnasium_is_named_by_the_last_integer() -> None:
    source = open_source("gymnasium:FrozenLake-v1", {"is_slippery": False})
    trace = play(source, TaskPlace("", 0, 0), say("I go 1", "1", "2", "2", "not 0 but 1", "2"))
    env: Any = gymnasium.make("FrozenLake-v1", is_slippery=False)
    env.reset(seed=0)
    expected = [env.step(action) for action in (1, 1, 2, 2, 1, 2)]
    assert trace.rewards == tuple(reward for _, reward, *_ in expected)
    assert trace.total == 1.0
    assert trace.done
    first = play(source, TaskPlace("", 0, 0), say("north", "7"))
    env.reset(seed=0)
    left = [env.step(0) for _ in first.replies]
    assert (first.rewards, first.done) == (tuple(reward for _, reward, *_ in left), False)
    with pytest.raises(OptionError, match="not text or a choice"):
        open_source("gymnasium:Pendulum-v1", {})


def test_data_sets_of_reasoning_gym_pay_their_answers() -> None:
    pytest.importorskip("reasoning_gym", reason="needs the extra `reasoning-gym`")
    import reasoning_gym

    source = open_source("reasoning-gym:chain_sum", {"min_terms": 2})
    items = reasoning_gym.create_dataset("chain_sum", seed=3, size=500, min_terms=2)
    for index in range(3):
        place = TaskPlace("", 3, index)
        episode = source.start(place)
        assert episode.prompt == items[index]["question"]
        assert episode.reference == (items[index]["answer"],)
        for reply in (episode.reference[0], "1", ""):
            assert play(source, place, say(reply)).total == items.score_answer(reply, items[index])
        tagged = f"<think>\n7\n</think>\n<answer> {episode.reference[0]} </answer>"
        assert play(source, place, say(tagged)).total == 1.0


def test_a_level_of_reasoning_gym_is_that_of_its_curriculum() -> None:
    pytest.importorskip("reasoning_gym", reason="needs the extra `reasoning-gym`")
    easy, hard = (
        open_source("reasoning-gym:chain_sum", {"level": level}).start(TaskPlace("", 0, 0)).prompt
        for level in (0, 4)
    )
    assert len(easy) < len(hard)


def test_games_of_textarena_pay_when_they_end() -> None:
    textarena = pytest.importorskip("textarena", reason="needs the extra `textarena`")
    source = open_source("textarena:Bandit-v0", {})
    trace = play(source, TaskPlace("", 0, 5), say("[red]"))
    game = textarena.make("Bandit-v0")
    game.reset(num_players=1, seed=5)
    _, prompt = game.get_observation()
    steps = 0
    done = False
    while not done:
        done, _ = game.step("[red]")
        steps += 1
    assert (trace.prompt, len(trace.replies), trace.done) == (prompt, steps, True)
    assert trace.rewards == (*(0.0,) * (steps - 1), game.close()[0][0])


SOLVERS = """
def press_the_best(game):
    means = game.state.game_state["ground_truth"]
    return [f"[{max(means, key=means.get)}]"]

def walk(env):
    return ["1", "1", "2", "2", "1", "2"] if env.desc.shape == (4, 4) else []
"""


def test_a_solver_of_the_users_gives_the_references(tmp_path: Path) -> None:
    (tmp_path / "solvers.py").write_text(SOLVERS)
    options = {"is_slippery": False, "reference": f"{tmp_path}/solvers.py:walk", "best": 1.0}
    lake = open_source("gymnasium:FrozenLake-v1", options)
    episode = lake.start(TaskPlace("", 0, 0))
    assert episode.claim == play(lake, TaskPlace("", 0, 0), say(*episode.reference)).total == 1.0
    pytest.importorskip("textarena", reason="needs the extra `textarena`")
    options = {"reference": f"{tmp_path}/solvers.py:press_the_best", "best": 1.0}
    bandit = certify(
        open_source("textarena:Bandit-v0", options), "bandit", QUICK, only=["semantic.oracle_max"]
    )
    # Of version 0.7.4: who chooses the best button earns its regret, which is 0.
    assert bandit.findings[0].status is Status.FAILED


ROWS = [
    {"prompt": "1 + 1?", "reply": "2", "reward": 1.0, "group": 0, "split": "train"},
    {"prompt": "1 + 1?", "reply": "3", "reward": 0, "group": 0, "split": "train"},
]


def test_rows_of_json_parquet_and_verifiers_are_read_alike(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    lists = [
        {
            "prompt": [{"role": "user", "content": row["prompt"]}],
            "completion": [{"role": "assistant", "content": row["reply"]}],
            "reward": row["reward"],
            "example_id": 0,
            "split": "train",
        }
        for row in ROWS
    ]
    (tmp_path / "results.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in lists))
    read = open_source(f"{tmp_path}/rows.jsonl", {}).rollouts
    assert [tuple(row.values()) for row in ROWS] == [
        (r.prompt, r.reply, r.reward, int(r.group), r.split) for r in read
    ]
    assert open_source(f"{tmp_path}/results.jsonl", {}).rollouts == read
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "rows.parquet")
    assert open_source(f"{tmp_path}/rows.parquet", {}).rollouts == read


def test_traces_of_verifiers_since_0_4_are_read(tmp_path: Path) -> None:
    def trace(name: str, said: list[str], *rewards: Any) -> dict[str, Any]:
        told = [{"message": {"role": "user", "content": text}} for text in ("1 + 1?", "Sure?")]
        own = [{"message": {"role": "assistant", "content": t}, "sampled": True} for t in said]
        paid = {str(number): reward for number, reward in enumerate(rewards)}
        nodes = [told[0], own[0], told[1], *own[1:]]
        return {"nodes": nodes, "rewards": paid, "agent": {"name": name}}

    rewards = {"score": 0.5, "weight": 2.0}, {"score": 0.25}, None
    episode = {"task": {"key": "k"}, "traces": [trace("solver", ["2", "3"], *rewards)]}
    (tmp_path / "traces.jsonl").write_text(json.dumps(episode))
    (read,) = open_source(str(tmp_path), {}).rollouts
    assert (read.prompt, read.reply, read.reward, read.group) == (
        "1 + 1?",
        "2\n3",
        1.25,
        "k solver",
    )


def test_logs_of_the_cookbook_tell_rewards_and_lengths(tmp_path: Path) -> None:
    pytest.importorskip("tinker_cookbook", reason="needs the extra `tinker`")
    import tinker
    from tinker_cookbook.completers import TokensWithLogprobs
    from tinker_cookbook.rl.rollout_logging import serialize_rollout_summaries
    from tinker_cookbook.rl.types import Trajectory, TrajectoryGroup, Transition

    def rollout(reward: float, length: int) -> Trajectory:
        seen = tinker.ModelInput.from_ints([1, 2])
        said = TokensWithLogprobs(tokens=[3] * length, maybe_logprobs=None)
        return Trajectory(transitions=[Transition(seen, said, reward, True)], final_ob=seen)

    groups = [
        TrajectoryGroup(
            [rollout(member / 4, 1 + member) for member in range(4)], [0.5] * 4, [{}] * 4
        )
        for _ in range(3)
    ]
    rows = serialize_rollout_summaries(
        split="train", iteration=7, trajectory_groups_P=groups, taglist_P=[["a"]] * 3
    )
    folder = tmp_path / "iteration_000007"
    folder.mkdir()
    (folder / "train_rollout_summaries.jsonl").write_text(
        "".join(f"{json.dumps(r)}\n" for r in rows)
    )
    source = open_source(str(tmp_path), {})
    assert [r.reward for r in source.rollouts] == 3 * [0.5, 0.75, 1.0, 1.25]
    assert {r.group for r in source.rollouts} == {f"train 7 {group}" for group in range(3)}
    found = {f.check: f for f in certify(source, "logs", QUICK).findings}
    assert found["leaked.repeated_prompts"].status is Status.UNTOLD
    assert found["fair.length"].status is Status.FAILED  # the longer, the more they earned
    assert found["statistical.training_signal"].status is Status.PASSED


def test_rollouts_of_ours_are_read(tmp_path: Path) -> None:
    world = make_world("forecast")
    null = baselines("tokengym/Forecast-v1")["null"]
    played = [play_world(world, world.task("test", index), null) for index in range(2)]
    records = [
        record_play(RolloutOrigin("check", group=group), one, "forecaster")
        for group, one in enumerate(played)
    ]
    RolloutLog(tmp_path).append("check", records)
    for target in (tmp_path, tmp_path / "check.jsonl"):
        read = open_source(str(target), {}).rollouts
        assert [r.prompt for r in read] == [one.turns[0].text for one in played]
        assert [r.reward for r in read] == [one.returns["forecaster"] for one in played]
        assert len({r.group for r in read}) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no rollouts"),
        ('{"prompt": "a", "reward": 1}\n', "line 1: there is no 'reply'"),
        ('{"reply": "a", "prompt": "b"}\n', "line 1: there is no 'reward'"),
        ("[]\n", "has no rollouts"),
        ("7\n", "line 1: a row must be an object, got 7"),
        ("{\n", "line 1: "),
    ],
)
def test_damaged_records_are_refused_by_row(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "rows.jsonl").write_text(text)
    with pytest.raises(DataError, match=words):
        open_source(f"{tmp_path}/rows.jsonl", {})


def test_files_are_read_as_tools_write_them(tmp_path: Path) -> None:
    rows = [{**row, "prompt": "1\u2028+ 1?", "data": [1]} for row in ROWS]
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    (tmp_path / "rows.jsonl").write_text(text, encoding="utf-8-sig")
    (read, _) = open_source(f"{tmp_path}/rows.jsonl", {}).rollouts
    assert (read.prompt, read.reply) == ("1\u2028+ 1?", "2")
    (tmp_path / "grader.py").write_text("def reward(prompt, reply):\n    return len(prompt)\n")
    options = {"prompts": f"{tmp_path}/rows.jsonl"}
    assert open_source(f"{tmp_path}/grader.py:reward", options).start(TaskPlace("", 0, 0)).prompt
    with pytest.raises(OptionError, match=r"take no options, got \['prompts'\]"):
        open_source(f"{tmp_path}/rows.jsonl", options)
    (tmp_path / "rows.jsonl").write_bytes('{"prompt": "\u00e9"}\n'.encode("latin-1"))
    with pytest.raises(DataError, match="line 1: not UTF-8 text"):
        open_source(f"{tmp_path}/rows.jsonl", {})


def test_an_unknown_target_is_refused_with_those_known() -> None:
    with pytest.raises(OptionError, match=r"KIND:NAME with one of \['cookbook'.*reasoning_gym"):
        open_source("reasoning_gym", {})


def test_a_reward_function_needs_prompts_that_are_text(tmp_path: Path) -> None:
    (tmp_path / "grader.py").write_text("def reward(prompt, reply):\n    return len(reply)\n")
    target = f"{tmp_path}/grader.py:reward"
    with pytest.raises(OptionError, match="--prompts"):
        open_source(target, {})
    (tmp_path / "prompts.jsonl").write_text('{"prompt": 7}\n')
    with pytest.raises(DataError, match="line 1: expected an object with a prompt"):
        open_source(target, {"prompts": f"{tmp_path}/prompts.jsonl"})
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "a"}\n{"prompt": "b", "split": "test"}\n')
    source = open_source(target, {"prompts": f"{tmp_path}/prompts.jsonl", "declared": [0, 9]})
    assert (source.facts.splits, source.facts.declared) == (("", "test"), (0.0, 9.0))
    assert play(source, TaskPlace("test", 0, 0), say("four")).total == 4.0


def test_a_builder_of_the_cookbook_pays_as_its_environment_checks() -> None:
    pytest.importorskip("tinker_cookbook", reason="needs the extra `tinker`")
    options = {"batch_size": 3, "n_batches": 4, "group_size": 2, "include_fewshot": False}
    module = "tinker_cookbook.recipes.math_rl.arithmetic_env"
    source = open_source(f"cookbook:{module}:ArithmeticDatasetBuilder", options)
    rng = np.random.RandomState(1)  # of the second batch
    for index in range(3, 6):
        first, second = (rng.randint(0, 101) for _ in range(2))
        episode = source.start(TaskPlace("", 0, index))
        assert f"What is {first} + {second}?" in episode.prompt
        assert episode.reference == (str(first + second),)
        paid = [
            play(source, TaskPlace("", 0, index), say(said)).total
            for said in ("-1", str(first + second))
        ]
        assert paid == [0.0, 1.0]
    assert source.facts.size == 12


APP = """
from openenv.core.env_server import create_app
from tokengym.agents.adapters.openenv import ReplyAction, TurnObservation, WorldEnvironment
from tokengym.envs import Rollouts

rollouts = Rollouts("energy")
app = create_app(
    lambda: WorldEnvironment(rollouts), ReplyAction, TurnObservation, max_concurrent_envs=4
)
"""


INTEGER_APP = """
from openenv.core.env_server import Action, Environment, Observation, State, create_app

class Press(Action):
    button: int

class Seen(Observation):
    text: str

class Buttons(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True
    state = State()

    def reset(self, seed=None, episode_id=None, **more):
        return Seen(text="Press button 3.")

    def step(self, action, timeout_s=None, **more):
        return Seen(text="", done=True, reward=float(action.button == 3))

app = create_app(Buttons, Press, Seen, max_concurrent_envs=2)
"""


def test_openenv_reads_the_last_number_of_a_reply(tmp_path: Path) -> None:
    pytest.importorskip("openenv", reason="needs the extra `openenv`")
    (tmp_path / "buttons_app.py").write_text(INTEGER_APP)
    (tmp_path / "openenv.yaml").write_text("name: buttons\napp: buttons_app:app\n")
    source = open_source(f"openenv:{tmp_path}", {})
    paid = [
        play(source, TaskPlace("", 0, 0), say(t)).total for t in ("1, no: 3", "3 or 1", "three")
    ]
    assert paid == [1.0, 0.0, 0.0]


def test_an_openenv_environment_pays_what_its_world_pays(tmp_path: Path) -> None:
    pytest.importorskip("openenv", reason="needs the extra `openenv`")
    (tmp_path / "energy_app.py").write_text(APP)
    (tmp_path / "openenv.yaml").write_text("name: energy\napp: energy_app:app\n")
    source = open_source(f"openenv:{tmp_path}", {"index": 3, "split": "test", "sessions": 2})
    expected = play(
        open_source("energy", {}), TaskPlace("test", 0, 3), say("BATTERY 1", "BATTERY 0")
    )
    from tests.integrations.test_openenv import served

    with served("energy") as address:
        remote = open_source(f"openenv:http://{address}", {"index": 3, "split": "test"})
        assert (
            play(remote, TaskPlace("", 0, 0), say("BATTERY 1", "BATTERY 0")).total == expected.total
        )
    for _ in range(4):  # more than the server has room for
        trace = play(source, TaskPlace("", 0, 0), say("BATTERY 1", "BATTERY 0"))
        assert trace.prompt == expected.prompt
        assert trace.texts == expected.texts
        assert trace.rewards == expected.rewards


def test_a_folder_named_after_a_world_holds_no_rollouts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "forecast").mkdir()
    monkeypatch.chdir(tmp_path)
    assert not is_recorded("forecast")
    assert is_recorded("./forecast")
