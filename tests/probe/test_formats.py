"""Files of other trainers are read as they write them, and the hook on the page writes ours."""

import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.docs.pages import blocks
from tokengym.agents.probe.rollouts import ProbeRollout, read_rollouts
from tokengym.agents.probe.sent import judge_sent
from tokengym.agents.probe.verdict import VerdictKind
from tokengym.envs.core.errors import DataError

PAGE = Path(__file__).parents[2] / "docs" / "probe.md"
REWARDS = (0.0, 0.2, 0.7, 1.0)


def nemo_rl(reward: float) -> dict[str, list[object]]:
    """Return a line as NeMo-RL writes it: a batch of one, padded on the right."""
    advantage = reward - sum(REWARDS) / 4
    return {
        "content": ["any"],
        "rewards": [reward],
        "input_lengths": [6],
        "token_ids": [[5, 6, 7, 8, 9, 10, 0, 0]],
        "token_loss_mask": [[0, 0, 1, 0, 1, 1, 0, 0]],
        "sample_loss_mask": [1.0],
        "advantages": [[advantage] * 8],
        "generation_logprobs": [[0, 0, -1, 0, -1, -1, 0, 0]],
        "prev_logprobs": [[0, 0, -2, 0, -2, -2, 0, 0]],
    }


def test_nemo_rl_s_lines_are_read_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "train_data_step1.jsonl"
    lines = [json.dumps({**nemo_rl(reward), "idx": n}) for n, reward in enumerate(REWARDS)]
    file.write_text("\n".join(lines))
    rollouts = read_rollouts(file)
    read = ProbeRollout(
        (5, 6),
        (7, 8, 9, 10),
        (1, 0, 1, 1),
        0.7,
        "[5, 6]",
        advantages=(0.7 - 0.475,) * 4,
        logprobs=(-2, 0, -2, -2),
    )
    assert rollouts[2] == read
    verdict = judge_sent(rollouts)
    assert (verdict.kind, verdict.name) == (VerdictKind.FOLLOWS, "centred by group")
    file.write_text(json.dumps({**nemo_rl(0.0), "token_ids": [[1], [2]]}))
    with pytest.raises(DataError, match=r"line 1: a line of NeMo-RL needs lists of one entry"):
        read_rollouts(file)


def test_a_batch_that_verl_s_code_made_is_judged() -> None:
    """`tests/integrations/test_verl.py` writes the file, and compares it with verl's."""
    verdict = judge_sent(rollouts := read_rollouts(Path(__file__).with_name("verl.jsonl")))
    assert len(rollouts) == 8
    assert (verdict.kind, verdict.biases) == (VerdictKind.CHOICE, ("standardised",))
    assert verdict.name.startswith("standardised by group (ddof 1, eps ")


def test_the_hook_for_verl_writes_what_is_read(tmp_path: Path) -> None:
    (hook,) = (block for block in blocks(PAGE) if block.name == "verl_hook.py")
    (tmp_path / "verl_hook.py").write_text(hook.text)
    write_batch = runpy.run_path(str(tmp_path / "verl_hook.py"))["write_batch"]
    # Prompts are padded on the left, responses on the right.
    own = torch.tensor([[1, 0, 1, 0], [1, 1, 1, 1]])
    columns = {
        "prompts": torch.tensor([[0, 5, 6], [7, 8, 9]]),
        "responses": torch.tensor([[10, 11, 12, 0], [13, 14, 15, 16]]),
        "attention_mask": torch.tensor([[0, 1, 1, 1, 1, 1, 0], [1] * 7]),
        "response_mask": own,
        "token_level_scores": torch.tensor([[0.0, 0, 0.5, 0], [0, 0, 0, 1.0]]),
        "advantages": own * torch.tensor([[-0.25], [0.25]]),
        "old_log_probs": own * -2.0,
    }
    names = {"uid": np.array(["a", "a"], dtype=object)}
    write_batch(tmp_path / "r.jsonl", SimpleNamespace(batch=columns, non_tensor_batch=names))
    first, second = read_rollouts(tmp_path / "r.jsonl")
    assert (first.prompt_ids, first.completion_ids, first.mask) == ((5, 6), (10, 11, 12), (1, 0, 1))
    assert (first.reward, second.reward, first.group) == (0.5, 1.0, second.group)
    assert judge_sent([first, second]).name == "centred by group"
