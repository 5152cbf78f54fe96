"""The commands, on files as trainers elsewhere write them."""

import json
import pickle
import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from typer.testing import CliRunner

from tests.probe import plain_trainer
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
    assert said("read", *one, status=3).startswith("suspect: the mask is one token late")
    with pytest.raises(OptionError, match="must be of two seeds"):
        said("read", *one, *one)
    both = said("read", *one, *other, status=1)
    assert both.startswith("wrong: the mask is one token late")
    assert "tokengym probe read --before" in both
    said("read", *one, *other, "--accept", "wrong: mask late")
    said("read", *one, *other, "--accept", "wrong: sign", status=1)


@pytest.mark.nightly
def test_what_reproduces_a_verdict_has_every_option_and_is_quoted(exported: Path) -> None:
    named = exported.parent / "a folder"
    shutil.copytree(exported, named)
    late = trained(named, Settings(fault="mask late", temperature=0.9), "late.safetensors")
    asked = ["read", *options(named, late), "--model", named / "model", "--temperature", 0.9]
    (_, _, line) = said(*asked, status=3).partition("to confirm it: ")
    again = shlex.split(line.partition(" and the same options")[0])
    assert again == ["tokengym", "probe", *map(str, asked)]


@pytest.mark.nightly
def test_adam_is_read_off_its_moments_or_not_at_all(second: Path) -> None:
    adam = Settings(optimizer="adamw", rate=1e-3)
    bare = trained(second, adam, "bare.safetensors")
    output = said("read", *options(second, bare), status=3)
    assert output.startswith("cannot say: most weights moved as far as any, as by Adam")
    output = said("read", *options(second, trained(second, adam, "kept.safetensors")))
    assert output.startswith("follows: centred by group, summed over tokens")


@pytest.mark.nightly
def test_momentum_is_read_off_its_buffers(second: Path, tmp_path: Path) -> None:
    model, rollouts = load_model(second / "model").float(), second / "rollouts.jsonl"
    trainer = PlainTrainer(model, Settings(optimizer="momentum", rate=0.05))
    for name in ("step-1", "step-2"):
        trainer.step(read_rollouts(rollouts))
        (tmp_path / name).mkdir()
        save_file(trainer.checkpoint().weights, tmp_path / name / "model.safetensors")
        torch.save(trainer.optimizer.state_dict(), tmp_path / name / "optimizer.pt")
    asked = ["--before", tmp_path / "step-1", "--after", tmp_path / "step-2"]
    output = said("read", *asked, "--rollouts", rollouts, "--model", second / "model")
    assert output.startswith("follows: centred by group, summed over tokens")


@pytest.mark.nightly
def test_bfloat16_is_never_called_wrong(exported: Path) -> None:
    after = trained(exported, Settings(rate=0.01, fault="sign"), "bf16.safetensors")
    output = said("read", *options(exported, after), status=3)
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
    output = said("sent", tmp_path / "r.jsonl", status=1)
    assert output.startswith("wrong: all advantages are 0, though rewards differ")
    other = [replace(row, advantages=(n**3, n**3)) for n, row in enumerate(rows)]
    write_rollouts(tmp_path / "r.jsonl", other)
    output = said("sent", tmp_path / "r.jsonl", status=1)
    assert output.startswith("wrong: no estimator known here gives these advantages")
    assert "nearest: " in output


SHORT, LONG = (1, 1), (1, 1, 1, 1)


def logged(change: Callable[[float], float], rewards: Sequence[float]) -> list[ProbeRollout]:
    """Return a group that logs what is made of its centred rewards."""
    mean = sum(rewards) / len(rewards)
    return [
        ProbeRollout((1,), (5, 6), SHORT, reward, "a", (change(reward - mean),) * 2)
        for reward in rewards
    ]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda centred: -centred, "the sign is wrong: rewards are minimised"),
        (lambda centred: max(centred, 0.0), "negative advantages are dropped"),
        (abs, "advantages lose their sign"),
    ],
)
def test_logged_advantages_are_wrong_by_name(
    change: Callable[[float], float], named: str, tmp_path: Path
) -> None:
    write_rollouts(tmp_path / "r.jsonl", logged(change, (0.0, 0.5, 1.0, 0.2)))
    assert said("sent", tmp_path / "r.jsonl", status=1).startswith(f"wrong: {named}")


def test_choices_end_with_three_unless_accepted(tmp_path: Path) -> None:
    rewards = (0.0, 0.5, 1.0, 0.2)
    deviation = float(np.std(rewards, ddof=1))
    write_rollouts(tmp_path / "r.jsonl", logged(lambda centred: centred / deviation, rewards * 2))
    rows = [
        replace(one, group=str(n // 4)) for n, one in enumerate(read_rollouts(tmp_path / "r.jsonl"))
    ]
    rows[4:] = [replace(one, reward=3 * one.reward) for one in rows[4:]]
    write_rollouts(tmp_path / "r.jsonl", rows)
    command = ["sent", tmp_path / "r.jsonl"]
    assert said(*command, status=3).startswith("biased by choice: standardised: ")
    said(*command, "--accept", "biased by choice: length, standardised")
    said(*command, "--accept", "biased by choice: length", status=3)
    for text in ("standardised", "suspect: standardised", "wrong: ", "follows: it"):
        with pytest.raises(OptionError, match="--accept takes 'biased by choice: NAME'"):
            said(*command, "--accept", text)


@pytest.mark.nightly
def test_an_update_by_advantages_that_turned_is_wrong(exported: Path, second: Path) -> None:
    asked: list[object] = []
    for folder in (exported, second):
        after = trained(folder, Settings(fault="sign"), "turned.safetensors")
        rows = read_rollouts(folder / "rollouts.jsonl")
        groups = {row.group: [one.reward for one in rows if one.group == row.group] for row in rows}
        turned = [
            replace(
                row, advantages=(float(np.mean(groups[row.group])) - row.reward,) * len(row.mask)
            )
            for row in rows
        ]
        write_rollouts(folder / "turned.jsonl", turned)
        asked += ["--before", folder / "model", "--after", after]
        asked += ["--rollouts", folder / "turned.jsonl"]
    assert said("read", *asked, status=1).startswith("wrong: the sign is wrong")


@pytest.mark.nightly
def test_an_unknown_estimator_that_is_logged_is_what_is_wrong(exported: Path) -> None:
    after = trained(exported, Settings(fault="shuffled"), "shuffled.safetensors")
    rows = read_rollouts(exported / "rollouts.jsonl")
    values = plain_trainer.advantages_of(rows, Settings(fault="shuffled")).tolist()
    pairs = zip(rows, values, strict=True)
    logs = [replace(row, advantages=(value,) * len(row.mask)) for row, value in pairs]
    write_rollouts(exported / "logged.jsonl", logs)
    command = ["--before", exported / "model", "--after", after]
    output = said("read", *command, "--rollouts", exported / "logged.jsonl", status=3)
    text = "suspect: the logged advantages are trained, which no estimator gives from the rewards"
    assert output.startswith(text)


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
        ({"advantages": [float("nan"), 0]}, r"advantages must lie within 1e\+30 of 0, got nan"),
        ({"logprobs": [-1, None]}, r"logprobs\.1: "),
        ({"logprobs": [-1, 0.2]}, "logprobs must be at most 0, got 0.2"),
        ({"reward": 1e308}, r"reward must lie within 1e\+30 of 0, got 1e\+308"),
        ({"turn_rewards": [float("inf")]}, r"turn_rewards must lie within 1e\+30 of 0, got inf"),
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


def damaged(name: str, weights: dict[str, torch.Tensor], folder: Path) -> Path:
    """Write a checkpoint with a fault, and return what to read."""
    one = next(iter(weights))
    if name == "integers.pt":
        weights[one] = weights[one].long()
    if name == "nan.pt":
        weights[one][0, 0] = float("nan")
    if name == "infinite.safetensors":
        weights[one][0, 0] = float("inf")
    if name == "shape.pt":
        weights[one] = weights[one][1:]
    file = folder / name
    if name.endswith(".safetensors"):
        save_file(weights, file)
    else:
        torch.save(weights, file)
    if name.startswith("truncated"):
        file.write_bytes(file.read_bytes()[:1000])
    if name == "pickled.pt":
        file.write_bytes(pickle.dumps({"weights": Path("x")}))
    return file


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("integers.pt", r"integers\.pt: model.* must hold floating-point numbers, got torch.int64"),
        ("nan.pt", r"nan\.pt: model.* must hold finite numbers"),
        ("infinite.safetensors", r"infinite\.safetensors: model.* must hold finite numbers"),
        ("truncated.pt", r"truncated\.pt must hold weights by name, and cannot be read: "),
        ("truncated.safetensors", r"truncated\.safetensors must hold weights by name, and "),
        ("pickled.pt", r"pickled\.pt must hold weights by name, and cannot be read: "),
        ("shape.pt", r"must keep its shape, got \(1024, 32\) and \(1023, 32\)"),
    ],
)
def test_a_damaged_checkpoint_is_refused_by_name(
    name: str, reason: str, exported: Path, tmp_path: Path
) -> None:
    weights = load_model(exported / "model").state_dict()
    weights = {n: value.clone() for n, value in weights.items() if n != "lm_head.weight"}
    with pytest.raises(DataError, match=reason):
        said("read", *options(exported, damaged(name, weights, tmp_path)))


@pytest.mark.parametrize("damage", [b"junk", pickle.dumps([1]), b""])
def test_a_damaged_optimizer_is_refused_by_name(
    damage: bytes, exported: Path, tmp_path: Path
) -> None:
    after = tmp_path / "after"
    shutil.copytree(exported / "model", after)
    (after / "optimizer.pt").write_bytes(damage)
    with pytest.raises(DataError, match=r"optimizer\.pt must hold the state of an optimizer"):
        said("read", *options(exported, after))


def test_a_damaged_model_is_refused_by_name(exported: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(exported / "model", model)
    (model / "config.json").write_text("{")
    with pytest.raises(DataError, match=r"model must hold a model of transformers, and cannot"):
        said("read", *options(exported, model), "--model", model)


@pytest.mark.parametrize("value", ["inf", "nan", "0", "-1"])
def test_a_temperature_is_a_finite_number(value: str, exported: Path) -> None:
    command = ["read", *options(exported, exported / "model"), "--temperature", value]
    with pytest.raises(OptionError, match="--temperature must be from"):
        said(*command)


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
