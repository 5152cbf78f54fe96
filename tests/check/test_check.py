"""The check of levels: what policies earn, one broken law by its name, tables of pages."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import tokengym
from benchmarks.level_tables import BLOCK, main
from benchmarks.pages import read_block, table_rows
from tests.testing import broken
from tests.testing.thermometer import SPEC, Thermometer
from tokengym.agents.check.level_check import LevelCheck
from tokengym.agents.check.tables import check_table, ladder_table
from tokengym.agents.cli import app
from tokengym.agents.evaluation.scripted import play_all
from tokengym.agents.scale.ladder import shipped_ladder
from tokengym.envs import registry
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, baselines_at, import_object, make_world, spec
from tokengym.testing import Subject


def checked(world: World, tasks: int = 8) -> LevelCheck:
    return LevelCheck.measure(world, Subject(world, examples=2), tasks)


@pytest.mark.nightly
@pytest.mark.parametrize("case", [("forecast", "hard"), ("disruption", "L2")], ids="-".join)
def test_each_return_is_the_mean_of_its_policy(case: tuple[str, str]) -> None:
    world = make_world(*case, label="expected")
    found, policies = checked(world), dict(baselines(case[0]))
    assert found.scale is not None
    policies[found.scale.blind] = import_object(spec(case[0]).blind)(world)[found.scale.blind]
    role, *others = world.spec.roles
    scripts = {other: baselines(case[0])["scripted"] for other in others}
    assert {*found.returns} == {*baselines_at(world), found.scale.blind}
    for name, mean in found.returns.items():
        played = play_all(world, world.first_tasks("test", 8), {**scripts, role: policies[name]})
        assert mean.value == pytest.approx(np.mean([episode.returns[role] for episode in played]))
    *rows, (_, top, _) = check_table(found).rows
    called = {found.scale.blind: found.scale.label}
    assert {row[0]: row[1] for row in rows} == {
        called.get(name, name): str(mean) for name, mean in found.returns.items()
    }
    assert float(str(top)) == pytest.approx(found.scale.optimum, abs=5e-4)


@pytest.mark.parametrize(("world", "breakable"), [("forecast", False), ("energy", True)])
def test_a_ladder_is_laid_out_as_it_was_measured(world: str, breakable: bool) -> None:
    ladder = shipped_ladder(made := make_world(world), made.spec.roles[0])
    assert ladder is not None
    table = ladder_table("", ladder)
    assert ("breaks" in table.header) is breakable
    for rung, cells in zip(ladder.rungs, table.rows, strict=True):
        row = {name: str(cell) for name, cell in zip(table.header, cells, strict=True)}
        source = f" ({rung.source})" if rung.source else ""
        assert (row["type"], row["policy (source)"]) == (rung.kind, f"{rung.name}{source}")
        shown = [row["ms per Task"] or "0", row["gain"], row.get("breaks", "0%").rstrip("%")]
        measured = [1000 * rung.seconds, rung.share.value, 100 * (rung.broken or 0)]
        assert [float(cell) for cell in shown] == pytest.approx(measured, rel=5e-3, abs=5e-4)


def test_a_level_that_breaks_a_law_has_no_returns() -> None:
    found = checked(broken.PaysOffTheGrid(SPEC))
    assert "rewards_lie_on_the_grid" in found.broken
    assert (found.scale, found.returns, found.skills) == (None, {}, {})


def test_a_check_needs_two_test_tasks() -> None:
    with pytest.raises(OptionError, match="got 1"):
        checked(Thermometer(SPEC), tasks=1)


@pytest.mark.nightly
def test_the_command_writes_what_it_found(tmp_path: Path) -> None:
    out = tmp_path / "checks.json"
    exact = ["--option", "label=expected"]
    call = ["check", "forecast", "--level", "easy", "--tasks", "8", *exact, "--json", str(out)]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 0, result.output
    (found,) = json.loads(out.read_text())
    assert (found["world"], found["level"], found["tasks"]) == ("tokengym/Forecast-v1", "easy", 8)
    assert found["returns"]["oracle"]["value"] > found["returns"]["null"]["value"] == 0.0
    assert (found["skills"]["oracle"]["value"], found["broken"]) == (1.0, {})
    assert found["reached_by"]["policy"] == "oracle"
    assert "Every law is kept" in " ".join(result.output.split())
    assert "policy (source)" in result.output


@pytest.mark.nightly
@pytest.mark.usefixtures("fresh_registry")
@pytest.mark.parametrize(("world", "status"), [(Thermometer, 0), (broken.Overpays, 1)])
def test_tables_hold_only_levels_that_keep_the_laws(
    world: type[Thermometer], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, out, name = tmp_path / "page.md", tmp_path / "found.json", f"{BLOCK}, by level"
    page.write_text(f"<!-- made by {name} -->\n<!-- end of {name} -->\n")
    made = replace(SPEC, entry_point=f"{world.__module__}:{world.__name__}")
    tokengym.register(made)
    monkeypatch.setattr(registry, "BY_ID", {made.id: made})
    result = CliRunner().invoke(app, ["check", "--all", "--tasks", "4", "--json", str(out)])
    assert result.exit_code == status, result.output
    words = [str(page), "--checks", str(out)]
    if status:
        with pytest.raises(OptionError, match="break a law"):
            main(words)
        assert not read_block(page, name)
        assert "rewards_lie_in_their_range BROKEN" in result.output
    else:
        main(words)
        _, row = table_rows(read_block(page, name))
        assert row[:4] == ["thermometer", "`days`", "0 to 1", "0.000 (all 4 equal)"]


def test_a_level_is_named_with_world_or_by_option() -> None:
    shown = CliRunner().invoke(app, ["check", "forecast:expert", "--ladder"])
    assert shown.exit_code == 0, shown.output
    assert "tokengym/Forecast-v1 expert, 400 validation Tasks" in shown.output
    assert "tokengym/Forecast-v1 easy" not in shown.output
    with pytest.raises(OptionError, match=r"'forecast:expert' names a level already"):
        CliRunner().invoke(
            app, ["check", "forecast:expert", "--level", "easy"], catch_exceptions=False
        )
    with pytest.raises(OptionError, match="'nothing'"):
        CliRunner().invoke(app, ["check", "forecast:nothing"], catch_exceptions=False)
