"""Laws of corrected data: saved rollouts are never shown as those of other answers."""

from pathlib import Path

import pytest

pytest.importorskip("aiohttp")


from tests.evaluation.endpoint_runs import forecast
from tests.evaluation.endpoint_server import Endpoint, serving
from tests.own_data import correct, papers, questions, write
from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.results import Results
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.evaluation.verify import verify_evaluation
from tokengym.envs.core.errors import OptionError

WORLDS = {"forecast": questions, "disruption": papers}


def evaluate(
    folder: Path,
    path: Path,
    tasks: int = 8,
    policy: str = "random",
    *,
    world: str = "forecast",
    again: bool = False,
) -> Results:
    config = EvaluationConfig(
        (world,), (policy,), tasks=tasks, options={"data": str(path)}, again=again
    )
    return run_evaluation(config, EvaluationFolder(folder))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("world", "tasks"), [("forecast", 8), ("forecast", 12), ("disruption", 12)]
)
def test_changed_answers_are_counted_and_played_again(
    world: str, tasks: int, tmp_path: Path
) -> None:
    """The same command, or one with more Tasks, gives what a new folder gives, or says why not."""
    path = write(tmp_path / "q.jsonl", WORLDS[world]())
    evaluate(tmp_path / "a", path, world=world)
    correct(path, world, "test", 3)
    with pytest.raises(OptionError, match=r"3 of 8 answers in \S+ differ .*: --again plays"):
        evaluate(tmp_path / "a", path, tasks, world=world)
    again = evaluate(tmp_path / "a", path, tasks, world=world, again=True)
    assert again == evaluate(tmp_path / "new", path, tasks, world=world)
    assert verify_evaluation(EvaluationFolder(tmp_path / "a")).differences == []
    assert evaluate(tmp_path / "a", path, tasks, world=world) == again


def test_only_what_changed_is_asked_again(tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", questions())
    with serving(Endpoint(forecast)) as endpoint:
        policy = f"openai:some/model@{endpoint.url}"
        evaluate(tmp_path / "a", path, policy=policy)
        correct(path, "forecast", "test", 3)
        evaluate(tmp_path / "a", path, policy=policy, again=True)
        assert len(endpoint.asked) == 8 + 3
        correct(path, "forecast", "train", 5)  # no answer of the evaluation
        evaluate(tmp_path / "a", path, policy=policy)
        assert len(endpoint.asked) == 8 + 3


def test_a_script_knows_the_data_as_it_is_now(tmp_path: Path) -> None:
    """The base rate follows from training questions, which the Tasks' answers are not."""
    path = write(tmp_path / "q.jsonl", questions())
    evaluate(tmp_path / "a", path, policy="base_rate")
    correct(path, "forecast", "train", 20)
    now = evaluate(tmp_path / "a", path, policy="base_rate")
    assert now == evaluate(tmp_path / "new", path, policy="base_rate")
    assert verify_evaluation(EvaluationFolder(tmp_path / "a")).differences == []


def test_questions_that_are_gone_count_as_changed(tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", questions())
    evaluate(tmp_path / "a", path, 15)
    write(path, questions(60))
    with pytest.raises(OptionError, match=r"of 15 answers in \S+ differ"):
        evaluate(tmp_path / "a", path, 15)
    again = evaluate(tmp_path / "a", path, 15, again=True)
    assert again == evaluate(tmp_path / "new", path, 15)


def test_verify_names_the_rollouts_of_changed_answers(tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", questions())
    evaluate(tmp_path / "a", path)
    folder = EvaluationFolder(tmp_path / "a")
    correct(path, "forecast", "test", 3)
    told = verify_evaluation(folder).differences
    assert len({line.split(",")[1] for line in told if "turn 0: reward is" in line}) == 3
