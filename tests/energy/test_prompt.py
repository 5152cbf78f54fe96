"""Laws of the prompts: no text shows a command to copy, and first texts differ."""

import pytest

from tests.energy.drawn import plant_of, task_of, world_of
from tokengym.envs.energy.grammar import read_commands
from tokengym.envs.energy.microgrid import Microgrid
from tokengym.envs.energy.prompt import likelier_times
from tokengym.envs.registry import spec

LEVELS = spec("energy").levels
TASKS = 6


@pytest.mark.parametrize("prompt", ["full", "terse"])  # `direct` shows examples
@pytest.mark.parametrize("level", LEVELS)
def test_repeating_a_turn_commands_nothing(level: str, prompt: str) -> None:
    """No text shows a command that a policy could copy with profit."""
    world = world_of(level, prompt=prompt)
    devices = world.compile(task_of(level, 0)).plant.devices
    turn = world.start(task_of(level, 0))
    assert read_commands(turn.text, devices).value is None
    for reply in (f"{devices[0]} 99", "nonsense", f"{devices[0]} -99", f"{devices[0]} 0"):
        turn = world.reply(reply)
        assert read_commands(turn.text, devices).value is None


@pytest.mark.parametrize("level", LEVELS)
def test_the_split_depends_on_what_is_shown_first_alone(level: str) -> None:
    world = world_of(level)
    for index in range(TASKS):
        instance = task_of(level, index).instance
        hidden = {
            name: [instance[name][0], *(value + 0.1 for value in instance[name][1:])]
            for name in ("load", "pv", "outside")
            if name in instance
        }
        if "day" in instance:
            hidden["day"] = len(instance["chances"]) - 1 - instance["day"]
        later: dict[str, object] = {name: [] for name in instance if name.endswith("_updates")}
        assert world.split_of({**instance, **hidden, **later}) == "train"
    name = "chances" if level.startswith("commit") else "load_forecast"
    moved = {
        world.split_of({**instance, name: [value + step for value in instance[name]]})
        for step in range(40)
    }
    assert len(moved) == 3


def test_storm_hours_are_the_steps_with_the_higher_chance() -> None:
    for index in range(8):
        grid = plant_of("outages", index)
        assert isinstance(grid, Microgrid)
        runs = likelier_times(grid.chance)
        found = {step for begin, end in runs for step in range(begin, end + 1)}
        high = {step for step, p in enumerate(grid.chance) if p == max(grid.chance)}
        assert found == (high if len(set(grid.chance)) > 1 else set())
