"""A setting is declared once: what people read and type about it follows from the declaration."""

import json
import re
from typing import Any, get_args

import pytest
from typer.testing import CliRunner

from tests.every import every, quick_first
from tokengym.agents.cli import app
from tokengym.agents.settings import settings_of
from tokengym.agents.training.config import CONFIGS, Command, JobConfig, read_config
from tokengym.agents.training.presets import preset_for
from tokengym.envs.core.errors import OptionError

MOST_SETTINGS_OF_A_GROUP = 15
SETTINGS = {name: one for kind in CONFIGS.values() for name, one in settings_of(kind).items()}


def needed(kind: type[JobConfig]) -> dict[str, Any]:
    """Return settings that must be named, with some value."""
    return {name: "a-run" for name, one in settings_of(kind).items() if one.default is ...}


def test_every_setting_belongs_to_one_small_group() -> None:
    groups = {setting.group for kind in CONFIGS.values() for setting in settings_of(kind).values()}
    # A group may build on another one, whose settings stay that one's.
    names = [n for group in groups for n, one in settings_of(group).items() if one.group is group]
    assert sorted(names) == sorted(SETTINGS)
    assert max(len(settings_of(group)) for group in groups) <= MOST_SETTINGS_OF_A_GROUP
    flags = [setting.flag for setting in SETTINGS.values()]
    assert len(set(flags)) == len(flags)


@pytest.mark.parametrize("command", CONFIGS)
def test_a_command_offers_its_own_settings_and_no_others(command: Command) -> None:
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    offered = settings_of(CONFIGS[command])
    for name, setting in SETTINGS.items():
        assert (f"{setting.flag} " in shown) == (name in offered), setting.flag
    for group in {setting.group for setting in offered.values()}:
        assert str(group.__doc__).partition(".")[0] in shown


@every("world", ["forecast", "energy", "warehouse", "disruption", "energy:soma"])
@quick_first("command", CONFIGS)
def test_help_shows_the_defaults_of_the_world_named(command: Command, world: str) -> None:
    kind, level = CONFIGS[command], world.partition(":")[2] or None
    config = preset_for(kind, world.partition(":")[0], level, **needed(kind))
    shown = CliRunner().invoke(app, [command, world, "--help"], env={"COLUMNS": "300"}).output
    lines = {words[1]: line for line in shown.splitlines() if len(words := line.split()) > 1}
    for name in ("steps", "groups_per_batch", "group_size", "evaluation_tasks", "learning_rate"):
        line = lines[settings_of(kind)[name].flag]
        assert f"default {getattr(config, name)})" in line, line


def test_help_without_a_world_names_no_world_s_sizes() -> None:
    shown = CliRunner().invoke(app, ["train", "--help"], env={"COLUMNS": "300"}).output
    for flag in ("--steps", "--groups", "--evaluation-tasks"):
        assert re.search(rf"{flag} .*default by world\)", shown)


@pytest.mark.parametrize("kind", CONFIGS.values())
def test_a_configuration_is_read_as_it_was_written(kind: type[JobConfig]) -> None:
    config = preset_for(kind, "forecast", steps=7, **needed(kind))
    written = json.loads(json.dumps(config.to_dict()))
    assert read_config(written) == config
    foreign = {"preferences": "a-run", "estimator": "leave_one_out", "beta": 0.2}
    for name in foreign.keys() - settings_of(kind).keys():
        with pytest.raises(OptionError, match=name):
            read_config({**written, name: foreign[name]})
    with pytest.raises(OptionError, match="stepps"):
        read_config({**written, "stepps": 3})
    with pytest.raises(OptionError, match=r"command must be one of .* got 'tune'"):
        read_config({**written, "command": "tune"})


@every("name", SETTINGS)
def test_values_beyond_limits_or_choices_are_refused_by_flag(name: str) -> None:
    setting = SETTINGS[name]
    kind = next(kind for kind in CONFIGS.values() if name in settings_of(kind))
    wrong: list[Any] = ["nosuch"] if setting.choices else []
    if float in (setting.kind, *get_args(setting.kind)):
        wrong.append(float("nan"))
    wrong += [setting.least - 1] if setting.least is not None else []
    wrong += [setting.most + 1] if setting.most is not None else []
    wrong += [setting.above] if setting.above is not None else []
    for value in wrong:
        with pytest.raises(OptionError, match=f"^{setting.flag} must be .*{value}"):
            preset_for(kind, "disruption", **{**needed(kind), name: value})


NEEDING = [name for name, setting in SETTINGS.items() if setting.needs]
OTHER_VALUES: dict[str, Any] = {"warm_start_rate": 1e-3}
OTHER_VALUES |= {"warm_start_updates": 2, "resample_tokens": 5}
ENOUGH = {"warm_start": 1}


@pytest.mark.parametrize("name", NEEDING)
def test_a_setting_is_refused_without_what_it_needs(name: str) -> None:
    setting, value = SETTINGS[name], OTHER_VALUES[name]
    needed, _, wanted = setting.needs.partition("=")
    kind = next(kind for kind in CONFIGS.values() if name in settings_of(kind))
    other = f"--{needed.replace('_', '-')}"
    with pytest.raises(OptionError, match=f"^{setting.flag} {value} is for {other}"):
        preset_for(kind, "disruption", **dict[str, Any]({name: value}))
    changes: dict[str, Any] = {name: value, needed: wanted or ENOUGH[needed]}
    both = preset_for(kind, "disruption", **changes)
    assert getattr(both, name) == value
    assert other in setting.described
