"""Laws of `tokengym sweep`: every combination once, resumed, and a table of what the logs say."""

import json
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.every import every
from tests.training.jobs import metrics
from tokengym.agents.cli import app
from tokengym.agents.cli.sweep import Swept
from tokengym.agents.evaluation.trained import read_trained
from tokengym.agents.settings import settings_of
from tokengym.agents.training.config import TrainConfig
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.viewer import open_runs
from tokengym.envs.core.errors import OptionError, TokengymError

pytestmark = pytest.mark.filterwarnings("ignore")

OFFERED = {name: Swept.of(setting) for name, setting in settings_of(TrainConfig).items()}
SAID = {int: ["4", "8"], float: ["0.5", "0.25"], bool: ["true", "false"], str: ["a", "b"]}


def values_of(name: str, typed: Any) -> list[Any]:
    return [value for _, value in OFFERED[name].value(typed)]


@every("name", OFFERED)
def test_every_option_of_train_takes_several_values(name: str) -> None:
    single = settings_of(TrainConfig)[name]
    assert not OFFERED[name].choices  # "a,b" is none of them
    if name in ("mix", "system"):
        assert values_of(name, "3,1") == ["3,1"]  # a comma that belongs to one value
    elif single.repeats:
        several = values_of(name, ["x=1,2", "y=3", "z=[4,5]"])
        assert len(several) == 2
        assert several == [single.value([x, "y=3", "z=[4,5]"]) for x in ("x=1", "x=2")]
    else:
        texts = list(single.choices)[:2] or SAID[single.kind]
        variants = OFFERED[name].value(",".join(texts))
        assert [variant.label for variant in variants] == [f"{name}={text}" for text in texts]
        for (_, value), text in zip(variants, texts, strict=True):
            assert str(value).lower() == text
            assert type(value) is (str if single.choices else single.kind)
        assert [variant.label for variant in OFFERED[name].value(texts[0])] == [""]


@given(st.lists(st.integers(2, 99), min_size=1, max_size=5))
def test_numbers_are_read_as_the_command_reads_them(sizes: list[int]) -> None:
    assert values_of("group_size", ",".join(map(str, sizes))) == sizes


@pytest.mark.parametrize(
    ("name", "typed"), [("group_size", "4,x"), ("kl", "a"), ("trust_remote_code", "?")]
)
def test_what_is_no_value_is_named(name: str, typed: str) -> None:
    flag = settings_of(TrainConfig)[name].flag
    with pytest.raises(OptionError, match=rf"{flag} {'x' if name == 'group_size' else ''}"):
        OFFERED[name].value(typed)


def sweep(folder: Path, served: dict[str, Any], *more: str) -> str:
    usual = ["--groups", "2", "--evaluation-tasks", "4", "--runs", str(folder)]
    place = ["--model", served["model"], "--base-url", served["base_url"]]
    words = ["sweep", "forecast", *usual, *place, *more]
    done = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    if isinstance(done.exception, TokengymError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.nightly
def test_each_combination_is_trained_once_and_tabled(
    tmp_path: Path, served: dict[str, Any]
) -> None:
    words = ["--group-size", "2,3", "--seeds", "0,1", "--steps", "1", "--max-tokens", "12"]
    first = sweep(tmp_path, served, *words)
    names = {f"seed={seed}-group_size={size}" for seed, size in product((0, 1), (2, 3))}
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == names
    for seed, size in product((0, 1), (2, 3)):
        config = RunFolder(tmp_path / f"seed={seed}-group_size={size}").config
        assert (config.seed, config.group_size, config.steps) == (seed, size, 1)
    found = json.loads((tmp_path / "sweep.json").read_text())
    assert list(found) == ["group_size=2", "group_size=3"]
    for size in (2, 3):
        column = found[f"group_size={size}"]
        runs = [RunFolder(tmp_path / f"seed={seed}-group_size={size}") for seed in (0, 1)]
        rows = [row for run in runs for row in metrics(run.folder)]
        for name in ("mean_reward", "correct_rate", "reward_tie_pair_rate", "tokens_per_second"):
            assert column[name]["value"] == pytest.approx(fmean(row[name] for row in rows))
            assert name in first
        assert column["replies"] == 2 * size
        skills = [read_trained(run)["forecaster"].skill().after for run in runs]
        assert column["skills"] == [skill.value for skill in skills]
        # On the same Tasks the skill of mean returns is the mean of the skills.
        assert column["skill"]["value"] == pytest.approx(fmean(column["skills"]))
    # What is finished is left alone; what was interrupted goes on.
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/outcome.json")}
    broken = tmp_path / "seed=1-group_size=3" / "outcome.json"
    broken.unlink()
    again = sweep(tmp_path, served, *words)
    assert again.count("finished before") == 3
    changed = {path for path, when in kept.items() if path.stat().st_mtime_ns != when}
    assert changed == {broken}
    assert json.loads((tmp_path / "sweep.json").read_text()) == found
    shown = open_runs([tmp_path])
    assert len(shown) == 5
    report = shown[tmp_path.name].report()
    assert report is not None
    chart, table = report["parts"]
    assert table["header"] == ["", *found]
    assert chart["series"][0]["y"] == [one for column in found.values() for one in column["skills"]]
    # A sweep of fewer settings finds its runs by what they were trained with, not by their names.
    narrower = sweep(tmp_path, served, *words[2:], "--group-size", "2")
    assert narrower.count("finished before") == 2
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == names
    # Runs that were trained otherwise are not mixed in.
    with pytest.raises(OptionError, match="holds a run with another learning_rate"):
        sweep(tmp_path, served, *words, "--learning-rate", "0.001")
    compared = CliRunner().invoke(
        app, ["compare", *(str(tmp_path / name) for name in sorted(names))], env={"COLUMNS": "250"}
    )
    assert "reward_uniform_group_rate" in compared.output
    assert "tokens_per_second" in compared.output


def test_a_bad_value_is_refused_before_anything_is_trained(
    tmp_path: Path, served: dict[str, Any]
) -> None:
    with pytest.raises(OptionError, match="--group-size must be at least 2, got 1"):
        sweep(tmp_path / "runs", served, "--group-size", "4,1")
    assert not (tmp_path / "runs").exists()
