"""What cannot be is refused before there is a run folder or a service."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tokengym.agents.cli import app
from tokengym.agents.training.presets import preset
from tokengym.agents.training.run import Run
from tokengym.envs.core.errors import TokengymError

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("forecast --level nosuch", "has the levels"),
        ("forecast --option label=x", "label must be"),
        ("forecast --data nowhere.jsonl", "nowhere.jsonl"),
        ("forecast --temperature -1", "temperature must be at least 0, got -1"),
        ("forecast --temperature nan", "temperature must be a finite number"),
        ("forecast --learning-rate inf", "learning_rate must be a finite number"),
        ("forecast --bar nan", "bar must be a finite number"),
        ("forecast --seed -1", "seed must be at least 0"),
        ("forecast --rank 5000", "lora_rank must be at most 1024"),
        ("forecast --max-tokens 100000", "below the model's context of"),
        ("forecast --renderer nosuch", "nosuch"),
        ("forecast --opponent forecaster=null", "forecaster is trained"),
        ("disruption --opponent predictor=null", "predictor is trained"),
        ("disruption --opponent challenger=tinker://x", "a path like tinker://"),
        ("disruption --opponent challenger=unsaved", "has saved no weights yet"),
        ("disruption --start unsaved", "has saved no weights yet"),
        ("disruption --credit exact", "credit='exact' is not known here"),
        ("energy --level genset --credit exact", "credit='exact' is not known here"),
        ("forecast --dpo nowhere", "holds no run"),
        ("forecast --dpo unsaved", "kept 0 training rollouts of the forecaster"),
        ("forecast --dpo unsaved --dpo-margin 0", "dpo_margin must be positive, got 0"),
        ("forecast --dpo unsaved --dpo-beta nan", "dpo_beta must be positive, got nan"),
        ("forecast --dpo unsaved --sft", "one of sft, dpo and teacher, got ['sft', 'dpo']"),
        ("forecast --dpo unsaved --kl 1", "dpo has none"),
        ("forecast --teacher nobody", "teacher must be a run folder"),
        ("forecast --teacher unsaved", "has saved no weights yet"),
        ("forecast --teacher unsaved --kl 1", "teacher has none"),
        ("forecast --teacher unsaved --filter drop", "teacher does not learn from rewards"),
        ("disruption --teacher unsaved --self-play", "teacher trains one role"),
        ("forecast --dpo unsaved --curriculum easy", "does not go with dpo"),
        ("disruption --dpo unsaved --self-play", "dpo trains one role"),
        ("forecast --precision half", "precision must be one of"),
        ("forecast --lr-schedule steep", "lr_schedule must be one of"),
        ("forecast --precision bfloat16 --model x --base-url http://y", "is for a local service"),
        ("forecast --memory 8 --model x --base-url http://y", "memory=8.0 is for a local service"),
        ("forecast --memory 0", "memory must be positive"),
        ("forecast --warm-start-updates 2", "warm_start_updates=2 is for a warm start"),
        ("forecast --set nosuch=1", "do not fit the trainer"),
    ],
)
def test_what_cannot_be_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Run(tmp_path / "unsaved").write_config(preset("disruption"))
    ended = CliRunner().invoke(app, ["train", *typed.split(), "--run", "run", "--yes"])
    assert isinstance(ended.exception, TokengymError)
    assert said in str(ended.exception)
    assert not Path("run").exists()
