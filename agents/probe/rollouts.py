"""The rollouts of an update, as any trainer can write them: one JSON object a line."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tokengym.agents.settings import read_plain
from tokengym.envs.core.errors import DataError
from tokengym.envs.intake.rows import rows_of

LARGEST = 1e30
"""Its square is finite."""
_ROUNDED = 1e-3
"""A log-probability of 0 after rounding to 16 bits."""


@dataclass(frozen=True)
class ProbeRollout:
    """One rollout of a batch, in the order in which the trainer got it.

    Attributes:
        prompt_ids: token ids of the prompt, at least one.
        completion_ids: token ids after it, those of the environment included.
        mask: for each of them, 1 where the policy wrote it and 0 where the environment did.
        reward: the rollout's return.
        group: what rollouts of the same prompt share.
        advantages: of each completion token, as the trainer logged them; `None` if unknown.
        logprobs: of each completion token when it was sampled, in nats; `None` if unknown.
        step: of the trainer.
        turn_rewards: reward of each turn, if the trainer has them; their sum is the return.
    """

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    mask: tuple[int, ...]
    reward: float
    group: str
    advantages: tuple[float, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    step: int = 0
    turn_rewards: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Check what the analysis relies on.

        Raises:
            DataError: naming the field and the rule.
        """
        length = len(self.completion_ids)
        if not self.prompt_ids or not length:
            raise DataError("prompt_ids and completion_ids must have a token each, got none")
        if set(self.mask) - {0, 1}:
            raise DataError(f"mask must hold 0 and 1, got {sorted(set(self.mask))}")
        for name in ("mask", "advantages", "logprobs"):
            values = getattr(self, name)
            if values is not None and len(values) != length:
                rule = f"must have one entry for each of {length} completion_ids"
                raise DataError(f"{name} {rule}, got {len(values)}")
        for name in ("reward", "advantages", "logprobs", "turn_rewards"):
            values = getattr(self, name)
            for value in (values,) if name == "reward" else values or ():
                if not abs(value) <= LARGEST:
                    raise DataError(f"{name} must lie within {LARGEST:g} of 0, got {value}")
        if max(self.logprobs or (0.0,)) > _ROUNDED:
            raise DataError(f"logprobs must be at most 0, got {max(self.logprobs or ())}")
        if self.turn_rewards is not None and len(self.turn_rewards) != len(self.turns):
            rule = f"must have one entry for each of {len(self.turns)} turns"
            raise DataError(f"turn_rewards {rule}, got {len(self.turn_rewards)}")

    @property
    def turns(self) -> list[range]:
        """Places in the completion of each turn of the policy: runs of mask 1."""
        edges = np.flatnonzero(np.diff([0, *self.mask, 0])).tolist()
        return [range(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True)]


_NEEDED = ("prompt_ids", "completion_ids", "mask", "reward", "group")


def _rollout(row: Mapping[str, Any]) -> ProbeRollout:
    known = ProbeRollout.__dataclass_fields__
    given = {name: row[name] for name in known if row.get(name) is not None}
    if missing := [name for name in _NEEDED if name not in given]:
        raise DataError(f"a rollout needs {', '.join(_NEEDED)}; {missing[0]} is missing")
    given["group"] = str(given["group"])
    if isinstance(given["mask"], list):  # true and 1.0 are 1
        given["mask"] = [int(own) if own in (0, 1) else own for own in given["mask"]]
    return read_plain(ProbeRollout, given)


_NEMO_RL = (
    *("token_loss_mask", "token_ids", "input_lengths"),
    *("sample_loss_mask", "prev_logprobs", "advantages", "rewards"),
)


def _from_nemo_rl(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line of NeMo-RL's `train_data_step{N}.jsonl`, a batch of one, in our fields.

    Its log-probabilities are those of the ratio, `prev_logprobs`; equal prompts make a group.
    """
    try:
        (own,), (ids,), (length,) = (row[name] for name in _NEMO_RL[:3])
        (trained,), (logprobs,), (advantages,) = (row[name] for name in _NEMO_RL[3:6])
        (reward,) = row.get("filtered_rewards", row["rewards"])
        start = own.index(1) if 1 in own else length
        logged = {"logprobs": logprobs[start:length], "advantages": advantages[start:length]}
        mask = [bit * trained for bit in own[start:length]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        rule = f"a line of NeMo-RL needs lists of one entry each for {', '.join(_NEMO_RL)}"
        raise DataError(f"{rule}, got {sorted(row)}: {error}") from error
    named = {"prompt_ids": ids[:start], "completion_ids": ids[start:length], "mask": mask}
    return {**named, **logged, "reward": reward, "group": str(ids[:start])}


def read_rollouts(path: Path, vocabulary: float = math.inf) -> list[ProbeRollout]:
    """Read rollouts from a file of JSON Lines, or Parquet; fields of other names are left out.

    NeMo-RL's `train_data_step{N}.jsonl` is read as it is.

    Args:
        path: the file.
        vocabulary: tokens of the model, if it is known.

    Raises:
        DataError: naming the line and the rule, or if there are none.
    """
    rollouts = []
    for where, row in rows_of(path):
        try:
            given = _from_nemo_rl(row) if "token_loss_mask" in row else row
            rollouts.append(rollout := _rollout(given))
        except ValueError as error:
            raise DataError(f"{where}: {error}") from error
        for token in (*rollout.prompt_ids, *rollout.completion_ids):
            if not 0 <= token < vocabulary:
                most = f", below {vocabulary}" if vocabulary < math.inf else ""
                raise DataError(f"{where}: token ids must be at least 0{most}, got {token}")
    if not rollouts:
        raise DataError(f"{path} holds no rollouts")
    return rollouts


def write_rollouts(path: Path, rollouts: Iterable[ProbeRollout]) -> None:
    """Write rollouts as JSONL; what is unknown is left out."""
    rows = [{k: v for k, v in asdict(rollout).items() if v is not None} for rollout in rollouts]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def groups_of(rollouts: Sequence[ProbeRollout]) -> list[int]:
    """Return the number of each rollout's group, counted in order of appearance."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(r.group for r in rollouts))}
    return [numbers[rollout.group] for rollout in rollouts]
