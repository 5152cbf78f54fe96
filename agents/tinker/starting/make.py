"""Make the starting policy: a small causal language model trained to imitate demonstrations.

Run `python -m tokengym.agents.tinker.starting.make --out DIR`. The result depends on the arguments
and the versions of torch and transformers only.
"""

import argparse
import itertools
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from tokengym.agents.tinker.starting.demonstrations import MIXTURES, conversations

log = logging.getLogger("tokengym.starting")

PAD, OPEN, CLOSE = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
VOCABULARY = 1024
HEAD = 32
TOKENIZER_TEXTS = 4000
SENSIBLE_SHARE = 0.85

Example = tuple[list[int], list[bool]]


def make_tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer in which every digit is a token of its own."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"[0-9]"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            special_tokens=[PAD, OPEN, CLOSE],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=CLOSE,
        pad_token=PAD,
        additional_special_tokens=[OPEN, CLOSE],
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


def make_model(tokenizer: PreTrainedTokenizerFast, width: int, layers: int) -> Qwen3ForCausalLM:
    """Return an untrained Qwen3 model of about `12 * layers * width**2` parameters."""
    fields: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": width,
        "intermediate_size": 3 * width,
        "num_hidden_layers": layers,
        "num_attention_heads": width // HEAD,
        "num_key_value_heads": width // HEAD,
        "head_dim": HEAD,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": tokenizer.convert_tokens_to_ids(CLOSE),
        "pad_token_id": tokenizer.convert_tokens_to_ids(PAD),
    }
    return Qwen3ForCausalLM(Qwen3Config(**fields))


def encode(tokenizer: PreTrainedTokenizerFast, messages: list[dict[str, str]]) -> Example:
    """Return the tokens of a conversation and which of them the policy says."""
    tokens: list[int] = []
    own: list[bool] = []
    for message in messages:
        speaks = message["role"] == "assistant"
        head = tokenizer.encode(f"{OPEN}{message['role']}\n", add_special_tokens=False)
        body = tokenizer.encode(f"{message['content']}{CLOSE}", add_special_tokens=False)
        tail = tokenizer.encode("\n", add_special_tokens=False)
        tokens += head + body + tail
        own += [False] * len(head) + [speaks] * len(body) + [False] * len(tail)
    return tokens, own


def batches(
    tokenizer: PreTrainedTokenizerFast, tokens_a_batch: int, seed: int, *, sensible: bool
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield padded token ids and labels, both `(batch, length)`; like lengths go together."""
    told = conversations(MIXTURES, seed, sensible=sensible)
    stream = (encode(tokenizer, messages) for messages in told)
    while True:
        pool = sorted(itertools.islice(stream, 512), key=lambda example: len(example[0]))
        ready: list[list[Example]] = [[]]
        for example in pool:
            if (len(ready[-1]) + 1) * len(example[0]) > tokens_a_batch:
                ready.append([])
            ready[-1].append(example)
        order = torch.randperm(len(ready)).tolist()
        for number in order:
            yield collate(ready[number], tokenizer.pad_token_id)


def collate(examples: list[Example], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pad examples on the right; labels are -100 wherever the policy does not speak."""
    length = max(len(tokens) for tokens, _ in examples)
    ids = torch.full((len(examples), length), pad)
    labels = torch.full((len(examples), length), -100)
    for row, (tokens, own) in enumerate(examples):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        labels[row, : len(tokens)] = torch.where(torch.tensor(own), torch.tensor(tokens), -100)
    return ids, labels


def train(
    model: Qwen3ForCausalLM,
    data: Iterator[tuple[torch.Tensor, torch.Tensor]],
    steps: int,
    learning_rate: float,
) -> None:
    """Imitate for `steps` batches: AdamW, a short warm-up, then a cosine down to a tenth."""
    optimizer = torch.optim.AdamW(model.parameters(), learning_rate, (0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, learning_rate, total_steps=steps, pct_start=0.05, final_div_factor=10
    )
    model.train()
    for step, (ids, labels) in enumerate(itertools.islice(data, steps)):
        # bfloat16 products halve the time where the processor has them, and are emulated elsewhere.
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss: torch.Tensor = model(input_ids=ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 50 == 0:
            log.info("step %d of %d: loss %.4f", step, steps, loss.item())


def main() -> None:
    """Make the policy and write its directory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="directory to write")
    parser.add_argument("--steps", type=int, default=2400)
    parser.add_argument("--tokens", type=int, default=4096, help="tokens a batch")
    parser.add_argument("--width", type=int, default=160)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.manual_seed(arguments.seed)
    talks = conversations(MIXTURES, arguments.seed + 1, sensible=False)
    told = itertools.islice(talks, TOKENIZER_TEXTS)
    tokenizer = make_tokenizer([message["content"] for talk in told for message in talk])
    model = make_model(tokenizer, arguments.width, arguments.layers)
    log.info("%d parameters", sum(p.numel() for p in model.parameters()))
    first, then = (
        batches(tokenizer, arguments.tokens, arguments.seed, sensible=sensible)
        for sensible in (True, False)
    )
    data = itertools.chain(itertools.islice(first, int(SENSIBLE_SHARE * arguments.steps)), then)
    train(model, data, arguments.steps, arguments.learning_rate)
    arguments.out.mkdir(parents=True, exist_ok=True)
    model.half().save_pretrained(arguments.out)
    tokenizer.save_pretrained(arguments.out)


if __name__ == "__main__":
    main()
