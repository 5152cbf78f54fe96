"""The table of levels holds what its command prints: scripts are played again at first levels."""

import re

import gymnasium
import pytest

from tests.docs.pages import ROOT
from tokengym.agents.analysis.markdown import read_block, table_rows
from tokengym.agents.evaluation.scripted import play_all
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.registry import baselines, make_world, scripted_opponent, specs

PAGE = ROOT / "docs" / "worlds.md"
ROWS = table_rows(read_block(PAGE, "tokengym check, by level"))[1:]
(TASKS,) = {int(n) for n in re.findall(r"check --all --tasks (\d+)", PAGE.read_text())}


@pytest.mark.parametrize("spec", specs().values(), ids=lambda spec: spec.short_name)
def test_the_page_states_what_policies_earn(spec: WorldSpec) -> None:
    row = next(row for row in ROWS if row[:2] == [spec.short_name, f"`{spec.levels[0]}`"])
    world = make_world(spec.id, **spec.check_options)
    role, *others = world.spec.roles
    opponents = {one: baselines(spec)[scripted_opponent(spec, one)] for one in others}
    for policy, cell in zip(("null", "random", "oracle"), row[4:7], strict=True):
        players = {**opponents, role: baselines(spec)[policy]}
        played = play_all(world, world.first_tasks("test", TASKS), players, 0)
        assert f"{sum(one.returns[role] for one in played) / TASKS:.3f}" == cell.split()[0]


def test_the_readme_begins_with_a_task_as_it_is_played() -> None:
    page = (ROOT / "README.md").read_text()
    shown = " ".join(line[2:] for line in page.splitlines() if line.startswith("> "))
    stated, best = re.findall(r"`Probability: (0\.\d{3})`", page)[:2]
    paid, mean, most = re.findall(r"\b(?:pays|earns) (0\.\d{3})", page)[:3]
    env = gymnasium.make("tokengym/Forecast-v0")

    def play(probability: str) -> tuple[str, float, float]:
        prompt, _ = env.reset(seed=3)
        _, reward, _, _, info = env.step(f"Probability: {probability}")
        return prompt, float(reward), info["metrics"]["expected_return/forecaster"]

    prompt, reward, expected = play(stated)
    assert shown in prompt
    assert (f"{reward:.3f}", f"{expected:.3f}") == (paid, mean)
    assert f"{play(best)[2]:.3f}" == most
    nearby = [play(f"{float(best) + step:.3f}")[2] for step in (-0.002, 0.002)]
    assert play(best)[2] > max(nearby)
