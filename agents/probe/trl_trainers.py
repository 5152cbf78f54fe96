"""TRL's `GRPOTrainer`, probed: designed rollouts through `rollout_func`, and its own sampling."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from transformers import AutoTokenizer, TrainerCallback
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from tokengym.agents.probe.batch import ProbeBatch
from tokengym.agents.probe.campaign import ALL_WORLDS, REFERENCE, ProbedTrainer
from tokengym.agents.probe.documented import DocumentedUpdate
from tokengym.agents.probe.policy import PAD, Checkpoint, Weights, load_model, write_tiny_model
from tokengym.agents.probe.rollouts import ProbeRollout
from tokengym.agents.probe.steps import Training
from tokengym.agents.probe.trl_loss import documented_update
from tokengym.agents.probe.trl_settings import (
    TrlSettings,
    batch_sizes,
    read_settings,
    refusals_named,
)
from tokengym.agents.probe.worlds import FEW, WORLDS, designed_rollouts, text_reward
from tokengym.rewards.arrays import Ints

UNBIASED = {"scale_rewards": "none", "loss_type": "dr_grpo"}
_TWICE, _SAMPLED = "second update", "own sampling"
_GROUP, _MOST_STEPS, _SAMPLED_TOKENS = 4, 3, 6
_SETTINGS = {
    # The gradient is read itself: this one only has to move the ratios.
    **{"learning_rate": 1e-3, "max_completion_length": 16, "bf16": False, "use_cpu": True},
    **{"report_to": "none", "save_strategy": "no", "shuffle_dataset": False},
}

Rewards = Callable[..., list[float | None]]


@contextmanager
def open_trainer(name: str, folder: Path, settings: Mapping[str, Any]) -> Iterator[ProbedTrainer]:
    """Yield TRL's trainer, to be run on the tiny model.

    Args:
        name: `trl`.
        folder: for models and what the trainer writes.
        settings: of `GRPOConfig`, and of LoRA in `ModelConfig`, to be run instead of the defaults
            and the unbiased setting; none if empty.

    Raises:
        OptionError: if a setting is not one that can be judged.
    """
    columns: dict[str, Mapping[str, Any]] = {"default": {}, "unbiased": UNBIASED}
    columns = {"yours": settings} if settings else columns
    runs, title = [], f"TRL {version(name)}, GRPOTrainer"
    for column, given in columns.items():
        asked = read_settings(given)
        # With a penalty of theirs the second update has it.
        cases = (ALL_WORLDS, _TWICE, *(() if given.get("beta") else (REFERENCE,)), _SAMPLED)
        runs += [(column, case) for case in cases]
        # All are made, so that one that cannot be is refused before anything runs.
        *_, args = [_arguments(case, asked, folder, 0) for case in cases]
        changed = [one for one in asked.given if getattr(args, one) != asked.given[one]]
        own = {"max_completion_length", "scale_rewards", "num_iterations", "generation_batch_size"}
        if replaced := sorted({*asked.replaced, *changed} - own):
            title += f"; replaced here: {', '.join(replaced)}"

    def run(case: str, given: Mapping[str, Any], seed: int) -> Training:
        asked = read_settings(given)
        return _Run(folder, case, _arguments(case, asked, folder, seed), asked.lora).training()

    yield ProbedTrainer(title, columns, runs, run)


def _arguments(case: str, asked: TrlSettings, folder: Path, seed: int) -> GRPOConfig:
    """Return the configuration of a case, whose batches have the sizes that are asked for."""
    group = asked.given.get("num_generations", _GROUP)
    sizes = batch_sizes(asked.given, group, len(WORLDS if case == ALL_WORLDS else FEW))
    _, accumulated, parts = sizes.values()
    iterations = asked.given.get("num_iterations", 1)
    if case in (_TWICE, REFERENCE):
        # So often that there are two optimizer steps on a generation.
        iterations = max(iterations, -(-2 * accumulated // parts))
    steps = 1 if case == _SAMPLED else min(_MOST_STEPS, parts * iterations // accumulated)
    given = {**_SETTINGS, "num_generations": group, **asked.given, **sizes}
    given |= {"num_iterations": iterations, "max_steps": steps, "seed": seed}
    given |= {"beta": 0.1} if case == REFERENCE else {}
    given |= {"max_completion_length": _SAMPLED_TOKENS} if case == _SAMPLED else {}
    given.pop("generation_batch_size", None)
    with refusals_named():
        return GRPOConfig(str(folder / "out"), **given)


class _Recorder(TrainerCallback):
    """Keeps weights around every optimizer step, its gradient, and what each backward pass read."""

    def __init__(self) -> None:
        self.gradients: Weights = {}
        self.checkpoints: list[Checkpoint] = []
        self.passes: list[list[tuple[int, ...]]] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self._keep(given["model"])
        given["model"].register_forward_pre_hook(self._note, with_kwargs=True)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        named = given["model"].named_parameters()
        self.gradients = {name: one.grad.clone() for name, one in named if one.grad is not None}

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self._keep(given["model"])

    def _note(self, model: Any, args: Any, given: Mapping[str, Any]) -> None:
        if torch.is_grad_enabled():
            self.passes.append([_key(row) for row in given["input_ids"].tolist()])

    def _keep(self, model: Any) -> None:
        weights = {name: value.detach().clone() for name, value in model.named_parameters()}
        # Moments that do not last are gradients.
        self.checkpoints.append(Checkpoint(weights, self.gradients, beta=0.0))


def _key(token_ids: Sequence[int]) -> tuple[int, ...]:
    """Return what a row is recognised by, wherever it is padded."""
    return tuple(token for token in token_ids if token != PAD)


class _Run:
    """A run of the trainer.

    Args:
        folder: for models.
        case: name of the case.
        args: its configuration.
        lora: PEFT's configuration; `None` for full weights.
    """

    def __init__(self, folder: Path, case: str, args: GRPOConfig, lora: Any) -> None:
        self.case, self.args, self.lora = case, args, lora
        self.rollouts: list[ProbeRollout] = []
        self.model = folder / f"model-{args.seed}"
        if not self.model.is_dir():
            write_tiny_model(self.model, args.seed)

    def training(self) -> Training:
        """Train, and return what came of it."""
        recorder = self._sampled() if self.case == _SAMPLED else self._designed()
        # Which of two equal rollouts is in which micro-batch cannot be seen: either will do.
        micro = [self._micro_batches(recorder.passes, last) for last in (False, True)]
        step = self.args.gradient_accumulation_steps

        def documents(batch: ProbeBatch, number: int) -> list[DocumentedUpdate]:
            here = slice(number * step, (number + 1) * step)
            return [documented_update(self.args, batch, rows[here]) for rows in micro]

        model, start = load_model(self.model), recorder.checkpoints[0]
        if self.lora is not None:
            from peft import get_peft_model  # TRL runs without it

            model = get_peft_model(model, self.lora)
        kept, reference = recorder.checkpoints, start if self.args.beta else None
        heat = self.args.temperature
        return Training(model, self.rollouts, kept, heat, reference, documents)

    def _micro_batches(self, passes: Sequence[Sequence[tuple[int, ...]]], last: bool) -> list[Ints]:
        """Return the rollouts of each backward pass, as they must be by what the model read.

        Args:
            passes: the rows of each backward pass.
            last: whether of equal rollouts the last one is taken first.
        """
        parts = self.args.steps_per_generation
        assert parts is not None
        found: list[Ints] = []
        for start in range(0, len(passes), parts):
            waiting: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
            for number, one in enumerate(self.rollouts):
                waiting[_key((*one.prompt_ids, *one.completion_ids))].append(number)
            here = passes[start : start + parts]
            taken = [[waiting[row].pop(-last) for row in one if waiting[row]] for one in here]
            if len(here) == parts and any(waiting.values()):
                # Some were read twice, others not at all: those ought to have been.
                found += np.split(np.arange(len(self.rollouts)), parts)
            else:
                found += [np.array(one, np.int64) for one in taken]
        return found

    def _designed(self) -> _Recorder:
        """Train on designed groups, as many as a generation has."""
        args, known = self.args, WORLDS if self.case == ALL_WORLDS else FEW
        count = _groups(args)
        worlds = list(known[:count])
        for n in range(len(known), count):
            again = known[n % len(known)]
            worlds.append(again._replace(name=f"{again.name} {n}"))
        self.rollouts = designed_rollouts(args.seed, args.num_generations or 1, worlds)
        waiting: defaultdict[str, list[ProbeRollout]] = defaultdict(list)
        for rollout in self.rollouts:
            waiting[rollout.group].append(rollout)
        by_text = {world.name for world in worlds if not world.rewards}

        def roll_out(prompts: Sequence[str], trainer: Any) -> dict[str, Any]:
            played = [waiting[prompt].pop(0) for prompt in prompts]
            return {
                "prompt_ids": [list(one.prompt_ids) for one in played],
                "completion_ids": [list(one.completion_ids) for one in played],
                # TRL takes those of its own model, as for what it samples by itself.
                "logprobs": None,
                "env_mask": [list(one.mask) for one in played],
                "designed": [one.reward for one in played],
            }

        def paid(completion_ids: Any, **given: Any) -> list[float | None]:
            every = zip(given["prompts"], completion_ids, given["designed"], strict=True)
            return [text_reward(ids) if name in by_text else reward for name, ids, reward in every]

        return self._train(list(waiting), paid, roll_out)

    def _sampled(self) -> _Recorder:
        """Let the trainer sample, and pay for what it wrote."""
        tokenizer, args = AutoTokenizer.from_pretrained(self.model), self.args

        def paid(prompts: Sequence[str], completion_ids: Any, **_: Any) -> list[float | None]:
            for prompt, ids in zip(prompts, completion_ids, strict=True):
                read, reward = tuple(tokenizer(prompt)["input_ids"]), text_reward(ids)
                one = ProbeRollout(read, tuple(ids), (1,) * len(ids), reward, prompt)
                self.rollouts.append(one)
            return [one.reward for one in self.rollouts[-len(prompts) :]]

        return self._train([f"Question {number}:" for number in range(_groups(args))], paid)

    def _train(self, prompts: Sequence[str], paid: Rewards, roll_out: Any = None) -> _Recorder:
        recorder, model = _Recorder(), str(self.model)
        rows = Dataset.from_dict({"prompt": list(prompts)})
        tokenizer = AutoTokenizer.from_pretrained(model, padding_side="left")
        given: dict[str, Any] = {
            **{"model": model, "reward_funcs": paid, "args": self.args, "train_dataset": rows},
            **{"processing_class": tokenizer, "rollout_func": roll_out, "peft_config": self.lora},
        }
        with refusals_named():
            trainer = GRPOTrainer(callbacks=[recorder], **given)
        trainer.train()
        return recorder


def _groups(args: GRPOConfig) -> int:
    """Return how many groups a generation has."""
    assert args.generation_batch_size is not None
    assert args.num_generations is not None
    return args.generation_batch_size // args.num_generations
