"""How far apart sampling and training put the log-probabilities of the same tokens, on any service.

Policy gradients weigh a token by the ratio of its two probabilities. Where a server samples with
other kernels, numbers or weights than it trains with, that ratio is not one even on fresh samples.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import tinker
from numpy.typing import ArrayLike

from tokengym.agents.reports.report import Table
from tokengym.agents.toy_model import MODEL_DIR, TOY_MODEL
from tokengym.agents.training.batches.datums import datum, laid_out
from tokengym.agents.training.connection import Connection, ServiceRefusedError
from tokengym.agents.training.job import Job
from tokengym.agents.training.policy_trainers import service_session
from tokengym.envs.core.task import Task
from tokengym.envs.tokens.episode import Episode
from tokengym.rewards.arrays import Flags, Floats, Ints

LOW, HIGH = 0.9, 1.1
"""Bounds of an importance ratio that a clipped loss hardly notices."""
_LEARNING_RATE = 5e-4
_FLOOR = -100.0  # below the logarithm of any float32


@dataclass(frozen=True)
class ScoredReply:
    """A sampled reply.

    Attributes:
        prompt: tokens it was sampled after.
        tokens: the reply's.
        sampled: natural log-probability that each was sampled with, [T].
        trained: the same of the training forward pass, [T].
    """

    prompt: list[int]
    tokens: list[int]
    sampled: Floats
    trained: Floats

    @property
    def whole(self) -> list[int]:
        """Tokens of prompt and reply."""
        return [*self.prompt, *self.tokens]

    @property
    def gaps(self) -> Floats:
        """Trained less sampled, [T]: logarithms of the importance ratios."""
        return self.trained - self.sampled


@dataclass(frozen=True)
class Gap:
    """How far the log-probabilities of some tokens are apart.

    Attributes:
        tokens: how many there are.
        mean: of trained less sampled, in nats; minus the divergence from the sampler, estimated.
        rms: root of the mean square.
        largest: largest absolute one.
        outside: share of importance ratios outside [`LOW`, `HIGH`].
        equal: share whose two log-probabilities are the same number.
    """

    tokens: int
    mean: float
    rms: float
    largest: float
    outside: float
    equal: float

    @classmethod
    def of(cls, gaps: Floats) -> "Gap":
        """Describe the gaps of at least one token, [N]."""
        return cls(
            tokens=len(gaps),
            mean=float(gaps.mean()),
            rms=float(np.sqrt(np.square(gaps).mean())),
            largest=float(np.abs(gaps).max()),
            outside=float(_outside(gaps).mean()),
            equal=float((gaps == 0).mean()),
        )


@dataclass(frozen=True)
class Measurement:
    """One service's gaps at one moment.

    Attributes:
        service: what was measured, for people.
        model: the model's name there.
        steps: optimizer steps on random advantages before.
        all: all tokens.
        by_position: by place in the reply, from 1, doubling.
        by_length: by tokens of prompt and reply together, doubling.
        replies: how many there are.
        replies_outside: share of replies whose product of ratios is outside [`LOW`, `HIGH`].
        scored: the replies themselves.
    """

    service: str
    model: str
    steps: int
    all: Gap
    replies: int
    replies_outside: float
    by_position: Mapping[str, Gap]
    by_length: Mapping[str, Gap]
    scored: Sequence[ScoredReply] = field(repr=False, compare=False)

    @classmethod
    def of(
        cls, service: str, model: str, steps: int, scored: Sequence[ScoredReply]
    ) -> "Measurement":
        """Describe at least one reply of at least one token."""
        gaps = np.concatenate([reply.gaps for reply in scored])
        places = np.concatenate([np.arange(1, 1 + len(reply.tokens)) for reply in scored])
        lengths = [len(reply.whole) for reply in scored]
        wholes = np.array([reply.gaps.sum() for reply in scored])
        return cls(
            service,
            model,
            steps,
            Gap.of(gaps),
            len(scored),
            float(_outside(wholes).mean()),
            _binned(gaps, places),
            _binned(gaps, np.repeat(lengths, [len(reply.tokens) for reply in scored])),
            scored,
        )


def measure_numerics(
    job: Job, tasks: Sequence[Task], samples: int, steps: int
) -> list[Measurement]:
    """Measure a job's service with a new adapter, and after a few steps on random advantages.

    Args:
        job: world, model, service, rank, temperature and longest reply.
        tasks: Tasks whose first Turns are the prompts, at least one.
        samples: replies to each.
        steps: optimizer steps, which move the adapter away from zero.

    Raises:
        ServiceRefusedError: if the service cannot be reached, or refuses what is asked for.
    """
    name = "local service" if job.target.local else job.target.base_url or "hosted service"
    prompts = [list(Episode(job.world.fork(), task, job.codec).observation) for task in tasks]
    with (
        TemporaryDirectory() as scratch,
        Connection.open(job.target, Path(scratch), job.config.seed) as connection,
    ):
        work = connection.guard(_scored(job, connection, prompts, samples, steps))
        return [
            Measurement.of(name, Path(connection.model).name, done, scored)
            for done, scored in asyncio.run(work).items()
        ]


def on_our_service(job: Job) -> Job:
    """Return a job on a local service: of its model, if that is on this machine, or the package's.

    The reference beside another's service.
    """
    target = replace(job.target, base_url=None, local=True)
    if Path(target.model).is_dir():
        return replace(job, target=target)
    config = replace(job.config, model=TOY_MODEL, renderer="", base_url=None)
    return Job.resolve_on(replace(target, model=str(MODEL_DIR.resolve())), config)


def numerics_report(measured: Sequence[Measurement]) -> tuple[list[str], list[Table]]:
    """Return what was measured in sentences and in tables."""
    services = list(dict.fromkeys(item.service for item in measured))
    last = [next(item for item in reversed(measured) if item.service == one) for one in services]
    names = dict(zip(services, "AB", strict=False))
    lines = [
        f"{names[item.service]}: {item.service}, {item.model}, after {item.steps} steps: root mean "
        f"square {item.all.rms:.2g} nats, {item.all.outside:.2%} of {item.all.tokens} ratios and "
        f"{item.replies_outside:.2%} of {item.replies} replies' products outside [{LOW}, {HIGH}]"
        for item in last
    ]
    if len({item.model for item in last}) > 1:
        lines.append("The models differ: B says what is possible, not what A's model would have.")
    header = ["", "tokens", "mean", "rms", "largest", "outside", "equal"]
    every = [[names[item.service], *_cells(item.all), str(item.steps)] for item in measured]
    parts = [Table([*header, "steps"], every, "All tokens, in nats")]
    for title, name in (("By place in the reply", "by_position"), ("By length", "by_length")):
        bins = list(dict.fromkeys(label for item in last for label in getattr(item, name)))
        rows = [
            [names[item.service], *_cells(getattr(item, name)[label]), label]
            for label in sorted(bins, key=lambda label: int(label.partition("-")[0]))
            for item in last
            if label in getattr(item, name)
        ]
        parts.append(Table([*header, "from-to"], rows, f"{title}, after {last[0].steps} steps"))
    return lines, parts


def to_dict(measured: Sequence[Measurement]) -> dict[str, Any]:
    """Return measurements as JSON values."""
    figures = [asdict(replace(item, scored=())) for item in measured]
    for item in figures:
        del item["scored"]
    return {"bounds": [LOW, HIGH], "measured": figures}


async def _scored(
    job: Job, connection: Connection, prompts: Sequence[list[int]], samples: int, steps: int
) -> dict[int, list[ScoredReply]]:
    """Return replies before the first and after the last step, by the steps before them."""
    config, scored = job.config, {}
    advantages = np.random.default_rng(config.seed)
    async with service_session(connection.base_url) as service:
        client = await service.create_lora_training_client(
            connection.model, rank=config.lora_rank, seed=config.seed
        )
        for step in range(steps + 1):
            replies = await _sample(job, client, prompts, samples, config.seed + step)
            if step in (0, steps):
                scored[step] = await _score(client, replies)
            if step < steps:
                data = [
                    datum(
                        reply.whole, [*reply.sampled], [*advantages.normal(size=len(reply.tokens))]
                    )
                    for reply in replies
                ]
                await client.forward_backward(data, "importance_sampling")
                await client.optim_step(tinker.AdamParams(learning_rate=_LEARNING_RATE))
    return scored


async def _sample(
    job: Job, client: tinker.TrainingClient, prompts: Sequence[list[int]], samples: int, seed: int
) -> list[ScoredReply]:
    """Sample replies with the client's present weights, as training does."""
    sampler = await client.save_weights_and_get_sampling_client()
    asked = [
        sampler.sample(
            tinker.ModelInput.from_ints(prompt),
            samples,
            tinker.SamplingParams(
                max_tokens=job.max_tokens,
                temperature=job.config.temperature,
                seed=seed * len(prompts) + place,
                stop=job.codec.stop,
            ),
        )
        for place, prompt in enumerate(prompts)
    ]
    replies = []
    for prompt, answer in zip(prompts, await asyncio.gather(*asked), strict=True):
        for sequence in answer.sequences:
            if sequence.logprobs is None or len(sequence.logprobs) != len(sequence.tokens):
                raise ServiceRefusedError("the service returns no log-probability with each token")
            sampled = _floored(sequence.logprobs)
            replies.append(ScoredReply(prompt, list(sequence.tokens), sampled, sampled))
    return [reply for reply in replies if reply.tokens]


async def _score(
    client: tinker.TrainingClient, replies: Sequence[ScoredReply]
) -> list[ScoredReply]:
    """Return replies with what the training forward pass makes of them."""
    data = [
        laid_out(reply.whole, weights=[0.0] * len(reply.prompt) + [1.0] * len(reply.tokens))
        for reply in replies
    ]
    answer = await client.forward(data, "cross_entropy")
    return [
        replace(reply, trained=_floored(output["logprobs"].to_numpy()[-len(reply.tokens) :]))
        for reply, output in zip(replies, answer.loss_fn_outputs, strict=True)
    ]


def _floored(logprobs: ArrayLike) -> Floats:
    """Return log-probabilities with a number in place of those that are none."""
    given = np.nan_to_num(np.asarray(logprobs, np.float64), nan=_FLOOR, neginf=_FLOOR)
    return np.maximum(given, _FLOOR)


def _outside(gaps: Floats) -> Flags:
    outside: Flags = (gaps < np.log(LOW)) | (gaps > np.log(HIGH))
    return outside


def _binned(gaps: Floats, sizes: Ints) -> dict[str, Gap]:
    """Return the gaps of tokens by size, in bins that double: 1-1, 2-3, 4-7, ..."""
    powers = np.log2(sizes).astype(int)
    return {
        f"{2**power}-{2 ** (power + 1) - 1}": Gap.of(gaps[powers == power])
        for power in np.unique(powers).tolist()
    }


def _cells(gap: Gap) -> list[str]:
    figures = (f"{value:.2g}" for value in (gap.mean, gap.rms, gap.largest))
    return [str(gap.tokens), *figures, f"{gap.outside:.2%}", f"{gap.equal:.0%}"]
