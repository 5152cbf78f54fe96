"""Trainers that are run here take settings that they have, and biases that are accepted.

docs/probe.md shows what TRL's, the cookbook's and our own follow; its test runs the commands.
"""

from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tokengym.agents.cli.probe import probe
from tokengym.agents.probe.tinker_trainers import open_trainer
from tokengym.envs.core.errors import OptionError

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.nightly
@pytest.mark.skipif(find_spec("trl") is None, reason="needs the extra `trl`")
@pytest.mark.usefixtures("eight_worlds")
def test_a_bias_that_was_not_accepted_ends_with_three() -> None:
    accepted = ["--accept", "biased by choice: standardised"]
    ended = CliRunner().invoke(probe, ["trl", "--set", "loss_type=grpo", *accepted])
    assert ended.exit_code == 3, ended.output
    assert "yours, all groups: biased by choice: standardised, length: " in ended.output
    assert "| rare | 0.19 (off by " in ended.output


@pytest.mark.parametrize("name", ["cookbook", "own"])
def test_a_setting_that_a_trainer_has_not_is_refused(name: str, tmp_path: Path) -> None:
    with (
        pytest.raises(OptionError, match=r"--set takes settings of .*, it has no 'speed'"),
        open_trainer(name, tmp_path, {"speed": 1}),
    ):
        pass
