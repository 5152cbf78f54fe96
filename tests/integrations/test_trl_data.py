"""What `tokengym rollouts` writes trains TRL's own trainers, two steps on the starting policy."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

# Collecting does not import it: that takes seconds, and every worker collects.
if find_spec("trl") is None:
    pytest.skip("needs the extra `trl`", allow_module_level=True)

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

from tokengym.agents.cli import app
from tokengym.agents.toy_model import MODEL_DIR

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def rollouts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with eight groups of four rollouts each."""
    folder = tmp_path_factory.mktemp("trl") / "rollouts"
    play = f"evaluate forecast --policy noisy --tasks 8 --rollouts 4 --out {folder}"
    done = CliRunner().invoke(app, play.split())
    assert done.exit_code == 0, done.output
    return folder


def rows(rollouts: Path, form: str) -> Any:
    """Write rows of a form as the command does, and load them as its reader would."""
    from datasets import load_dataset

    out = rollouts / f"{form}.jsonl"
    words = f"rollouts {rollouts} --as {form} --out {out} --kind evaluation"
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == 0, done.output
    found = load_dataset("json", data_files=str(out), split="train", cache_dir=str(rollouts / "hf"))
    assert len(found) > 0
    return found


@pytest.mark.nightly
@pytest.mark.parametrize(("form", "kind"), [("sft", "SFT"), ("preferences", "DPO")])
def test_two_steps_change_the_policy(rollouts: Path, tmp_path: Path, form: str, kind: str) -> None:
    import trl

    trainer, config = getattr(trl, f"{kind}Trainer"), getattr(trl, f"{kind}Config")
    made = trainer(
        model=AutoModelForCausalLM.from_pretrained(MODEL_DIR, dtype=torch.float32),
        args=config(
            output_dir=str(tmp_path),
            max_steps=2,
            per_device_train_batch_size=4,
            learning_rate=1e-3,
            warmup_steps=0,
            report_to="none",
            use_cpu=True,
            bf16=False,
            logging_steps=1,
            save_strategy="no",
        ),
        train_dataset=rows(rollouts, form),
        processing_class=AutoTokenizer.from_pretrained(MODEL_DIR),
    )
    before = [one.detach().clone() for one in made.model.parameters()]
    made.train()
    losses = [row["loss"] for row in made.state.log_history if "loss" in row]
    assert len(losses) == 2
    assert all(loss > 0 for loss in losses)
    assert any(
        not torch.equal(old, new) for old, new in zip(before, made.model.parameters(), strict=True)
    )
