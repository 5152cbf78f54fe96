"""The registry of losses: what follows from an entry."""

import json
import math
from pathlib import Path
from typing import Any, get_args

import pytest
import tinker

from tests.training.jobs import run_job
from tokengym.agents.service.engine.losses import LOSSES as SERVED
from tokengym.agents.settings import settings_of
from tokengym.agents.training.config import TrainConfig
from tokengym.agents.training.losses import LOSSES, default_loss
from tokengym.agents.training.presets import preset
from tokengym.envs.core.errors import OptionError

PAGE = Path(__file__).parents[2] / "docs" / "training.md"


def usable(name: str) -> dict[str, float]:
    """Return arguments that a loss takes, those that must be given and one that may."""
    arguments = LOSSES[name].arguments
    return {key: 0.9 if usual is None else usual for key, usual in arguments.items()}


def test_choices_are_the_registered_losses() -> None:
    assert settings_of(TrainConfig)["loss"].choices == tuple(LOSSES)
    assert set(LOSSES) <= set(get_args(tinker.types.LossFnType))
    with pytest.raises(OptionError, match="--loss must be one of"):
        preset("forecast", loss="nosuch")


@pytest.mark.parametrize("name", LOSSES)
def test_the_service_takes_the_arguments_registered(name: str) -> None:
    assert dict(SERVED[name].settings) == dict(LOSSES[name].arguments)
    assert SERVED[name].configured(usable(name)) == usable(name)


@pytest.mark.parametrize("name", LOSSES)
def test_arguments_that_a_loss_does_not_take_are_refused(name: str) -> None:
    config = preset("forecast", loss=name, loss_options=usable(name))
    assert config.token_loss == name
    wrong: list[dict[str, Any]] = [{**usable(name), "nosuch": 1.0}]
    for argument, usual in LOSSES[name].arguments.items():
        wrong += [{**usable(name), argument: value} for value in (-1.0, math.nan, "many")]
        wrong += [{}] if usual is None else []
    for options in wrong:
        with pytest.raises(OptionError, match="--loss-option"):
            preset("forecast", loss=name, loss_options=options)


def test_samples_of_earlier_weights_get_a_bounded_loss() -> None:
    assert LOSSES[preset("forecast", mode="async").token_loss].off_policy
    assert preset("forecast").token_loss == next(iter(LOSSES)) == default_loss(off_policy=False)


@pytest.mark.parametrize("name", LOSSES)
def test_the_page_has_a_row_of_every_loss(name: str) -> None:
    loss = LOSSES[name]
    arguments = (
        f"`{key}`" + ("" if usual is None else f" {usual:g}")
        for key, usual in loss.arguments.items()
    )
    row = f"| `{name}` | {loss.formula} | {', '.join(arguments)} |"
    assert row in PAGE.read_text()


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LOSSES)
def test_a_job_trains_by_every_loss(tmp_path: Path, served: dict[str, Any], name: str) -> None:
    small: dict[str, Any] = {"steps": 1, "groups_per_batch": 2, "group_size": 2}
    small |= {"evaluation_tasks": 2, "substeps": 2}
    run_job(preset("forecast", **small, loss=name, loss_options=usable(name), **served), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["loss_fn"] == name
    assert (config["loss_fn_config"] or {}) == usable(name)
    assert config["num_substeps"] == 2
