"""A world in TRL's `GRPOTrainer`: a `rollout_func` in tokens, or an `environment_factory`.

The first keeps tokens as sampled: what the trainer trains on is what the model read and wrote. The
second goes through the model's tool calls.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import torch
from datasets import Dataset
from transformers import GenerationConfig
from trl.models.utils import unwrap_model_for_generation

from tokengym.agents.adapters.token_rollout import TokenRollout
from tokengym.envs.core.errors import OptionError
from tokengym.envs.rollouts import Playable, Rollout, Rollouts
from tokengym.envs.train_split import standardising_notice

RETURN = "tokengym_return"


def task_rows(rollouts: Playable, split: str, count: int) -> Dataset:
    """Return the first Tasks of a split as rows: `prompt` names the Task, one group per row.

    The prompt is `split/index`; `rollout_func` writes the world's text in the model's own format.
    """
    tasks = Rollouts.of(rollouts).world.first_tasks(split, count)
    return Dataset.from_list(
        [{"prompt": f"{split}/{task.index}", "split": split, "index": task.index} for task in tasks]
    )


def return_reward(completions: Sequence[Any], **fields: Any) -> list[float]:
    """Return each rollout's return: the reward function for `WorldRollouts`."""
    returns: list[float] = fields[RETURN]
    return returns


@lru_cache
def _warn_once(rollouts: Rollouts, *settings: str) -> None:
    """Warn if settings of a trainer standardise a proper score."""
    cause = "TRL divides by each group's deviation (scale_rewards='none' does not)"
    notice = standardising_notice(rollouts.world.spec, cause)
    if notice and not {"group", "normalize_then_sum"}.isdisjoint(settings):
        warnings.warn(notice, stacklevel=3)


class WorldRollouts:
    """The `rollout_func`: plays one rollout for each prompt, all of them turn by turn in a batch.

    It warns once where the trainer standardises a proper score.

    Args:
        rollouts: with an append-only `codec` of the model's tokenizer; see `Rollouts.of`.
        max_reply_tokens: longest reply; of one that reaches it only the lines that had ended count.

    Raises:
        OptionError: if the codec is missing, re-renders conversations, or stops at strings.
    """

    def __init__(self, rollouts: Playable, max_reply_tokens: int) -> None:
        self.rollouts = Rollouts.of(rollouts)
        codec = self.rollouts.codec
        if codec is None or isinstance(codec, str):
            raise OptionError("WorldRollouts needs Rollouts(codec=...) of the model's tokenizer")
        if not codec.append_only or not all(isinstance(one, int) for one in codec.stop):
            raise OptionError(f"{codec.name} must only append, and stop at tokens")
        self.max_reply_tokens = max_reply_tokens
        self._stop = [int(token) for token in codec.stop]

    def __call__(self, prompts: Sequence[str], trainer: Any) -> dict[str, list[Any]]:
        """Return prompts, completions, log-probabilities, `env_mask` and returns, by rollout.

        Args:
            prompts: of `task_rows`, as often as there are rollouts in the group.
            trainer: the `GRPOTrainer`.
        """
        _warn_once(self.rollouts, trainer.scale_rewards, trainer.multi_objective_aggregation)
        recordings = [TokenRollout(self._start(prompt)) for prompt in prompts]
        while active := [one for one in recordings if not one.rollout.done]:
            sampled = self._sample([one.rollout.tokens for one in active], trainer)
            for one, (tokens, logprobs) in zip(active, sampled, strict=True):
                one.play(tokens, logprobs, "stop" if tokens[-1] in self._stop else "length")
        return {
            "prompt_ids": [one.prompt for one in recordings],
            "completion_ids": [one.completion for one in recordings],
            "logprobs": [one.logprobs for one in recordings],
            "env_mask": [one.own for one in recordings],
            RETURN: [one.rollout.total for one in recordings],
        }

    def _start(self, prompt: str) -> Rollout:
        split, _, index = prompt.partition("/")
        return self.rollouts.start_at(split, int(index))

    def _sample(
        self, conversations: list[list[int]], trainer: Any
    ) -> list[tuple[list[int], list[float]]]:
        """Sample one reply to each conversation, with the log-probability of each token."""
        tokenizer = trainer.processing_class
        read = tokenizer.pad(
            {"input_ids": conversations}, padding_side="left", return_tensors="pt"
        ).to(trainer.accelerator.device)
        settings = GenerationConfig(
            max_new_tokens=self.max_reply_tokens,
            do_sample=True,
            temperature=trainer.temperature,
            top_p=trainer.top_p,
            top_k=trainer.top_k or 0,
            eos_token_id=self._stop,
            pad_token_id=tokenizer.pad_token_id,
            output_logits=True,
            return_dict_in_generate=True,
        )
        with (
            unwrap_model_for_generation(trainer.model_wrapped, trainer.accelerator) as model,
            torch.no_grad(),
        ):
            made = model.generate(**read, generation_config=settings)
        new_BT = made.sequences[:, read["input_ids"].shape[1] :]
        logits_BTV = torch.stack(made.logits, dim=1).float() / trainer.temperature
        chosen_BT = logits_BTV.log_softmax(-1).gather(-1, new_BT[..., None])[..., 0]
        replies = []
        for tokens, logprobs in zip(new_BT.tolist(), chosen_BT.tolist(), strict=True):
            end = next(
                (i + 1 for i, token in enumerate(tokens) if token in self._stop), len(tokens)
            )
            replies.append((tokens[:end], logprobs[:end]))
        return replies


def environment_factory(rollouts: Playable) -> Callable[[], "WorldTools"]:
    """Return what makes one environment per rollout; examples need `split` and `index`."""
    return partial(WorldTools, Rollouts.of(rollouts))


class WorldTools:
    """A world for models that call tools: it has one, `reply`."""

    def __init__(self, rollouts: Rollouts) -> None:
        self._rollouts = rollouts
        self._rollout: Rollout | None = None

    def reset(self, split: str, index: int, **row: Any) -> str:
        """Start a rollout; returns the world's first text, which is added to the prompt."""
        self._rollout = self._rollouts.start_at(split, index)
        return self._rollout.text

    def get_reward(self) -> float:
        """The return; where the model stopped early, the rest counts as empty replies."""
        assert self._rollout is not None
        self._rollout.stop()
        return self._rollout.total

    def reply(self, text: str) -> str:
        """Reply to the world, in the form that it asks for.

        Args:
            text: The reply.

        Returns:
            What the world says next.
        """
        assert self._rollout is not None
        if self._rollout.done:
            return "The episode is over."
        self._rollout.say(text)
        return self._rollout.text or "The episode is over."
