"""A training run of SkyRL as far as it goes without a GPU: its settings, its rows, its worlds."""

from pathlib import Path

import pytest

pytest.importorskip("skyrl.train.config", reason="needs skyrl, and Python 3.12")

import skyrl_gym
from omegaconf import OmegaConf
from skyrl.train.config import SkyRLTrainConfig
from skyrl.train.dataset import PromptDataset
from transformers import AutoTokenizer

from tests.docs.pages import ROOT
from tokengym.agents.adapters.rows import task_rows
from tokengym.agents.adapters.skyrl import WorldTextEnv
from tokengym.agents.rollouts.json_lines import write_rows
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.envs import make_world


def test_a_training_run_loads_the_settings_and_the_rows(tmp_path: Path) -> None:
    example = OmegaConf.load(ROOT / "examples" / "skyrl" / "energy.yaml")
    settings = SkyRLTrainConfig.from_dict_config(example)
    world = make_world("energy:small")
    assert settings.generator.max_turns >= world.turn_limit
    rows = tmp_path / "train.jsonl"
    write_rows(task_rows("energy:small", "train", 3), rows)
    tokenizer = AutoTokenizer.from_pretrained(MODEL_DIR)
    data = PromptDataset(str(rows), tokenizer, settings.trainer.max_prompt_length, num_workers=1)
    assert len(data) == 3
    messages, env_class, extras, _ = data[1]
    assert env_class == settings.environment.env_class
    skyrl_gym.register(env_class, WorldTextEnv, {"rollouts": "energy:small"})
    shown, info = skyrl_gym.make(env_class, env_config=None, extras=extras).init(messages)
    assert shown == messages
    assert info["task_id"] == world.task("train", 1).fingerprint
