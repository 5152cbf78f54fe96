"""A setting is declared once: what people read and type about it follows from the declaration."""

from typing import Any, get_args

import pytest
from typer.testing import CliRunner

from tokengym.agents.cli import app
from tokengym.agents.settings import settings_of
from tokengym.agents.training.config import COMMANDS, TrainConfig
from tokengym.agents.training.presets import preset
from tokengym.envs.core.errors import OptionError

MOST_SETTINGS_OF_A_GROUP = 15


def test_every_setting_belongs_to_one_group_and_no_group_is_large() -> None:
    groups = {group for offer in COMMANDS.values() for group in offer.groups}
    names = [name for group in groups for name in settings_of(group)]
    assert sorted(names) == sorted(settings_of(TrainConfig))
    assert max(len(settings_of(group)) for group in groups) <= MOST_SETTINGS_OF_A_GROUP
    flags = [setting.flag for setting in settings_of(TrainConfig).values()]
    assert len(set(flags)) == len(flags)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_offers_the_settings_of_its_groups_and_no_others(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    offered = {name for group in COMMANDS[command].groups for name in settings_of(group)}  # type: ignore[index]
    for name, setting in settings_of(TrainConfig).items():
        assert (f"{setting.flag} " in shown) == (name in offered), setting.flag


@pytest.mark.parametrize("name", settings_of(TrainConfig))
def test_a_value_beyond_its_limits_or_choices_is_refused_by_its_flag(name: str) -> None:
    setting = settings_of(TrainConfig)[name]
    wrong: list[Any] = ["nosuch"] if setting.choices else []
    if float in (setting.kind, *get_args(setting.kind)):
        wrong.append(float("nan"))
    wrong += [setting.least - 1] if setting.least is not None else []
    wrong += [setting.most + 1] if setting.most is not None else []
    wrong += [setting.above] if setting.above is not None else []
    for value in wrong:
        with pytest.raises(OptionError, match=f"^{setting.flag} must be .*{value}"):
            preset("disruption", **{name: value})
