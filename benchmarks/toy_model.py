"""Teach the toy model of the package: a small causal language model that imitates demonstrations.

    python benchmarks/toy_model.py --out DIR

Teaching goes on from the policy that is shipped, of 1.5 million parameters. The demonstrations are
episodes of the best textbook rule of each first level in the form it writes, then of a mixture with
legal random play, so that rewards alone have something to tell apart. A policy that has not read
its Tasks is refused.
"""

import argparse
import itertools
import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from tokengym.agents.toy_model import MODEL_DIR
from tokengym.envs.core.play import Policy, play
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world

log = logging.getLogger("tokengym.toy_model")

OPEN, CLOSE = "<|im_start|>", "<|im_end|>"
PAD_ID = 0
SURE = (0.5, 0.7, 0.9)

LEAST_READ = 0.3
"""Nats by which the log-probability of a first choice must exceed that of a uniform one."""
_CHECKED = 64
_CHOICE = 0.75
"""Largest share of the commonest token at a place where replies choose."""

Example = tuple[list[int], list[bool]]


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
        case: pattern of the parts of a first prompt that differ from Task to Task.
    """

    world: str
    level: str
    sensible: str
    policies: Mapping[str, float]
    edit: Callable[[str], str] | None = None
    case: str = r"[\s\S]+"

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
    shares: Sequence[tuple[DemonstrationMix, float]],
    seed: int,
    *,
    sensible: bool,
    brief: bool = False,
) -> Iterator[list[dict[str, str]]]:
    """Yield endless demonstrations as chat messages: `user` is the world, `assistant` the policy.

    Only training Tasks are played. In a world of several roles each episode shows the side of one
    role, drawn at random: a policy that plays against itself has to play all of them.

    Args:
        shares: weight of each mixture, relative to the others.
        seed: seed of the Tasks and the policies.
        sensible: whether only the sensible baselines play.
        brief: whether a first prompt is only its Task's `case`, without the rules.
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
        asked = [
            role for role in world.spec.roles if any(turn.role == role for turn in record.turns)
        ]
        role = asked[int(rng.integers(len(asked)))]
        messages: list[dict[str, str]] = []
        pattern = shares[chosen][0].case
        for turn, reply in zip(record.turns, record.replies, strict=False):
            if turn.role == role:
                first = brief and not messages
                text = "\n".join(re.findall(pattern, turn.text)) if first else turn.text
                messages.append({"role": "user", "content": text})
                messages.append({"role": "assistant", "content": reply})
        yield messages


def without_route(reply: str) -> str:
    """Remove the slots from a trip: a model of this size does not learn to copy them."""
    return reply.split(":", 1)[0]


def in_tenths(reply: str) -> str:
    """Round powers up to tenths of a kW: the reserve is kept, and there is less to learn."""
    return re.sub(
        r"-?\d+\.?\d*", lambda power: f"{math.ceil(round(10 * float(power[0]), 6)) / 10:.1f}", reply
    )


def with_one_number(reply: str) -> str:
    """Give a report's label 50, 70 or 90 %, whichever is closest, and the others equal shares."""

    def changed(line: re.Match[str]) -> str:
        report = np.array(line[1].split(), dtype=float)
        sure = min(SURE, key=lambda level: abs(level - report.max()))
        shares = np.where(np.arange(len(report)) == report.argmax(), sure, (1.0 - sure) / 2)
        return "P " + " ".join(f"{share:.3f}" for share in shares)

    return re.sub(r"^P (.*)$", changed, reply, flags=re.MULTILINE)


def verdict(reply: str) -> str:
    """Leave a label and its report `with_one_number`, without claims."""
    return "\n".join(with_one_number(reply).split("\n")[:2])


@dataclass(frozen=True)
class TrainingStage:
    """One stage of training, with its own learning-rate schedule.

    Attributes:
        shares: weight of each mixture of demonstrations, relative to the others.
        steps: optimizer steps.
        tokens: tokens per batch, padding included.
        learning_rate: peak of the schedule.
        sensible: share of the steps, from the first, that imitate only the sensible baselines.
        brief: whether first prompts leave out the rules, which are the same in every Task: a step
            then reads four times as many.
    """

    shares: Sequence[tuple[DemonstrationMix, float]]
    steps: int
    tokens: int
    learning_rate: float
    sensible: float = 1.0
    brief: bool = False


FORECAST = DemonstrationMix(
    "tokengym/Forecast-v1", "easy", "empirical", {"empirical": 2, "random": 3}
)
EVENING = DemonstrationMix(
    "tokengym/Energy-v2",
    "evening",
    "backward",
    {"backward": 3, "random": 1},
    in_tenths,
    r"\A.*?(?=\. Run )|h load[\s\S]+",
)
AISLE = DemonstrationMix(
    "tokengym/Warehouse-v1",
    "aisle",
    "textbook",
    {"textbook": 3, "random": 1},
    without_route,
    r"t=0 open[\s\S]+",
)
FIRST_YEAR = DemonstrationMix(
    "tokengym/Disruption-v2",
    "first_year",
    "logistic",
    {"logistic": 1, "random": 1},
    verdict,
    r"\A[\s\S]+?(?=\nn_i cite)",
)
TO_READ = (EVENING, AISLE, FIRST_YEAR)
"""Levels whose Tasks the policy must have read; a test says so of its likeliest forecasts."""
SMALL = DemonstrationMix(
    "tokengym/Energy-v2", "small", "time_of_use", {"time_of_use": 3, "random": 1}
)
PICK = DemonstrationMix(
    "tokengym/Warehouse-v1",
    "pick",
    "edd_exact",
    {"edd_exact": 1, "noisy": 1, "random": 1},
    without_route,
)
DEBATE = DemonstrationMix(
    "tokengym/Disruption-v2", "L2", "logistic", {"logistic": 1, "random": 1}, with_one_number
)
# Little of the longer levels, so that their form is not forgotten.
_FORMS = ((SMALL, 0.05), (PICK, 0.1), (DEBATE, 0.15))
STAGES = (
    TrainingStage(
        ((FORECAST, 3), (EVENING, 3), (AISLE, 7), (FIRST_YEAR, 3), *_FORMS), 300, 3072, 2e-3
    ),
    TrainingStage(
        ((FORECAST, 4), (EVENING, 4), (AISLE, 9), (FIRST_YEAR, 3)), 400, 3072, 1.5e-3, brief=True
    ),
    # Of these 280 steps the shipped policy had 200, with two parts of random play to three.
    TrainingStage(
        ((FORECAST, 5), (EVENING, 4), (AISLE, 5), (FIRST_YEAR, 2), *_FORMS), 280, 3072, 1.2e-3, 0.5
    ),
    TrainingStage(
        ((FORECAST, 4), (EVENING, 3), (AISLE, 8), (FIRST_YEAR, 1.5), *_FORMS),
        320,
        3072,
        1.2e-3,
        0.65,
    ),
)


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
    demonstrations = conversations(stage.shares, seed, sensible=sensible, brief=stage.brief)
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


def first_choices(
    model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, mixture: DemonstrationMix
) -> tuple[float, int]:
    """Return how likely a policy finds the first choice of the sensible baseline.

    The choice is the first token of a reply that differs among Tasks it was not taught.

    Returns:
        mean log-probability, in nats, and the number of different choices.
    """
    talks = conversations(((mixture, 1.0),), _CHECKED, sensible=True)
    examples = [encode(tokenizer, talk) for talk in itertools.islice(talks, _CHECKED)]
    starts = [own.index(True) for _, own in examples]
    for place in itertools.count():
        chosen = [
            tokens[start + place] for (tokens, _), start in zip(examples, starts, strict=True)
        ]
        counts = Counter(chosen)
        if max(counts.values()) <= _CHOICE * len(chosen):
            break
    likely = []
    with torch.no_grad():
        for (tokens, _), start in zip(examples, starts, strict=True):
            logits = model(input_ids=torch.tensor([tokens[: start + place]])).logits[0, -1]
            likely.append(float(logits.log_softmax(-1)[tokens[start + place]]))
    return float(np.mean(likely)), len(counts)


def require_reading(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast) -> None:
    """Refuse a policy whose first choices at a first level are as good as uniform.

    Raises:
        SystemExit: naming the level and both log-probabilities.
    """
    for mixture in TO_READ:
        likely, choices = first_choices(model, tokenizer, mixture)
        log.info("%s: first choice %.2f, uniform %.2f", mixture.level, likely, -math.log(choices))
        if likely < LEAST_READ - math.log(choices):
            raise SystemExit(
                f"the policy does not read {mixture.level}: its first choice has log-probability "
                f"{likely:.2f}, a uniform one {-math.log(choices):.2f}"
            )


def main() -> None:
    """Teach the model, and write its directory if it reads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="directory to write")
    parser.add_argument("--start", type=Path, default=MODEL_DIR, help="model to go on from")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.manual_seed(arguments.seed)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(arguments.start)
    # Eager attention: the fused one's gradient takes twice as long on a processor.
    model = Qwen3ForCausalLM.from_pretrained(
        arguments.start, dtype=torch.float32, attn_implementation="eager"
    )
    for stage in STAGES:
        train(model, tokenizer, stage, arguments.seed)
    require_reading(model, tokenizer)
    model.half().save_pretrained(arguments.out)
    tokenizer.save_pretrained(arguments.out)


if __name__ == "__main__":
    main()
