"""The commands, on files as trainers elsewhere write them."""

import json
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from typer.testing import CliRunner

from tests.probe.plain_trainer import PlainTrainer, Settings
from tokengym.agents.cli.probe import probe
from tokengym.agents.probe.policy import load_model
from tokengym.agents.probe.rollouts import ProbeRollout, read_rollouts, write_rollouts
from tokengym.envs.core.errors import DataError, OptionError


def said(*arguments: object, status: int = 0) -> str:
    """Run a command; an error of its own is raised, as the command line would print it."""
    result = CliRunner().invoke(probe, [str(one) for one in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == status, result.output
    return result.output


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("probe") / "files"
    assert "for one step, in float32" in said("export", folder)
    return folder


@pytest.fixture
def second(tmp_path: Path) -> Path:
    said("export", tmp_path / "second", "--seed", 1)
    return tmp_path / "second"


def trained(folder: Path, settings: Settings, name: str) -> Path:
    """Train the exported model for a step, and save what a trainer would."""
    model = load_model(folder / "model").float()
    trainer = PlainTrainer(model, settings)
    trainer.step(read_rollouts(folder / "rollouts.jsonl"))
    weights = trainer.checkpoint().weights
    if settings.optimizer == "adamw" and name.startswith("kept"):
        torch.save(trainer.optimizer.state_dict(), folder / "optimizer.pt")
    if name.endswith(".pt"):
        torch.save(weights, folder / name)
    else:
        dtype = torch.bfloat16 if "bf16" in name else torch.float32
        save_file({n: w.to(dtype) for n, w in weights.items()}, folder / name)
    return folder / name


def options(folder: Path, after: Path) -> list[object]:
    return [
        *("--before", folder / "model", "--after", after),
        *("--rollouts", folder / "rollouts.jsonl"),
    ]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["right.safetensors", "right.pt"])
def test_a_right_update_elsewhere_follows(exported: Path, name: str) -> None:
    after = trained(exported, Settings(), name)
    output = said("read", *options(exported, after))
    assert output.startswith("follows: centred by group, summed over tokens")


@pytest.mark.nightly
def test_a_fault_of_one_seed_is_suspect(exported: Path, second: Path) -> None:
    late = Settings(fault="mask late")
    one, other = (
        options(folder, trained(folder, late, "late.safetensors")) for folder in (exported, second)
    )
    assert said("read", *one).startswith("suspect: the mask is one token late")
    with pytest.raises(OptionError, match="must be of two seeds"):
        said("read", *one, *one)
    both = said("read", *one, *other, status=1)
    assert both.startswith("wrong: the mask is one token late")
    assert "tokengym probe read --before" in both


@pytest.mark.nightly
def test_what_reproduces_a_verdict_has_every_option_and_is_quoted(exported: Path) -> None:
    named = exported.parent / "a folder"
    shutil.copytree(exported, named)
    late = trained(named, Settings(fault="mask late", temperature=0.9), "late.safetensors")
    asked = ["read", *options(named, late), "--model", named / "model", "--temperature", 0.9]
    (_, _, line) = said(*asked).partition("to confirm it: ")
    again = shlex.split(line.partition(" and the same options")[0])
    assert again == ["tokengym", "probe", *map(str, asked)]


@pytest.mark.nightly
def test_adam_is_read_off_its_moments_or_not_at_all(second: Path) -> None:
    adam = Settings(optimizer="adamw", rate=1e-3)
    output = said("read", *options(second, trained(second, adam, "bare.safetensors")))
    assert output.startswith("cannot say: most weights moved as far as any, as by Adam")
    output = said("read", *options(second, trained(second, adam, "kept.safetensors")))
    assert output.startswith("follows: centred by group, summed over tokens")


@pytest.mark.nightly
def test_bfloat16_is_never_called_wrong(exported: Path) -> None:
    after = trained(exported, Settings(rate=0.01, fault="sign"), "bf16.safetensors")
    output = said("read", *options(exported, after))
    assert re.match(r"cannot say: rounding .*; save float32 checkpoints", output)


def test_logs_alone_tell_the_estimator(tmp_path: Path) -> None:
    rewards = (0.0, 0.5, 1.0, 0.2)
    mean = sum(rewards) / 4
    rows = [
        ProbeRollout((1,), (5, 6), (1, 1), reward, "a", (reward - mean,) * 2) for reward in rewards
    ]
    write_rollouts(tmp_path / "r.jsonl", rows)
    assert said("sent", tmp_path / "r.jsonl").startswith("follows: centred by group")
    zeros = [replace(row, advantages=(0.0, 0.0)) for row in rows]
    write_rollouts(tmp_path / "r.jsonl", zeros)
    assert "all advantages are 0, though rewards differ" in said("sent", tmp_path / "r.jsonl")
    other = [replace(row, advantages=(n**3, n**3)) for n, row in enumerate(rows)]
    write_rollouts(tmp_path / "r.jsonl", other)
    assert said("sent", tmp_path / "r.jsonl").startswith("suspect: no estimator known here")


def test_bad_input_names_the_rule(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="must be a new folder"):
        said("export", exported)
    rows = tmp_path / "r.jsonl"
    rows.write_text('{"prompt_ids": [1], "completion_ids": [2, 3], "mask": [1], "reward": 0}\n')
    with pytest.raises(DataError, match=r"line 1: a rollout needs .* group is missing"):
        said("sent", rows)
    with pytest.raises(DataError, match="holds no weights"):
        said("read", *options(exported, tmp_path))


ROW = {"prompt_ids": [1], "completion_ids": [2, 3], "mask": [1, 0], "reward": 0, "group": "a"}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"mask": None}, "a rollout needs .* mask is missing"),
        ({"mask": [2, 0]}, r"line 1: mask must hold 0 and 1, got \[0, 2\]"),
        ({"mask": [0.5, 0]}, r"mask\.0: "),
        ({"advantages": [float("nan"), 0]}, "advantages must be finite, got nan"),
        ({"logprobs": [-1, None]}, r"logprobs\.1: "),
        ({"prompt_ids": "abc"}, "prompt_ids: "),
        ({"prompt_ids": [-1]}, "token ids must be at least 0, got -1"),
    ],
)
def test_a_damaged_rollout_is_refused_by_line_and_field(
    changed: dict[str, object], reason: str, tmp_path: Path
) -> None:
    rows = tmp_path / "r.jsonl"
    rows.write_text(json.dumps({**ROW, **changed}) + "\n")
    with pytest.raises(DataError, match=reason):
        read_rollouts(rows)


def test_rollouts_are_read_as_trainers_write_them(tmp_path: Path) -> None:
    rows = tmp_path / "r.jsonl"
    named = {**ROW, "mask": [True, 0.0], "group": "größe\u2028", "text": "\u2028", "step": None}
    line = json.dumps(named, ensure_ascii=False) + "\r\n"
    rows.write_bytes(b"\xef\xbb\xbf" + line.encode() * 2)
    (first, second) = read_rollouts(rows)
    assert first == second
    assert (first.mask, first.group) == ((1, 0), "größe\u2028")


def test_tokens_that_the_model_has_not_are_refused(exported: Path) -> None:
    rows = exported.parent / "beyond.jsonl"
    rows.write_text(json.dumps({**ROW, "prompt_ids": [1024]}) + "\n")
    model = exported / "model"
    with pytest.raises(DataError, match="line 1: token ids must be at least 0, below 1024, got"):
        said("read", "--before", model, "--after", model, "--rollouts", rows)
