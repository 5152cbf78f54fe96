"""Correct settings of TRL are never called wrong; what cannot be judged is refused in a line."""

import math
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `trl`")

from transformers import TrainingArguments
from trl.trainer.grpo_config import GRPOConfig

from tokengym.agents.probe import trl_settings
from tokengym.agents.probe.campaign import ALL_WORLDS, REFERENCE, run_campaign
from tokengym.agents.probe.trl_loss import LOSSES
from tokengym.agents.probe.trl_settings import batch_sizes, read_settings
from tokengym.agents.probe.trl_trainers import open_trainer
from tokengym.agents.probe.verdict import ProbeVerdict, VerdictKind
from tokengym.envs.core.errors import OptionError

pytestmark = [pytest.mark.usefixtures("eight_worlds"), pytest.mark.filterwarnings("ignore")]
RIGHT = {VerdictKind.FOLLOWS, VerdictKind.CHOICE}
GSPO = {"loss_type": "grpo", "importance_sampling_level": "sequence"}
SAPO, VESPO = {"loss_type": "sapo"}, {"loss_type": "vespo"}
SYNCED = {"beta": 0.1, "sync_ref_model": True}
VALUES: dict[str, tuple[Mapping[str, Any], tuple[Any, ...]]] = {
    "loss_type": ({}, LOSSES),
    "scale_rewards": ({}, ("group", "batch", "none", True, False)),
    "importance_sampling_level": ({}, ("token", "sequence")),
    "multi_objective_aggregation": ({}, ("sum_then_normalize", "normalize_then_sum")),
    "optim": ({}, ("adamw_torch", "adamw_torch_fused")),
    "mask_truncated_completions": ({}, (True, False)),
    "use_bias_correction_kl": ({}, (True, False)),
    "sync_ref_model": ({"beta": 0.1, "ref_model_sync_steps": 1}, (True, False)),
    "temperature": ({}, (0.5, 0.7, 1.5)),
    "epsilon": ({}, (0.0, 0.01, 0.3)),
    "epsilon_high": ({}, (0.0, 0.28, 5.0)),
    "delta": ({}, (1.001, 1.5, 4.0)),
    "beta": ({}, (0.001, 0.04, 1.0)),
    "sapo_temperature_neg": (SAPO, (0.5, 1.05, 3.0)),
    "sapo_temperature_pos": (SAPO, (0.5, 1.0, 3.0)),
    "vespo_k_pos": (VESPO, (0.0, 2.0, 5.0)),
    "vespo_lambda_pos": (VESPO, (0.0, 1.0, 5.0)),
    "vespo_k_neg": (VESPO, (0.0, 2.0, 5.0)),
    "vespo_lambda_neg": (VESPO, (0.0, 1.0, 5.0)),
    "top_entropy_quantile": ({}, (0.0, 0.2, 0.8)),
    "entropy_coef": ({}, (-0.01, 0.001, 0.1)),
    "off_policy_mask_threshold": ({}, (-0.01, 0.0, 0.01)),
    "ref_model_mixup_alpha": (SYNCED | {"ref_model_sync_steps": 1}, (0.1, 0.6, 1.0)),
    "ref_model_sync_steps": (SYNCED, (1, 2, 512)),
    "num_iterations": ({}, (1, 2, 3)),
    "num_generations": ({}, (2, 4, 8)),
    "max_completion_length": ({"loss_type": "dr_grpo"}, (8, 16, 2048)),
    "generation_batch_size": ({}, (8, 16, 32)),
    "per_device_train_batch_size": ({}, (1, 4, 16)),
    "gradient_accumulation_steps": ({}, (1, 2, 8)),
    "steps_per_generation": ({}, (1, 2, 4)),
}
"""By setting the others that give it an effect, and values: all of them, or three numbers."""
REPLACED = {
    *("shuffle_dataset", "ds3_gather_for_generation", "chat_template_kwargs", "model_init_kwargs"),
    *("trust_remote_code", "generation_kwargs", "top_p", "top_k", "min_p", "repetition_penalty"),
    *("cache_implementation", "num_generations_eval", "reward_weights"),
    *("log_completions", "log_multimodal", "num_completions_to_print", "log_unique_prompts"),
    *("log_completions_hub_repo", "max_tool_calling_iterations", "use_adaptive_entropy"),
    *("entropy_coef_min", "entropy_coef_max", "entropy_coef_delta", "entropy_target"),
    *("use_transformers_continuous_batching", "transformers_continuous_batching_config"),
    "use_transformers_paged",
}
"""Fields of TRL 1.16 that the probe does not hand on: none changes the loss of given rollouts."""
PUBLIC: list[Mapping[str, Any]] = [
    # huggingface/open-r1, recipes/Qwen2.5-1.5B-Instruct/grpo/config_demo.yaml, without what
    # TRL 1.16 has no longer; rollouts a device times its seven processes.
    {
        **{"model_name_or_path": "Qwen/Qwen2.5-1.5B-Instruct", "bf16": True, "use_vllm": True},
        **{"vllm_gpu_memory_utilization": 0.7, "do_eval": True, "eval_strategy": "steps"},
        **{"gradient_accumulation_steps": 16, "gradient_checkpointing": True},
        **{"gradient_checkpointing_kwargs": {"use_reentrant": False}, "learning_rate": 2.0e-05},
        **{"lr_scheduler_type": "cosine", "max_completion_length": 1024, "num_generations": 7},
        **{"per_device_train_batch_size": 112, "seed": 42, "warmup_ratio": 0.1},
    },
    # xuanduy04/trl_tool, scripts/grpo_tool.sh.
    {
        **{"learning_rate": 1e-5, "dtype": "bfloat16", "max_completion_length": 800},
        **{"log_completions": True, "per_device_train_batch_size": 8, "num_generations": 8},
        **{"importance_sampling_level": "token", "epsilon": 3e-4, "epsilon_high": 4e-4},
        **{"beta": 0.0, "loss_type": "grpo", "gradient_accumulation_steps": 2},
        **{"steps_per_generation": 8, "report_to": "none"},
    },
]
WRITTEN: list[Mapping[str, Any]] = [
    {"beta": 0.04},
    {"temperature": 0.7, "beta": 0.04},
    {"gradient_accumulation_steps": 4},
    {"steps_per_generation": 2},
    {"steps_per_generation": 4, "gradient_accumulation_steps": 2, "loss_type": "dapo"},
    {"num_generations": 8},
    {"num_generations": 16, "per_device_train_batch_size": 16, "gradient_accumulation_steps": 4},
    {"loss_type": "luspo", "importance_sampling_level": "sequence"},
    {"loss_type": "luspo", "beta": 0.04},
    {"loss_type": "cispo", "epsilon_high": 5.0, "num_iterations": 2},
    {"loss_type": "dapo", "epsilon_high": 0.28, "mask_truncated_completions": True},
    {**GSPO, "epsilon": 3e-4, "epsilon_high": 4e-4, "steps_per_generation": 4},
    {**GSPO, "beta": 0.04},
    {**GSPO, "beta": 0.04, "use_bias_correction_kl": False, "loss_type": "dapo"},
    {**SAPO, "importance_sampling_level": "sequence", "num_iterations": 2},
    {"loss_type": "bnpo", "beta": 0.1, "entropy_coef": 0.01},
    {"top_entropy_quantile": 0.2, "mask_truncated_completions": True, "loss_type": "bnpo"},
    {"use_peft": True, "lora_r": 8, "lora_alpha": 16, "learning_rate": 1e-5},
    {"use_peft": True, "lora_r": 4, "lora_target_modules": ["q_proj", "v_proj"], "beta": 0.04},
    {
        "weight_decay": 0.1,
        "adam_beta1": 0.5,
        "adam_beta2": 0.99,
        "max_grad_norm": 0.1,
        "pad_to_multiple_of": 8,
    },
    *PUBLIC,
]


def judged(settings: Mapping[str, Any], folder: Path, cases: set[str]) -> list[ProbeVerdict]:
    with open_trainer("trl", folder, settings) as trainer:
        some = replace(trainer, runs=[run for run in trainer.runs if run[1] in cases])
        return [result.verdict for result in run_campaign(some, "tokengym probe trl")]


def test_every_field_of_grpo_is_judged_handed_on_or_replaced() -> None:
    own = {one.name for one in fields(GRPOConfig)} - {one.name for one in fields(TrainingArguments)}
    replaced = own - trl_settings.JUDGED - trl_settings.PLAIN
    assert {one for one in replaced if not one.startswith(("vllm_", "use_vllm"))} == REPLACED
    assert not trl_settings.JUDGED & trl_settings.PLAIN
    assert set(VALUES) == trl_settings.JUDGED


@pytest.mark.nightly
@pytest.mark.parametrize("name", VALUES)
def test_documented_values_are_never_wrong(name: str, tmp_path: Path) -> None:
    base, values = VALUES[name]
    cases = {REFERENCE, "second update"} if name != "beta" else {"second update"}
    for value in values:
        for verdict in judged({**base, name: value}, tmp_path, cases):
            assert verdict.kind in RIGHT, f"{name}={value}: {verdict}"


@pytest.mark.nightly
@pytest.mark.parametrize("settings", WRITTEN, ids=lambda one: ",".join(map(str, one))[:60])
def test_settings_as_people_write_them_are_never_wrong(
    settings: Mapping[str, Any], tmp_path: Path
) -> None:
    found = judged(settings, tmp_path, {ALL_WORLDS, "second update", REFERENCE, "own sampling"})
    assert found
    for verdict in found:
        assert verdict.kind in RIGHT, verdict
        assert verdict.off < 1e-3


@pytest.mark.nightly
def test_choices_name_the_option_and_the_formula(tmp_path: Path) -> None:
    for settings, names, said in (
        ({"loss_type": "grpo"}, ("standardised", "length"), "mean over its tokens, as scale_rew"),
        ({"loss_type": "bnpo", "scale_rewards": "none"}, ("micro-batches",), "of each micro-batch"),
        (
            {"top_entropy_quantile": 0.2, "scale_rewards": "none"},
            ("entropy quantile",),
            "only the share 0.2 of tokens with the highest entropy, as top_entropy_quantile",
        ),
        ({"mask_truncated_completions": True}, ("standardised", "cut replies"), "cut replies left"),
    ):
        (verdict,) = judged(settings, tmp_path, {ALL_WORLDS})
        assert (verdict.kind, verdict.biases) == (VerdictKind.CHOICE, names)
        assert said in verdict.sentence


def test_what_stands_in_for_settings_is_told(tmp_path: Path) -> None:
    settings = {"top_p": 0.9, "bf16": True, "use_vllm": True, "beta": 0.1, "num_generations": 8}
    more = {"per_device_train_batch_size": 64, "gradient_accumulation_steps": 4}
    with open_trainer("trl", tmp_path, {**settings, **more}) as trainer:
        told = "replaced here: bf16, per_device_train_batch_size, top_p, use_vllm"
        assert trainer.title.endswith(f"GRPOTrainer; {told}")
        assert [case for _, case in trainer.runs] == [ALL_WORLDS, "second update", "own sampling"]


@pytest.mark.nightly
def test_nothing_is_trained_where_all_replies_are_cut(tmp_path: Path) -> None:
    settings = {"mask_truncated_completions": True, "scale_rewards": "none"}
    (verdict,) = judged(settings, tmp_path, {"own sampling"})
    assert verdict.kind is VerdictKind.CHOICE
    assert verdict.biases == ("cut replies",)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"speed": 1}, "--set takes settings of GRPOConfig, it has no 'speed'"),
        ({"loss_type": "reinforce"}, "loss_type must be one of"),
        ({"scale_rewards": "std"}, "scale_rewards must be one of"),
        ({"temperature": math.inf}, "temperature is judged from 0.1 to 10, got inf"),
        ({"temperature": 0}, "temperature is judged from 0.1 to 10, got 0"),
        ({"beta": math.nan}, "beta is judged from"),
        ({"epsilon": "small"}, "epsilon is judged from 0 to 1000, got 'small'"),
        ({"num_generations": 1}, "num_generations must be a whole number from 2, got 1"),
        ({"num_iterations": 1.5}, "num_iterations must be a whole number from 1, got 1.5"),
        ({"use_adaptive_entropy": True}, "use_adaptive_entropy cannot be judged: the coeff"),
        ({"optim": "sgd"}, "optim must be one of"),
        ({"neftune_noise_alpha": 5}, "neftune_noise_alpha cannot be judged: it adds noise"),
        (
            {"entropy_coef": 0.1, "top_entropy_quantile": 0.5},
            "entropy_coef cannot be judged with a top",
        ),
    ],
)
def test_a_setting_that_cannot_be_judged_is_refused(
    settings: Mapping[str, Any], reason: str
) -> None:
    with pytest.raises(OptionError, match=re.escape(reason)):
        read_settings(settings)


@pytest.mark.parametrize(
    ("given", "group", "most", "sizes"),
    [
        ({}, 4, 14, (8, 7, 7)),
        ({}, 2, 4, (4, 2, 2)),
        ({"gradient_accumulation_steps": 4}, 4, 14, (14, 4, 4)),
        ({"steps_per_generation": 2}, 4, 4, (8, 1, 2)),
        ({"gradient_accumulation_steps": 3}, 4, 14, (16, 3, 3)),
        ({"per_device_train_batch_size": 3}, 4, 14, (3, 16, 16)),
        ({"per_device_train_batch_size": 64}, 8, 14, (64, 1, 1)),
        ({"generation_batch_size": 32}, 4, 14, (32, 1, 1)),
        ({"generation_batch_size": 32, "per_device_train_batch_size": 4}, 4, 14, (4, 1, 8)),
        (
            {"per_device_train_batch_size": 112, "gradient_accumulation_steps": 16},
            7,
            14,
            (7, 16, 16),
        ),
        (
            {"num_iterations": 2, "steps_per_generation": 4, "gradient_accumulation_steps": 8},
            *(4, 4, (4, 8, 4)),
        ),
    ],
)
def test_batches_have_the_sizes_asked_for_or_whole_groups(
    given: Mapping[str, int], group: int, most: int, sizes: tuple[int, ...]
) -> None:
    assert tuple(batch_sizes(given, group, most).values()) == sizes


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 1},
            "a generation must have whole groups of 8 and at most 128 rollouts, got 4",
        ),
        (
            {"steps_per_generation": 3, "gradient_accumulation_steps": 2},
            "must divide the 3 backward passes of a generation, got 2",
        ),
        ({"steps_per_generation": 256}, "at most 128 rollouts, got 256"),
    ],
)
def test_batches_that_cannot_be_judged_are_refused(given: Mapping[str, int], reason: str) -> None:
    with pytest.raises(OptionError, match=re.escape(reason)):
        batch_sizes(given, 8, 14)
