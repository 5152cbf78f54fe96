"""TRL's `GRPOTrainer`, probed: designed rollouts through `rollout_func`, and its own sampling."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import AutoTokenizer, TrainerCallback
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from tokengym.agents.probe.campaign import ALL_WORLDS, REFERENCE, ProbedTrainer, require_known
from tokengym.agents.probe.policy import Checkpoint, load_model, write_tiny_model
from tokengym.agents.probe.rollouts import ProbeRollout
from tokengym.agents.probe.steps import Training
from tokengym.agents.probe.worlds import FEW, TEXT, WORLDS, designed_rollouts, text_reward

DOCUMENTED = {
    "standardised by group": 'scale_rewards="group"',
    "mean over its tokens": 'loss_type="grpo"',
    "token mean of micro-batches": 'loss_type="bnpo"',
    "cut replies left out": "mask_truncated_completions=True",
    "with a KL penalty": "beta",
    "an entropy bonus": "entropy_coef",
    "weight decay": "weight_decay",
}
UNBIASED = {"scale_rewards": "none", "loss_type": "dr_grpo"}
_TWICE, _SAMPLED = "second update", "own sampling"
_GROUP = 4
_SETTINGS = {
    "per_device_train_batch_size": 8,
    "num_generations": _GROUP,
    # The gradient is read off Adam's moments: this one only has to move the ratios.
    "learning_rate": 1e-3,
    "max_completion_length": 16,
    "bf16": False,
    "use_cpu": True,
    "report_to": "none",
    "save_strategy": "no",
    "shuffle_dataset": False,
}

Rewards = Callable[..., list[float | None]]


@contextmanager
def open_trainer(name: str, folder: Path, settings: Mapping[str, Any]) -> Iterator[ProbedTrainer]:
    """Yield TRL's trainer, to be run on the tiny model.

    Args:
        name: `trl`.
        folder: for models and what the trainer writes.
        settings: of `GRPOConfig`, for a column of their own; none if empty.
    """
    require_known(settings, (one.name for one in fields(GRPOConfig)), "GRPOConfig")
    columns = {"default": {}, "unbiased": UNBIASED} | ({"yours": settings} if settings else {})
    yield ProbedTrainer(
        f"TRL {version(name)}, GRPOTrainer",
        columns,
        DOCUMENTED,
        list(product(columns, (ALL_WORLDS, _TWICE, REFERENCE, _SAMPLED))),
        lambda case, given, seed: _Run(folder, given, seed).case(case),
    )


class _Recorder(TrainerCallback):
    """Keeps weights and Adam's moments before the first and after every optimizer step."""

    def __init__(self) -> None:
        self.checkpoints: list[Checkpoint] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self._keep(given["model"], None)

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        optimizer = given["optimizer"]
        self._keep(given["model"], getattr(optimizer, "optimizer", optimizer))

    def _keep(self, model: Any, optimizer: Any) -> None:
        named = dict(model.named_parameters())
        weights = {name: value.detach().clone() for name, value in named.items()}
        states = optimizer.state if optimizer is not None else {}
        first = {name: states.get(value, {}).get("exp_avg") for name, value in named.items()}
        moments = {name: value.clone() for name, value in first.items() if value is not None}
        self.checkpoints.append(Checkpoint(weights, moments))


class _Run:
    """Runs of the trainer with one seed."""

    def __init__(self, folder: Path, settings: Mapping[str, Any], seed: int) -> None:
        self.folder, self.settings, self.seed = folder, settings, seed
        self.model = folder / f"model-{seed}"
        if not self.model.is_dir():
            write_tiny_model(self.model, seed)

    def case(self, name: str) -> Training:
        """Run a case."""
        if name == ALL_WORLDS:
            return self._designed(designed_rollouts(self.seed, _GROUP, WORLDS))
        if name == _SAMPLED:
            return self._sampled()
        few = designed_rollouts(self.seed, _GROUP, FEW)
        return self._designed(few, 2, 0.1 if name == REFERENCE else 0.0)

    def _designed(
        self, rollouts: Sequence[ProbeRollout], steps: int = 1, beta: float = 0.0
    ) -> Training:
        waiting: defaultdict[str, list[ProbeRollout]] = defaultdict(list)
        for rollout in rollouts:
            waiting[rollout.group].append(rollout)

        def roll_out(prompts: Sequence[str], trainer: Any) -> dict[str, list[Any]]:
            played = [waiting[prompt].pop(0) for prompt in prompts]
            return {
                "prompt_ids": [list(one.prompt_ids) for one in played],
                "completion_ids": [list(one.completion_ids) for one in played],
                "logprobs": [[0.0] * len(one.completion_ids) for one in played],
                "env_mask": [list(one.mask) for one in played],
                "designed": [one.reward for one in played],
            }

        def paid(completion_ids: Any, **fields: Any) -> list[float | None]:
            every = zip(fields["prompts"], completion_ids, fields["designed"], strict=True)
            return [text_reward(ids) if name in TEXT else reward for name, ids, reward in every]

        more = {"num_iterations": steps, "beta": beta, "max_steps": steps}
        checkpoints = self._train(list(waiting), paid, more, roll_out)
        reference = checkpoints[0] if beta else None
        return Training(load_model(self.model), rollouts, checkpoints, reference=reference)

    def _sampled(self) -> Training:
        """Let the trainer sample, and pay for what it wrote."""
        tokenizer = AutoTokenizer.from_pretrained(self.model)
        rollouts: list[ProbeRollout] = []

        def paid(prompts: Sequence[str], completion_ids: Any, **_: Any) -> list[float | None]:
            for prompt, ids in zip(prompts, completion_ids, strict=True):
                read, reward = tuple(tokenizer(prompt)["input_ids"]), text_reward(ids)
                rollouts.append(ProbeRollout(read, tuple(ids), (1,) * len(ids), reward, prompt))
            return [one.reward for one in rollouts[-len(prompts) :]]

        prompts = [f"Question {number}:" for number in range(4)]
        checkpoints = self._train(prompts, paid, {"max_completion_length": 6, "max_steps": 1})
        return Training(load_model(self.model), rollouts, checkpoints)

    def _train(
        self, prompts: Sequence[str], paid: Rewards, more: dict[str, Any], roll_out: Any = None
    ) -> list[Checkpoint]:
        recorder, model = _Recorder(), str(self.model)
        batch = {"gradient_accumulation_steps": len(prompts) * _GROUP // 8, "seed": self.seed}
        given = {**_SETTINGS, **batch, **more, **self.settings}
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=paid,
            args=GRPOConfig(str(self.folder / "out"), **given),
            train_dataset=Dataset.from_dict({"prompt": list(prompts)}),
            processing_class=AutoTokenizer.from_pretrained(model, padding_side="left"),
            rollout_func=roll_out,
            callbacks=[recorder],
        )
        trainer.train()
        return recorder.checkpoints
