"""Laws of reading a run's ties: what its log says, no more, and floors before conclusions."""

import json
import math
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tokengym.agents.cli import app
from tokengym.agents.evaluation.run_ties import SERIES, RunTies, run_ties
from tokengym.agents.training.folder.collapse import Collapse
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.folder.run_summary import RunSummary
from tokengym.agents.training.presets import preset
from tokengym.envs.core.errors import OptionError

pytestmark = pytest.mark.filterwarnings("ignore")

RATE = st.floats(0, 1)


def a_run(folder: Path, rows: list[dict[str, float]], world: str = "energy") -> Path:
    """A run folder whose log has these values, by the keys of `SERIES`."""
    RunFolder(folder).write_config(preset(world, group_size=4))
    logged = {"mean_reward": "env/all/reward/total", "tokens_per_second": "tokens_per_second"}
    lines = [
        {"step": at, **{logged.get(name, f"env/all/{name}"): v for name, v in row.items()}}
        for at, row in enumerate(rows)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def read(rows: list[dict[str, float]]) -> RunTies:
    with TemporaryDirectory() as folder:
        return run_ties(RunFolder(a_run(Path(folder), rows)))


@pytest.mark.nightly
@given(st.lists(st.fixed_dictionaries(dict.fromkeys(SERIES, RATE)), min_size=1, max_size=25))
def test_means_are_those_of_the_log(rows: list[dict[str, float]]) -> None:
    found = read(rows)
    tenth = max(1, len(rows) // 10)
    assert list(found.steps) == list(range(len(rows)))
    for name in SERIES:
        values = [row[name] for row in rows]
        assert found.estimate(name).value == pytest.approx(fmean(values))
        assert found.estimate(name, slice(found.tenth)).value == pytest.approx(
            fmean(values[:tenth])
        )
    lost = fmean(row["reward_uniform_group_rate"] for row in rows)
    assert f"{lost:.1%} of the groups had no advantage" in found.summary


def test_what_the_log_does_not_tell_is_not_told() -> None:
    found = read([{"mean_reward": 0.5, "reward_tie_pair_rate": 0.25}, {"mean_reward": math.nan}])
    assert set(found.series) == {"mean_reward", "reward_tie_pair_rate"}
    assert found.series["mean_reward"] == (0.5, None)


def test_a_folder_in_place_of_a_world_is_read(tmp_path: Path) -> None:
    a_run(tmp_path, [{"mean_reward": 0.5, "reward_tie_pair_rate": 0.25}] * 12)
    collapse = Collapse(3, "the form is lost", "try it")
    RunFolder(tmp_path).write_outcome(RunSummary(collapse))
    data = tmp_path / "ties.json"
    result = CliRunner().invoke(app, ["ties", str(tmp_path), "--json", str(data)])
    assert result.exit_code == 0, result.output
    found = json.loads(data.read_text())
    assert found["group_size"] == 4
    assert "Collapsed: the form is lost" in result.output
    assert found["report"]["lines"][1] == "0.0% of the groups had no advantage."


def test_rates_have_intervals_even_where_nothing_tied() -> None:
    rows = [{"mean_reward": 0.5 + 0.01 * at, "reward_uniform_group_rate": 0.0} for at in range(4)]
    found = read(rows)
    groups = 4 * found.groups
    dead, mean = found.estimate("reward_uniform_group_rate"), found.estimate("mean_reward")
    assert dead is not None
    assert mean is not None
    assert (dead.value, dead.low, dead.samples) == (0.0, 0.0, groups)
    assert dead.high == pytest.approx(1 - 0.025 ** (1 / groups))
    assert mean.low < 0.515 < mean.high
    (table,) = found.report().tables
    assert f"0.000 (0.000 to {dead.high:.3f})" in table.rows[1]


def test_a_run_without_steps_or_with_other_options_is_refused(tmp_path: Path) -> None:
    a_run(tmp_path, [])
    with pytest.raises(OptionError, match="no completed step"):
        run_ties(RunFolder(tmp_path))
    result = CliRunner().invoke(app, ["ties", str(tmp_path), "--policy", "noisy"])
    assert isinstance(result.exception, OptionError)
    assert "options of a world or a policy do not apply to it" in str(result.exception)


@pytest.mark.nightly
def test_a_run_is_no_policy_of_another_world(tmp_path: Path) -> None:
    a_run(tmp_path, [{"mean_reward": 0.5}])
    for world, more, said in (
        ("forecast", [], "is a run on tokengym/Energy-v2"),
        ("energy", ["--model-path", "tinker://x"], "give one"),
        ("energy", [], "has saved no weights"),
    ):
        result = CliRunner().invoke(app, ["ties", world, "--policy", str(tmp_path), *more])
        assert isinstance(result.exception, OptionError)
        assert said in str(result.exception)
