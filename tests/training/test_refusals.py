"""What cannot be is refused before there is a run folder or a service."""

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tokengym.agents.cli import app
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.agents.training.config import DpoConfig, JobConfig, SftConfig
from tokengym.agents.training.connection import Connection, ServiceRefusedError, ServiceTarget
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.presets import preset, preset_for
from tokengym.envs.core.errors import TokengymError

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("train forecast --level nosuch", "has the levels"),
        ("train forecast --option label=x", "label must be"),
        ("train forecast --data nowhere.jsonl", "nowhere.jsonl"),
        ("train forecast --rank 5000", "--rank must be at least 1 and at most 1024, got 5000"),
        ("train forecast --max-tokens 100000", "below the model's context of"),
        ("train forecast --renderer nosuch", "nosuch"),
        ("train forecast --opponent forecaster=null", "forecaster is trained"),
        ("train disruption --opponent challenger=tinker://x", "a path like tinker://"),
        *(
            pytest.param(*pair, marks=pytest.mark.nightly)
            for pair in (
                ("train disruption --opponent predictor=null", "predictor is trained"),
                ("train disruption --opponent challenger=unsaved", "has saved no weights yet"),
                ("train disruption --credit exact", "--credit exact is not known here"),
            )
        ),
        ("train disruption --start unsaved", "has saved no weights yet"),
        ("train energy --level commit --credit exact", "--credit exact is not known here"),
        ("dpo forecast --preferences nowhere", "holds no run"),
        ("dpo forecast --preferences unsaved", "kept 0 training rollouts of the forecaster"),
        (
            "train forecast --precision bfloat16 --model x --base-url http://y",
            "--precision bfloat16 is for a local service",
        ),
        (
            "train forecast --memory 8 --model x --base-url http://y",
            "--memory 8.0 is for a local service",
        ),
        (
            "train forecast --model tokengym-start --base-url http://y",
            "http://y knows a model by its own name, such as",
        ),
        (
            "train forecast --model ./none --base-url http://y",
            "'./none' is no directory, and no name of the Hugging Face hub",
        ),
    ],
)
def test_what_cannot_be_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    RunFolder(tmp_path / "unsaved").write_config(preset("disruption"))
    ended = CliRunner().invoke(app, [*typed.split(), "--run", "run", "--yes"])
    assert isinstance(ended.exception, TokengymError)
    assert said in str(ended.exception)
    assert not Path("run").exists()


@pytest.mark.parametrize(
    "typed",
    [
        "train forecast --stpes 5",
        "train forecast --precision half",
        "train forecast --lr-schedule steep",
        "train forecast --teacher unsaved",
        "sft forecast --estimator leave_one_out",
        "dpo forecast --kl 1",
        "dpo disruption --self-play",
    ],
)
def test_a_command_takes_its_own_options_alone(typed: str) -> None:
    ended = CliRunner().invoke(app, typed.split())
    assert ended.exit_code == 2
    assert typed.split()[2] in ended.output


@pytest.mark.parametrize("kind", [SftConfig, DpoConfig])
def test_python_has_no_settings_the_command_lacks(kind: type[JobConfig]) -> None:
    with pytest.raises(TypeError, match=f"{kind.__name__}.* unexpected .* 'estimator'"):
        preset_for(kind, "forecast", estimator="leave_one_out")


def test_what_a_command_learns_from_must_be_named() -> None:
    with pytest.raises(TypeError, match=r"missing .* 'preferences'"):
        preset_for(DpoConfig, "forecast")
    ended = CliRunner().invoke(app, ["dpo", "forecast"])
    assert ended.exit_code == 2
    assert "--preferences" in ended.output


def test_an_address_where_nothing_listens_is_refused_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # and does not listen, so that nobody else does
        address = f"http://127.0.0.1:{held.getsockname()[1]}"
        target = ServiceTarget(str(MODEL_DIR), address, local=False)
        with (
            pytest.raises(ServiceRefusedError, match=f"no service at {address}: .*refused"),
            Connection.open(target),
        ):
            pass
        assert f"waiting for {address} to answer, 10 s at most" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["http://a:b", "ftp://a", "localhost:8000"])
def test_what_is_no_address_is_refused_at_once(address: str) -> None:
    target = ServiceTarget(str(MODEL_DIR), address, local=False)
    with (
        pytest.raises(ServiceRefusedError, match=f"no service at {address}: "),
        Connection.open(target),
    ):
        pass
