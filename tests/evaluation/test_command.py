"""Laws of the commands: the same words find the same folder, JSON is JSON, exit statuses."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.forecasting.questions_file import plain, write_lines
from tokengym.agents.cli import app
from tokengym.agents.viewer import open_runs
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import baselines, specs

ASKED = ["evaluate", "forecast", "--policy", "noisy", "--policy", "half", "--tasks", "4"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), catch_exceptions=False)


@pytest.mark.nightly
def test_the_same_command_finds_its_folder_and_is_verified(folder: Path) -> None:
    first = run(*ASKED)
    assert first.exit_code == 0, first.output
    (made,) = (folder / "evaluations").iterdir()
    assert made.name.startswith("forecast_easy-noisy-half-")
    (view,) = open_runs([made]).values()
    report = view.report()
    assert report is not None
    for line in report["lines"]:
        assert line in first.output
    (table, pairs) = report["parts"]
    assert table["header"] == ["", "noisy", "half"]
    assert pairs["title"] == "Paired by Task"
    assert len(view.tables()) == 2
    again = run(*ASKED, "--json")
    assert [path.name for path in (folder / "evaluations").iterdir()] == [made.name]
    printed = json.loads(again.output)
    assert [one["policy"] for one in printed["results"]["policies"]] == ["noisy", "half"]
    assert printed["versions"]["tokengym"]
    run(*ASKED, "--seed", "1")
    assert len(list((folder / "evaluations").iterdir())) == 2
    assert "8 rollouts replayed: all agree" in run("evaluate", "--verify", str(made)).output
    file = next((made / "rollouts").iterdir())
    file.write_text(file.read_text().replace('"return":0.', '"return":0.0'))
    wrong = run("evaluate", "--verify", str(made / "evaluation.json"))
    assert wrong.exit_code == 1
    assert "differences in 8 rollouts" in wrong.output


def test_repeated_rollouts_are_named_and_counted_once(folder: Path) -> None:
    asked = ["evaluate", "forecast", "--policy", "random", "--tasks", "4", "--out", "here"]

    def printed() -> str:
        done = run(*asked)
        return done.stdout + done.stderr.strip()  # where old versions of rich leave a blank line

    first = printed()
    (file,) = (folder / "here" / "rollouts").iterdir()
    file.write_text(file.read_text() + file.read_text().splitlines(keepends=True)[0])
    note = f"{file.stem}: 1 repeated rollouts; the last of each counts\n"
    assert printed() == note + first
    assert printed() == first


def test_rollouts_that_are_played_anew_are_not_called_repeated(folder: Path) -> None:
    write_lines(folder / "q.jsonl", [plain(number) for number in range(60)])
    # Answers of one's own data may have changed, so that scripts are always played anew.
    outputs = [run(*ASKED, "--data", "q.jsonl", "--out", "own").output for _ in range(2)]
    assert outputs[0] == outputs[1]


@pytest.mark.nightly
def test_rollouts_are_chosen_and_written(folder: Path) -> None:
    run(*ASKED, "--rollouts", "3", "--out", "here")
    chosen = run("rollouts", "here", "--policy", "noisy", "--min-return", "0.5")
    rows = [json.loads(line) for line in chosen.stdout.splitlines()]
    assert rows
    assert all(row["policy"] == "noisy" and row["return"] >= 0.5 for row in rows)
    assert run("rollouts", "here", "--as", "preferences", "--out", "pairs.jsonl").exit_code == 0
    pairs = [json.loads(line) for line in Path("pairs.jsonl").read_text().splitlines()]
    assert pairs
    assert all(pair["margin"] >= 0.05 for pair in pairs)
    with pytest.raises(OptionError, match="holds no rollouts"):
        run("rollouts", str(folder / "nowhere"))
    with pytest.raises(OptionError, match="FIRST:LAST"):
        run("rollouts", "here", "--steps", "few")


def test_an_episode_that_was_played_can_be_kept() -> None:
    words = ["play", "energy", "--policy", "hold", "--rollouts", "played/rollouts"]
    assert run(*words).exit_code == 0
    assert run(*words).exit_code == 0
    rows = [json.loads(line) for line in run("rollouts", "played").stdout.splitlines()]
    assert [(row["kind"], row["policy"]) for row in rows] == [("play", "hold")] * 2


def test_worlds_are_described_with_options_and_baselines() -> None:
    found = json.loads(run("worlds", "--json").output)
    assert [world["id"] for world in found] == list(specs())
    for world in found:
        assert world["baselines"] == sorted(baselines(world["id"]))
        assert world["options"]["prompt"]["default"] == "full"
        assert list(world["levels"]) == list(specs()[world["id"]].levels)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["evaluate", "forecast"], "at least one world and one --policy"),
        (["evaluate", "--verify", "nowhere"], "does not exist"),
        (["evaluate", "forecast", "--policy", "openai:x@http://"], "openai:MODEL@URL"),
    ],
)
def test_what_makes_no_sense_is_named(words: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        run(*words)


def test_own_questions_are_evaluated_by_the_figures_of_their_field(folder: Path) -> None:
    rows = [plain(n, event=f"event {n // 2}", price=0.2 + 0.6 * (n % 2)) for n in range(60)]
    write_lines(folder / "q.jsonl", rows)
    asked = ["evaluate", "forecast", "--data", "q.jsonl", "--option", "show_prices=true"]
    shown = run(*asked, "--policy", "market", "--policy", "null", "--out", "own", "--all")
    assert shown.exit_code == 0, shown.output
    for figure in ("Brier score", "skill over base rate", "AUC", "95 % null", "resolution"):
        assert figure in shown.output
    written = json.loads((folder / "own" / "evaluation.json").read_text())
    market, null = written["results"]["policies"]
    found = market["scores"]
    assert found["Brier score"]["samples"] < market["tasks"] < 30
    assert found["Brier score"]["value"] == pytest.approx(0.04)
    assert found["AUC"]["value"] == 1.0
    assert 0.7 < found["skill over base rate"]["value"] < 0.9
    assert null["scores"] == {}
    assert "all agree" in run("evaluate", "--verify", "own").output
