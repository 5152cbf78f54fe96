"""A tiny model made on the spot, and a toy environment for the cookbook's trainer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import chz
import tinker
import torch
from tinker_cookbook.rl.types import Env, EnvGroupBuilder, RLDataset, RLDatasetBuilder, StepResult
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from tokengym.agents.service.engine.compute_thread import Pieces
from tokengym.agents.service.engine.forward import PackedForward
from tokengym.agents.service.generation.decoder import KeptDecoder
from tokengym.agents.service.generation.sampler import Sampler

if TYPE_CHECKING:
    from pathlib import Path

    from tokengym.agents.service.engine.base_model import BaseModel

END, START, CLOSE = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
T = TypeVar("T")
VOCABULARY = 320
WINDOWED = ["sliding_attention", "full_attention"]
CORPUS = [
    "the battery charges at 3 o'clock and the price is 42. answer with one number: 0123456789"
]


def make_tokenizer(folder: Path) -> Any:
    """Train a byte-level BPE tokenizer and write it to `folder`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END, START, CLOSE],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS * 20, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=CLOSE, pad_token=END)
    fast.save_pretrained(folder)
    return fast


def make_model(folder: Path, kind: str = "qwen3") -> Path:
    """Write a random model of about 100,000 parameters, with its tokenizer, to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    eos = make_tokenizer(folder).eos_token_id
    sizes = {
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "eos_token_id": eos,
        "bos_token_id": eos,
        "pad_token_id": eos,
    }
    torch.manual_seed(0)
    # A window far below the context: keys outside it must not be seen.
    alike: dict[str, dict[str, Any]] = {
        "qwen3": {"head_dim": 16, "tie_word_embeddings": True},
        "llama": {},
        "mistral": {"sliding_window": 16},
        "gemma2": {"head_dim": 16, "sliding_window": 16},
        "gemma3_text": {"head_dim": 16, "sliding_window": 16, "layer_types": WINDOWED},
        "gpt_oss": {"head_dim": 16, "num_local_experts": 2, "num_experts_per_tok": 1},
        "gpt2": {
            "num_key_value_heads": 4,
            "n_embd": 64,
            "n_layer": 2,
            "n_head": 4,
            "n_positions": 256,
        },
        "mamba": {"state_size": 4},
    }
    config = AutoConfig.for_model(kind, **{**sizes, **alike[kind]})
    model: Any = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        # Three times the usual spread, or every distribution is nearly uniform and tests are easy.
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(3.0)
    model.save_pretrained(folder)
    return folder


def sampler_with(base_model: BaseModel, capacity: int) -> Sampler:
    """Return a sampler from the base weights, with room for the keys of `capacity` tokens."""
    return Sampler(
        PackedForward(base_model.sampled),
        partial(KeptDecoder, base_model.sampled),
        lambda _weights: None,
        str,
        capacity,
        base_model.missing,
    )


def at_once(pieces: Pieces[T]) -> T:
    """Return what an operation in pieces returns, where nobody else waits."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            result: T = end.value
            return result


class DigitEnv(Env):
    """One turn: the reward is the share of digits among the tokens of the reply, plus a handicap.

    A random model may say no digit in a whole batch. What a member of a group is given beforehand
    keeps the rewards of the group from being all equal: `size` members have the handicaps 0 to
    `size - 1`, and the sum is divided by `size`.
    """

    def __init__(
        self, prompt: list[int], digits: frozenset[int], stop: list[int], handicap: int, size: int
    ) -> None:
        self._prompt = prompt
        self._digits = digits
        self._stop = stop
        self._handicap = handicap
        self._size = size

    async def initial_observation(self) -> tuple[tinker.ModelInput, list[int]]:
        return tinker.ModelInput.from_ints(self._prompt), self._stop

    async def step(self, action: Sequence[int], *, extra: Any = None) -> StepResult:
        share = sum(token in self._digits for token in action) / max(1, len(action))
        return StepResult(
            reward=(share + self._handicap) / self._size,
            episode_done=True,
            next_observation=tinker.ModelInput.empty(),
            next_stop_condition=self._stop,
        )


@dataclass(frozen=True)
class DigitGroup(EnvGroupBuilder):
    """A group of `size` rollouts of one prompt."""

    prompt: tuple[int, ...]
    digits: frozenset[int]
    stop: int
    size: int

    async def make_envs(self) -> Sequence[Env]:
        return [
            DigitEnv(list(self.prompt), self.digits, [self.stop], place, self.size)
            for place in range(self.size)
        ]


class DigitDataset(RLDataset):
    """`steps` batches of `groups` groups."""

    def __init__(self, model: str, steps: int, groups: int, size: int) -> None:
        tokenizer = AutoTokenizer.from_pretrained(model)
        self._prompts = [
            tuple(tokenizer.encode(f"the price is {number}. answer with one number: "))
            for number in range(groups)
        ]
        self._digits = frozenset(
            token for text, token in tokenizer.get_vocab().items() if text.isdigit()
        )
        self._stop = tokenizer.eos_token_id
        self._steps, self._size = steps, size

    def __len__(self) -> int:
        return self._steps

    def get_batch(self, index: int) -> Sequence[EnvGroupBuilder]:
        return [
            DigitGroup(prompt, self._digits, self._stop, self._size) for prompt in self._prompts
        ]


@chz.chz
class DigitDatasetBuilder(RLDatasetBuilder):
    """Builds a `DigitDataset`."""

    model: str
    steps: int = 2
    groups: int = 4
    size: int = 4

    async def __call__(self) -> tuple[RLDataset, RLDataset | None]:
        return DigitDataset(self.model, self.steps, self.groups, self.size), None
