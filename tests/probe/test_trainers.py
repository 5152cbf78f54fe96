"""Trainers that are run here: TRL's, the cookbook's and our own follow what they say."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tokengym.agents.cli.probe import probe
from tokengym.agents.probe.campaign import ProbedTrainer, run_campaign
from tokengym.agents.probe.tinker_trainers import open_trainer
from tokengym.agents.probe.verdict import VerdictKind
from tokengym.agents.probe.worlds import TEXT, WORLDS
from tokengym.envs.core.errors import OptionError

PLAIN = "centred by group, summed over tokens"
KL = "with a KL penalty to the reference"
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def half_of_the_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out half of the worlds: the commands have all."""
    names = ("spread", "shifted", "tie", "near tie", "two turns", "turn credit", *TEXT)
    worlds = tuple(one for one in WORLDS if one.name in names)
    for module in ("tinker_trainers", "trl_trainers") if find_spec("trl") else ("tinker_trainers",):
        monkeypatch.setattr(f"tokengym.agents.probe.{module}.WORLDS", worlds)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProbedTrainer]:
    with open_trainer("own", tmp_path_factory.mktemp("own"), {}) as trainer:
        yield trainer


@pytest.mark.nightly
def test_every_estimator_and_credit_keeps_its_word(own: ProbedTrainer) -> None:
    found = {(one.column, one.case): one for one in run_campaign(own, "tokengym probe own")}
    names = {key: (one.verdict.kind, one.verdict.name) for key, one in found.items()}
    turn = "centred by group and turn, summed over tokens"
    batch = "centred by group, then over the tokens of the batch (REINFORCE++), ties at 0"
    assert names == {
        ("default", "reference"): (VerdictKind.FOLLOWS, KL),
        ("default", "all groups"): (VerdictKind.FOLLOWS, PLAIN),
        ("leave_one_out", "all groups"): (VerdictKind.FOLLOWS, PLAIN),
        ("group_standardised", "all groups"): (
            VerdictKind.CHOICE,
            "standardised by group (ddof 1, eps 0), summed over tokens",
        ),
        ("reinforce_plus_plus", "all groups"): (VerdictKind.CHOICE, f"{batch}, summed over tokens"),
        ("by turn", "all groups"): (VerdictKind.FOLLOWS, f"returns to go, {turn}"),
        ("exact credit", "all groups"): (VerdictKind.FOLLOWS, f"returns to go, {turn}"),
        ("ties dropped", "all groups"): (VerdictKind.FOLLOWS, PLAIN),
    }
    plain, standard = (
        dict(found[name, "all groups"].weights) for name in ("default", "group_standardised")
    )
    assert {plain.pop("tie"), plain.pop("near tie")} == {"0", "-"}
    assert set(plain.values()) == {"1"}
    # Divided by the deviation, three times as far apart is no farther.
    assert (standard["shifted"], standard["tie"]) == ("0.33", "0")


@pytest.mark.nightly
def test_the_cookbook_s_loop_follows(tmp_path: Path) -> None:
    with open_trainer("cookbook", tmp_path, {}) as trainer:
        found = list(run_campaign(trainer, "tokengym probe cookbook"))
    assert [(one.verdict.kind, one.verdict.name) for one in found] == [
        (VerdictKind.FOLLOWS, KL),
        (VerdictKind.FOLLOWS, PLAIN),
    ]
    assert all(one.verdict.off < 1e-3 for one in found[1:])


@pytest.mark.nightly
@pytest.mark.skipif(find_spec("trl") is None, reason="needs the extra `trl`")
def test_trl_follows_its_settings_and_its_table_is_printed() -> None:
    accepted = ["--accept", "biased by choice: standardised"]
    ended = CliRunner().invoke(probe, ["trl", *accepted])
    assert ended.exit_code == 0, ended.output
    title, *lines = ended.output.splitlines()
    assert title.startswith("TRL 1.")
    said = dict(line.split(": ", 1) for line in lines[:8])
    assert list(said) == [
        f"{column}, {case}"
        for column in ("default", "unbiased")
        for case in ("all groups", "second update", "reference", "own sampling")
    ]
    assert all(said[name].startswith("follows") for name in said if name.startswith("unbiased"))
    standard = "biased by choice: standardised: standardised by group (ddof 1, eps 0.0001)"
    assert said["default, all groups"].startswith(f"{standard}, summed over tokens, as scale_re")
    assert "| shifted | 0.33 | 1 |" in ended.output
    ended = CliRunner().invoke(probe, ["trl", "--set", "loss_type=grpo", *accepted])
    assert ended.exit_code == 3, ended.output
    assert "yours, all groups: biased by choice: standardised, length: " in ended.output


@pytest.mark.parametrize("name", ["cookbook", "own"])
def test_a_setting_that_a_trainer_has_not_is_refused(name: str, tmp_path: Path) -> None:
    with (
        pytest.raises(OptionError, match=r"--set takes settings of .*, it has no 'speed'"),
        open_trainer(name, tmp_path, {"speed": 1}),
    ):
        pass
