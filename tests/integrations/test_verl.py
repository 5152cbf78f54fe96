"""Worlds as agent loops of verl: the same episodes, token for token, without a GPU or a server."""

import asyncio
import runpy
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verl", reason="needs the extra `verl`")

import hydra
import numpy as np
import torch
from datasets import Dataset
from omegaconf import OmegaConf
from transformers import AutoTokenizer
from verl import DataProto
from verl.experimental.agent_loop.agent_loop import DictConfigWrap, ToolListWrap
from verl.trainer.ppo.core_algos import AdvantageEstimator
from verl.trainer.ppo.ray_trainer import compute_advantage
from verl.utils.dataset.rl_dataset import RLHFDataset
from verl.workers.rollout.replica import TokenOutput

from tests.docs.pages import ROOT, blocks
from tests.integrations.reference import WORLDS, play_own, task_of
from tokengym.agents.adapters.rows import task_rows
from tokengym.agents.probe.rollouts import read_rollouts
from tokengym.agents.probe.sent import judge_sent
from tokengym.agents.tinker.codec import codec_named
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.envs import Episode, make_world

CODEC = f"qwen3_instruct@{MODEL_DIR}"
TARGET = "tokengym.agents.adapters.verl.WorldAgentLoop"
LENGTHS = {"prompt_length": 8192, "response_length": 16384}


class Scripted:
    """A server that gives the replies of a scripted episode in order, by request."""

    def __init__(self, replies: list[str]) -> None:
        self.replies = replies
        self.asked: dict[str, list[list[int]]] = {}

    async def generate(
        self, *, request_id: str, prompt_ids: list[int], sampling_params: dict[str, Any]
    ) -> TokenOutput:
        seen = self.asked.setdefault(request_id, [])
        tokens = list(codec_named(CODEC).write(self.replies[len(seen)]))
        seen.append(prompt_ids)
        return TokenOutput(token_ids=tokens, log_probs=[-float(len(seen))] * len(tokens))


def loop_of(loop: Any, server: Scripted, **algorithm: Any) -> Any:
    """Make the agent loop as verl's worker does, from the YAML of its settings."""
    data: dict[str, Any] = {}
    config = OmegaConf.create(
        {"actor_rollout_ref": {"rollout": LENGTHS}, "data": data, "algorithm": algorithm}
    )
    return hydra.utils.instantiate(
        config=loop,
        trainer_config=DictConfigWrap(config=config),
        server_manager=server,
        tokenizer=AutoTokenizer.from_pretrained(MODEL_DIR),
        processor=None,
        hf_model_type="qwen3",
        dataset_cls=RLHFDataset,
        data_config=DictConfigWrap(config.data),
        tools=ToolListWrap([]),
    )


@pytest.mark.parametrize(
    ("world", "algorithm", "count"),
    [
        ("forecast", {"adv_estimator": "grpo", "norm_adv_by_std_in_grpo": True}, 1),
        ("forecast", {"adv_estimator": "grpo", "norm_adv_by_std_in_grpo": False}, 0),
        ("forecast", {"adv_estimator": "rloo", "norm_adv_by_std_in_grpo": True}, 0),
        ("energy", {"adv_estimator": "grpo", "norm_adv_by_std_in_grpo": True}, 0),
    ],
    ids=str,
)
def test_standardising_a_proper_score_warns_once(
    world: str, algorithm: dict[str, Any], count: int
) -> None:
    settings = {"_target_": TARGET, "rollouts": {"world": world, "prompt": "terse"}, "codec": CODEC}

    async def loops() -> None:
        for _ in range(3):
            loop_of(settings, Scripted([]), **algorithm)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        asyncio.run(loops())
    assert sum("proper score" in str(one.message) for one in seen) == count


@pytest.mark.parametrize("world", WORLDS)
def test_an_agent_loop_is_the_same_episode_token_for_token(world: str) -> None:
    own = play_own(world, index=1)
    server = Scripted(own.replies)
    where = {"split": "test", "index": 1}

    async def group() -> list[Any]:
        settings = {"_target_": TARGET, "rollouts": world, "codec": CODEC}
        loops = [loop_of(settings, server) for _ in range(3)]
        return await asyncio.gather(*(one.run({}, extra_info=where) for one in loops))

    outputs = asyncio.run(group())
    made = make_world(world)
    role = made.spec.roles[0]
    for output in outputs:
        assert output.reward_score == sum(own.rewards)
        assert len(output.response_ids) == len(output.response_mask)
        assert len(output.response_logprobs) == len(output.response_ids)
    for asked, output in zip(server.asked.values(), outputs, strict=True):
        assert asked[0] == output.prompt_ids
        whole = output.prompt_ids + output.response_ids
        assert all(prompt == whole[: len(prompt)] for prompt in asked)
    if len(made.spec.roles) == 1:
        episode = Episode(made, task_of(world, index=1), codec_named(CODEC))
        for reply in own.replies:
            episode.say(reply)
        assert outputs[0].prompt_ids + outputs[0].response_ids == episode.tokens_of(role)


def test_a_training_run_composes_and_its_loop_is_made() -> None:
    folder = ROOT / "examples" / "verl"
    with hydra.initialize_config_dir(str(folder), version_base=None):
        settings = hydra.compose("energy")
    rollout = settings.actor_rollout_ref.rollout
    assert rollout.agent.default_agent_loop == "tokengym"
    assert rollout.response_length == settings.data.max_response_length
    path = ROOT / rollout.agent.agent_loop_config_path
    (loop,) = OmegaConf.load(path)
    assert loop.name == rollout.agent.default_agent_loop
    loop.codec = CODEC
    del loop.name
    own = play_own("energy", "small", index=1)
    made = loop_of(loop, Scripted(own.replies))
    output = asyncio.run(made.run({}, extra_info={"split": "test", "index": 1}))
    assert output.reward_score == sum(own.rewards)


def test_rows_are_read_by_verls_data_set(tmp_path: Path) -> None:
    path = tmp_path / "train.parquet"
    Dataset.from_list(list(task_rows("energy:small", "train", 3))).to_parquet(path)
    config = OmegaConf.create({"max_prompt_length": 4096, "return_raw_chat": True})
    tokenizer = AutoTokenizer.from_pretrained(MODEL_DIR)
    data = RLHFDataset(str(path), tokenizer, config)
    assert len(data) == 3
    assert (data[1]["agent_name"], data[1]["extra_info"]["index"]) == ("tokengym", 1)


def exported(folder: Path, normed: bool) -> Path:
    """Write a batch whose advantages verl's trainer computes, by the exporter of docs/probe.md."""
    (hook,) = (
        block for block in blocks(ROOT / "docs" / "probe.md") if block.name == "verl_hook.py"
    )
    (folder / "verl_hook.py").write_text(hook.text)
    own = torch.tensor([[1, 0, 1, 0], [1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]] * 2)
    prompts = torch.tensor([[0, 5, 6]] * 4 + [[7, 8, 9]] * 4)
    there = torch.cat([(prompts > 0).long(), own.clone().index_fill_(1, torch.tensor([1]), 1)], 1)
    rewards = torch.zeros(own.shape).index_put_(
        (torch.arange(8), own.shape[1] - 1 - own.flip(1).argmax(1)),
        torch.tensor([0.0, 0.2, 0.7, 1.0, 5.0, 5.6, 7.1, 8.0]),
    )
    made = {
        "prompts": prompts,
        "responses": torch.arange(10, 42).reshape(8, 4),
        "attention_mask": there,
        "response_mask": own,
        "token_level_scores": rewards,
        "token_level_rewards": rewards,
        "old_log_probs": own * -2.0,
    }
    groups = np.array(["a"] * 4 + ["b"] * 4, dtype=object)
    data = DataProto.from_dict(tensors=made, non_tensors={"uid": groups})
    data = compute_advantage(
        data, AdvantageEstimator.GRPO, norm_adv_by_std_in_grpo=normed, num_repeat=4
    )
    runpy.run_path(str(folder / "verl_hook.py"))["write_batch"](folder / "verl.jsonl", data)
    return folder / "verl.jsonl"


def test_a_batch_of_verl_is_judged_by_its_own_advantages(tmp_path: Path) -> None:
    for normed, kind, name in (
        (True, "biased by choice", "standardised by group (ddof 1, eps 0)"),
        (False, "follows", "centred by group"),
    ):
        folder = tmp_path / str(normed)
        folder.mkdir()
        file = exported(folder, normed)
        verdict = judge_sent(read_rollouts(file))
        assert (verdict.kind, verdict.name) == (kind, name)
    kept = ROOT / "tests" / "probe" / "verl.jsonl"
    assert kept.read_text() == (tmp_path / "True" / "verl.jsonl").read_text()
