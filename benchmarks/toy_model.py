"""Train the toy model of the package: a small causal language model that imitates demonstrations.

    python benchmarks/toy_model.py --out DIR

The demonstrations are episodes of sensible and of blind baselines. The result depends only on the
arguments, the worlds and the versions of torch and transformers.
"""

import argparse
import itertools
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from tokengym.envs.core.play import Policy, play
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world

log = logging.getLogger("tokengym.toy_model")

PAD, OPEN, CLOSE = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
PAD_ID = 0  # special tokens come first, in this order
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
VOCABULARY = 1024
HEAD = 32
WIDTH = 160
LAYERS = 4
TOKENIZER_TEXTS = 4000
SURE = (0.5, 0.7, 0.9)

Example = tuple[list[int], list[bool]]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class DemonstrationMix:
    """The baselines that play a world's demonstrations.

    Attributes:
        world: id of the world.
        level: level of the world.
        sensible: the baseline to learn first, on its own: it takes long to learn, and noise would
            make it take longer.
        policies: weight of each baseline afterwards. One is chosen at every turn, so that earlier
            replies do not reveal which one comes next.
        edit: changes a reply before it is shown to the model; `None` for no change.
    """

    world: str
    level: str
    sensible: str
    policies: Mapping[str, float]
    edit: Callable[[str], str] | None = None

    def policy(self, *, sensible: bool) -> Policy:
        """Return the sensible baseline, or the mixture of all."""
        weights = {self.sensible: 1.0} if sensible else self.policies
        policies = [baselines(self.world)[name] for name in weights]
        chances = np.array(list(weights.values())) / sum(weights.values())

        def reply(world: World, turn: Turn, rng: np.random.Generator) -> str:
            text = policies[int(rng.choice(len(policies), p=chances))](world, turn, rng)
            return text if self.edit is None else self.edit(text)

        return reply


def conversations(
    shares: Sequence[tuple[DemonstrationMix, float]], seed: int, *, sensible: bool
) -> Iterator[list[dict[str, str]]]:
    """Yield endless demonstrations as chat messages: `user` is the world, `assistant` the policy.

    Only training Tasks are played. In a world of several roles each episode shows the side of one
    role, drawn at random: a policy that plays against itself has to play all of them.

    Args:
        shares: weight of each mixture, relative to the others.
        seed: seed of the Tasks and the policies.
        sensible: whether only the sensible baselines play.
    """
    rng = generator("demonstrations", seed, sensible)
    worlds = [make_world(mixture.world, mixture.level, prompt="terse") for mixture, _ in shares]
    policies = [mixture.policy(sensible=sensible) for mixture, _ in shares]
    weights = np.array([share for _, share in shares])
    while True:
        chosen = int(rng.choice(len(worlds), p=weights / weights.sum()))
        world = worlds[chosen]
        task = world.task("train", int(rng.integers(2**31)))
        record = play(world, task, policies[chosen])
        role = world.spec.roles[int(rng.integers(len(world.spec.roles)))]
        messages: list[dict[str, str]] = []
        for turn, reply in zip(record.turns, record.replies, strict=False):
            if turn.role == role:
                messages.append({"role": "user", "content": turn.text})
                messages.append({"role": "assistant", "content": reply})
        yield messages


def without_route(reply: str) -> str:
    """Remove the slots from a trip: a model of this size does not learn to copy them."""
    return reply.split(":", 1)[0]


def in_tenths(reply: str) -> str:
    """Round a report's probabilities to tenths, which a model of this size can make sum to one."""
    return _with_report(reply, _tenths, 1)


def with_one_number(reply: str) -> str:
    """Give a report's label 50, 70 or 90 %, whichever is closest, and the others equal shares."""
    return _with_report(reply, _one_number, 3)


def _with_report(reply: str, change: Callable[[FloatArray], FloatArray], decimals: int) -> str:
    """Change the probabilities of a reply."""

    def changed(line: re.Match[str]) -> str:
        report = change(np.array(line[1].split(), dtype=float))
        return "P " + " ".join(f"{share:.{decimals}f}" for share in report)

    return re.sub(r"^P (.*)$", changed, reply, flags=re.MULTILINE)


def _tenths(report: FloatArray) -> FloatArray:
    exact = 10 * report
    tenths = np.floor(exact)
    missing = round(exact.sum() - tenths.sum())
    tenths[np.argsort(tenths - exact, kind="stable")[:missing]] += 1
    return tenths / 10


def _one_number(report: FloatArray) -> FloatArray:
    sure = min(SURE, key=lambda level: abs(level - report.max()))
    return np.where(np.arange(len(report)) == report.argmax(), sure, (1.0 - sure) / 2)


@dataclass(frozen=True)
class TrainingStage:
    """One stage of training, with its own learning-rate schedule.

    Attributes:
        shares: weight of each mixture of demonstrations, relative to the others.
        steps: optimizer steps.
        tokens: tokens per batch, padding included.
        learning_rate: peak of the schedule.
        sensible: share of the steps, from the first, that imitate only the sensible baselines.
    """

    shares: Sequence[tuple[DemonstrationMix, float]]
    steps: int
    tokens: int
    learning_rate: float
    sensible: float = 0.85


FORECAST = DemonstrationMix(
    "tokengym/Forecast-v1", "easy", "empirical", {"empirical": 2, "random": 3}
)
GUESSES = replace(FORECAST, policies={"empirical": 3, "random": 7})
ENERGY = DemonstrationMix(
    "tokengym/Energy-v2", "small", "time_of_use", {"time_of_use": 3, "random": 1}
)
ROUTES = DemonstrationMix(
    "tokengym/Warehouse-v1", "pick", "edd_exact", {"edd_exact": 1, "random": 1}
)
TRIPS = replace(ROUTES, policies={"fcfs": 1, "noisy": 2, "random": 2}, edit=without_route)
REPORTS = DemonstrationMix("tokengym/Disruption-v2", "L2", "logistic", {"logistic": 1, "random": 1})
CLAIMS = replace(REPORTS, sensible="scripted", policies={"scripted": 1, "noisy": 2, "random": 1})
DEBATE = replace(CLAIMS, policies={"scripted": 1, "random": 1})
BELIEFS = replace(REPORTS, edit=in_tenths)
OPINIONS = replace(BELIEFS, policies={"logistic": 1, "random": 2})
TOURS = replace(TRIPS, policies={"edd_exact": 1, "noisy": 1, "random": 1})
VERDICTS = replace(REPORTS, edit=with_one_number)
STAGES = (
    TrainingStage(((FORECAST, 16), (ENERGY, 1), (ROUTES, 1), (REPORTS, 1)), 2400, 4096, 2e-3),
    # Arithmetic takes the longest; the other worlds are kept from being forgotten.
    TrainingStage(((FORECAST, 60), (ENERGY, 1), (ROUTES, 1)), 3000, 2048, 1.5e-3),
    # Plans and debates have longer replies: once forecasts are learned they get the most tokens.
    TrainingStage(((FORECAST, 4), (ENERGY, 1), (ROUTES, 4), (CLAIMS, 4)), 2400, 4096, 1.5e-3),
    TrainingStage(((GUESSES, 3), (ENERGY, 1), (TRIPS, 3), (DEBATE, 5)), 900, 4096, 1.5e-3, 0.5),
    # Reports must sum to one; the mixture that ends a stage is too short to teach that.
    TrainingStage(((FORECAST, 3), (ENERGY, 1), (TRIPS, 2), (DEBATE, 6)), 500, 4096, 1.2e-3, 0.0),
    TrainingStage(((FORECAST, 5), (ENERGY, 0.5), (TRIPS, 1), (DEBATE, 5)), 400, 4096, 1e-3, 0.4),
    TrainingStage(((FORECAST, 5), (ENERGY, 0.5), (TRIPS, 1.5), (DEBATE, 5)), 250, 4096, 8e-4, 0.0),
    # A shift lead's WAIT is rare and three tokens long: its form needs more examples.
    TrainingStage(((FORECAST, 4), (ENERGY, 0.5), (TRIPS, 4), (DEBATE, 3)), 500, 4096, 8e-4, 0.0),
    # The terse prompts' wording changed after the stages above had run; the debate's the most.
    TrainingStage(((FORECAST, 4), (ENERGY, 0.5), (TRIPS, 3), (DEBATE, 6)), 200, 4096, 8e-4, 0.0),
    # So did the families of questions, which have more to read now: their arithmetic once more.
    TrainingStage(((FORECAST, 60), (ENERGY, 1), (TRIPS, 1), (DEBATE, 1)), 1000, 2048, 1.5e-3),
    TrainingStage(((FORECAST, 4), (ENERGY, 0.5), (TRIPS, 3), (DEBATE, 6)), 250, 4096, 8e-4, 0.0),
    # Beliefs about papers take as long to learn as the arithmetic of forecasts.
    TrainingStage(((BELIEFS, 8), (FORECAST, 8), (ENERGY, 0.5), (TRIPS, 2)), 1500, 4096, 1.5e-3),
    TrainingStage(((FORECAST, 4), (ENERGY, 0.5), (TRIPS, 3), (OPINIONS, 6)), 250, 4096, 8e-4, 0.0),
    # At temperature 1 three tenths that were drawn one by one seldom sum to one.
    TrainingStage(
        ((FORECAST, 5), (ENERGY, 0.5), (TOURS, 8), (VERDICTS, 8)), 900, 4096, 1.2e-3, 0.6
    ),
    # Which orders are due first and fit together takes longest of all.
    TrainingStage(
        ((FORECAST, 4), (ENERGY, 0.5), (TOURS, 14), (VERDICTS, 4)), 700, 4096, 1.2e-3, 0.7
    ),
    # One reply in six of a debater was out of form by then.
    TrainingStage(((FORECAST, 4), (ENERGY, 0.5), (TOURS, 5), (VERDICTS, 8)), 300, 4096, 8e-4, 0.0),
    # Forecasts had lost some of their arithmetic to all this.
    TrainingStage(((FORECAST, 60), (ENERGY, 1), (TOURS, 2), (VERDICTS, 2)), 500, 2048, 1.2e-3),
    TrainingStage(((FORECAST, 8), (ENERGY, 0.5), (TOURS, 5), (VERDICTS, 8)), 250, 4096, 8e-4, 0.0),
    # The debate's version 1 shows more: two replies in five were out of form.
    TrainingStage(((FORECAST, 6), (ENERGY, 0.5), (TOURS, 3), (VERDICTS, 9)), 600, 2048, 1e-3, 0.0),
)


def make_tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer in which every digit is a separate token."""
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


def make_model(tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    """Return an untrained Qwen3 model of 1.5 million parameters."""
    fields: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": WIDTH,
        "intermediate_size": 3 * WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": WIDTH // HEAD,
        "num_key_value_heads": WIDTH // HEAD,
        "head_dim": HEAD,
        "max_position_embeddings": 16384,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": tokenizer.convert_tokens_to_ids(CLOSE),
        "pad_token_id": tokenizer.convert_tokens_to_ids(PAD),
    }
    return Qwen3ForCausalLM(Qwen3Config(**fields))


def encode(tokenizer: PreTrainedTokenizerFast, messages: list[dict[str, str]]) -> Example:
    """Return the tokens of a conversation, and which of them are the policy's."""
    tokens: list[int] = []
    own: list[bool] = []
    for message in messages:
        own_message = message["role"] == "assistant"
        head = tokenizer.encode(f"{OPEN}{message['role']}\n", add_special_tokens=False)
        body = tokenizer.encode(f"{message['content']}{CLOSE}", add_special_tokens=False)
        tail = tokenizer.encode("\n", add_special_tokens=False)
        tokens += head + body + tail
        own += [False] * len(head) + [own_message] * len(body) + [False] * len(tail)
    return tokens, own


def batches(
    tokenizer: PreTrainedTokenizerFast, stage: TrainingStage, seed: int, *, sensible: bool
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield padded token ids and labels, both `(batch, length)`, of examples of similar length."""
    demonstrations = conversations(stage.shares, seed, sensible=sensible)
    stream = (encode(tokenizer, messages) for messages in demonstrations)
    while True:
        pool = sorted(itertools.islice(stream, 512), key=lambda example: len(example[0]))
        ready: list[list[Example]] = [[]]
        for example in pool:
            if (len(ready[-1]) + 1) * len(example[0]) > stage.tokens:
                ready.append([])
            ready[-1].append(example)
        order = torch.randperm(len(ready)).tolist()
        for number in order:
            yield collate(ready[number])


def collate(examples: list[Example]) -> tuple[torch.Tensor, torch.Tensor]:
    """Pad examples on the right; labels are -100 except on the policy's tokens."""
    length = max(len(tokens) for tokens, _ in examples)
    ids = torch.full((len(examples), length), PAD_ID)
    labels = torch.full((len(examples), length), -100)
    for row, (tokens, own) in enumerate(examples):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        labels[row, : len(tokens)] = torch.where(torch.tensor(own), torch.tensor(tokens), -100)
    return ids, labels


def train(
    model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, stage: TrainingStage, seed: int
) -> None:
    """Fit demonstrations: AdamW with a short warm-up, then a cosine schedule down to a tenth."""
    first, then = (batches(tokenizer, stage, seed, sensible=sensible) for sensible in (True, False))
    sensible_steps = int(stage.sensible * stage.steps)
    data = itertools.chain(itertools.islice(first, sensible_steps), then)
    peak = stage.learning_rate
    optimizer = torch.optim.AdamW(model.parameters(), peak, (0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, peak, total_steps=stage.steps, pct_start=0.05, final_div_factor=10
    )
    quick = torch.backends.cpu.get_cpu_capability().startswith("AVX512")
    model.train()
    for step, (ids, labels) in enumerate(itertools.islice(data, stage.steps)):
        # bfloat16 products halve the time where the processor has them, and are emulated elsewhere
        # at seven times the time of single precision.
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=quick):
            loss: torch.Tensor = model(input_ids=ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 50 == 0:
            log.info("step %d of %d: loss %.4f", step, stage.steps, loss.item())


def main() -> None:
    """Train the model and write its directory after every stage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="directory to write")
    parser.add_argument(
        "--resume", type=int, default=0, help="stages that the model in --out has completed"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    for number in range(arguments.resume, len(STAGES)):
        torch.manual_seed(arguments.seed)
        if number == 0:
            talks = conversations(STAGES[0].shares, arguments.seed + 1, sensible=False)
            first = itertools.islice(talks, TOKENIZER_TEXTS)
            tokenizer = make_tokenizer([message["content"] for talk in first for message in talk])
            model = make_model(tokenizer)
        else:
            # Through the file and its half precision, so that a resumed run gives the same model.
            tokenizer = PreTrainedTokenizerFast.from_pretrained(arguments.out)
            model = Qwen3ForCausalLM.from_pretrained(arguments.out, dtype=torch.float32)
        train(model, tokenizer, STAGES[number], arguments.seed)
        model.half().save_pretrained(arguments.out)
        tokenizer.save_pretrained(arguments.out)


if __name__ == "__main__":
    main()
