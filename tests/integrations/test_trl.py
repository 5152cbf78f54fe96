"""Worlds in TRL: the same tokens and rewards, and two GRPO steps on the starting policy."""

from __future__ import annotations

import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

# Collecting does not import it: that takes seconds, and every worker collects.
if find_spec("trl") is None:
    pytest.skip("needs the extra `trl`", allow_module_level=True)

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.integrations.reference import SPLITS, WORLDS, paid_by, play_own
from tokengym.agents.adapters.trl import (
    WorldRollouts,
    WorldTools,
    environment_factory,
    return_reward,
    task_rows,
)
from tokengym.agents.tinker.codec import RendererCodec
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.envs import OptionError, Rollouts

if TYPE_CHECKING:
    from trl import GRPOConfig

pytestmark = pytest.mark.filterwarnings("ignore")
CODEC = RendererCodec("qwen3_instruct", str(MODEL_DIR))


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(MODEL_DIR, padding_side="left")


def settings(folder: Path, **given: Any) -> GRPOConfig:
    usual: dict[str, Any] = {
        "output_dir": str(folder),
        "max_steps": 2,
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "learning_rate": 1e-4,
        "logging_steps": 1,
        "use_cpu": True,
        "report_to": "none",
        "save_strategy": "no",
        "max_completion_length": 512,
    }
    from trl import GRPOConfig

    return GRPOConfig(**{**usual, **given})


def trainer_of(**given: Any) -> Any:
    """Make a trainer of the starting policy."""
    from trl import GRPOTrainer

    model = AutoModelForCausalLM.from_pretrained(MODEL_DIR, dtype=torch.float32)
    return GRPOTrainer(model=model, **given)


@pytest.mark.nightly
@pytest.mark.parametrize("world", WORLDS)
def test_two_steps_of_grpo_train_on_the_tokens_as_sampled(
    world: str, tmp_path: Path, tokenizer: Any
) -> None:
    rollouts = Rollouts(world, codec=CODEC, prompt="terse", token_budget=1500)
    play, batches = WorldRollouts(rollouts, max_reply_tokens=12), []

    def recorded(prompts: Any, trainer: Any) -> dict[str, list[Any]]:
        batches.append((prompts, play(prompts, trainer)))
        return batches[-1][1]

    trainer = trainer_of(
        reward_funcs=return_reward,
        args=settings(tmp_path),
        train_dataset=task_rows(rollouts, "train", 4),
        processing_class=tokenizer,
        rollout_func=recorded,
    )
    before = [p.detach().clone() for p in trainer.model.parameters()]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        trainer.train()
    assert len(proper_score_warnings(seen)) == (rollouts.world.spec.calibration is not None)
    assert trainer.state.global_step == 2
    assert len(batches) == 2
    for prompts, batch in batches:
        # groups on one Task
        assert all(len(set(prompts[at : at + 4])) == 1 for at in (0, 4))
        for row, name in enumerate(prompts):
            completion, own = batch["completion_ids"][row], batch["env_mask"][row]
            assert len(completion) == len(own) == len(batch["logprobs"][row])
            index = int(name.partition("/")[2])
            again = rollouts.start(rollouts.world.task("train", index))
            assert batch["prompt_ids"][row] == again.tokens
            # the same episode through our own Env: token for token and reward for reward
            for reply in replies(completion, own):
                stopped = reply[-1] in CODEC.stop
                again.act(reply, "stop" if stopped else "length")
            assert again.done
            assert batch["prompt_ids"][row] + completion == again.tokens
            assert batch["tokengym_return"][row] == again.total
    logs = [row for row in trainer.state.log_history if "frac_reward_zero_std" in row]
    dead = [row["frac_reward_zero_std"] for row in logs]
    for (_, batch), share in zip(batches, dead, strict=True):
        groups = [batch["tokengym_return"][at : at + 4] for at in (0, 4)]
        assert share == sum(len(set(group)) == 1 for group in groups) / 2
    changed = any(
        not torch.equal(old, new)
        for old, new in zip(before, trainer.model.parameters(), strict=True)
    )
    assert changed == any(share < 1 for share in dead)


def replies(completion: list[int], own: list[int]) -> list[list[int]]:
    """Return the tokens of each reply: a mask says whose they are, an end where one ends."""
    found: list[list[int]] = []
    before = 0
    for token, mine in zip(completion, own, strict=True):
        if mine and not before:
            found.append([])
        if mine:
            found[-1].append(token)
        before = mine
    return found


@pytest.mark.nightly
def test_the_log_probabilities_are_those_of_the_model(tmp_path: Path, tokenizer: Any) -> None:
    rollouts = Rollouts("energy", codec=CODEC, prompt="terse", token_budget=700)
    trainer = trainer_of(
        reward_funcs=return_reward,
        args=settings(tmp_path, temperature=0.8),
        train_dataset=task_rows(rollouts, "train", 4),
        processing_class=tokenizer,
        rollout_func=WorldRollouts(rollouts, max_reply_tokens=16),
    )
    batch = trainer.rollout_func(["train/0", "train/1"], trainer)
    for row in range(2):
        prompt, completion = batch["prompt_ids"][row], batch["completion_ids"][row]
        with torch.no_grad():
            logits = trainer.model(torch.tensor([prompt + completion])).logits[0].float() / 0.8
        exact = logits.log_softmax(-1)[len(prompt) - 1 : -1]
        for at, (token, mine) in enumerate(zip(completion, batch["env_mask"][row], strict=True)):
            wanted = float(exact[at, token]) if mine else 0.0
            assert batch["logprobs"][row][at] == pytest.approx(wanted, abs=1e-3)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("world", WORLDS)
def test_the_tools_of_an_environment_play_the_same_episode(world: str, split: str) -> None:
    own = play_own(world, split=split, index=4, **paid_by(world, split))
    tools: Any = environment_factory(Rollouts(world))()
    assert tools.reset(split=split, index=4, prompt="ignored") == own.texts[0]
    for reply, text in zip(own.replies, own.texts[1:], strict=True):
        assert tools.reply(reply) == (text or "The episode is over.")
    assert tools.get_reward() == sum(own.rewards)
    assert tools.reply("more") == "The episode is over."


@pytest.mark.nightly
def test_two_steps_with_an_environment_factory(tmp_path: Path, tokenizer: Any) -> None:
    import trl.chat_template_utils as templates

    rollouts = Rollouts("forecast", prompt="terse")
    tokenizer.chat_template = (
        Path(templates.__file__).parent / "chat_templates" / "qwen3.jinja"
    ).read_text()
    rows = task_rows(rollouts, "train", 4)
    rows = rows.map(lambda row: {"prompt": [{"role": "user", "content": "Reply with the tool.\n"}]})
    trainer = trainer_of(
        args=settings(tmp_path, max_completion_length=32),
        train_dataset=rows,
        processing_class=tokenizer,
        environment_factory=environment_factory(rollouts),
    )
    trainer.train()
    assert trainer.state.global_step == 2
    (name,) = [
        key for key in trainer.state.log_history[0] if WorldTools.__name__ in key and "mean" in key
    ]
    assert 0.0 <= trainer.state.log_history[0][name] <= 1.0
    assert all("frac_reward_zero_std" in row for row in trainer.state.log_history[:2])


def proper_score_warnings(seen: list[warnings.WarningMessage]) -> list[str]:
    return [str(one.message) for one in seen if "proper score" in str(one.message)]


@pytest.mark.parametrize(
    ("world", "scaling", "count"),
    [
        ("forecast", {}, 1),
        ("disruption", {"scale_rewards": True}, 1),
        ("forecast", {"multi_objective_aggregation": "normalize_then_sum"}, 1),
        ("forecast", {"scale_rewards": "none"}, 0),
        ("forecast", {"scale_rewards": False}, 0),
        ("forecast", {"scale_rewards": "batch"}, 0),
        ("energy", {}, 0),
    ],
    ids=str,
)
def test_standardising_a_proper_score_warns_once(
    world: str, scaling: dict[str, Any], count: int, tmp_path: Path
) -> None:
    trainer = SimpleNamespace(args=settings(tmp_path, **scaling))
    for name in ("scale_rewards", "multi_objective_aggregation"):
        setattr(trainer, name, getattr(trainer.args, name))
    play = WorldRollouts(Rollouts(world, codec=CODEC, prompt="terse"), max_reply_tokens=8)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            play([], trainer)
    assert len(proper_score_warnings(seen)) == count


@pytest.mark.parametrize("codec", [None, "byte"])
def test_a_codec_of_the_model_is_needed(codec: str | None) -> None:
    with pytest.raises(OptionError, match="codec"):
        WorldRollouts(Rollouts("forecast", codec=codec), max_reply_tokens=8)


@pytest.mark.nightly
def test_the_example_trains_and_draws_its_picture(tmp_path: Path) -> None:
    sizes = ("--steps", "2", "--groups", "2", "--group-size", "4", "--evaluation-tasks", "4")
    command = [sys.executable, "examples/trl_grpo.py", *sizes, "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "on 4 held-out Tasks" in done.stdout
    assert (tmp_path / "model.safetensors").is_file()
    assert (tmp_path / "learned.png").stat().st_size > 5000
