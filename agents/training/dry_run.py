"""A dry run of a job: its first prompt, one group of rollouts, and what the whole would cost."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tinker_cookbook.rl.rollouts import do_group_rollout

from tokengym.agents.execution.run_async import run_async
from tokengym.agents.rollouts import RolloutOrigin, RolloutRecord
from tokengym.agents.tinker.group_records import TokenTexts
from tokengym.agents.training.batches.sampling import SeededRollouts
from tokengym.agents.training.connection import Connection
from tokengym.agents.training.cost import EpisodeTokens, job_cost
from tokengym.agents.training.folder.run_summary import form_warning
from tokengym.agents.training.job import Job
from tokengym.agents.training.session import TrainingSession


def dry_run(job: Job, prices: Sequence[float]) -> Iterator[str]:
    """Play the first training Task of a job; yields what to show, by line.

    Nothing is trained and nothing is kept.

    Args:
        job: the job.
        prices: dollars per million tokens read, written and trained on; 0 where not known.

    Raises:
        ServiceRefusedError: if the service answered with an error.
    """

    async def play() -> tuple[str, list[RolloutRecord]]:
        async with TrainingSession.open(job, connection) as session:
            return await connection.guard(_first_group(session))

    with Connection.open(job.target, seed=job.config.seed) as connection:
        prompt, records = run_async(play())
    yield from _described(job, prompt, records)
    cost = job_cost(job, EpisodeTokens.of_records(records))
    yield f"The job, by these replies: {cost}"
    flags = "--price-read, --price-written and --price-trained, in dollars per million tokens"
    known = f"about ${cost.dollars(prices):,.2f}" if any(prices) else f"give prices with {flags}"
    yield f"cost: {known}"


async def _first_group(session: TrainingSession) -> tuple[str, list[RolloutRecord]]:
    """Roll out the first group of a job; returns its prompt as rendered, and its records."""
    job = session.job
    completer = await session.completer(session.start(state=False))
    dataset, _ = await job.dataset(session.opponents)()
    records: list[RolloutRecord] = []
    origin = RolloutOrigin("check", policy=job.config.model)
    group = replace(dataset.get_batch(0)[0], origin=origin, record=records.extend)
    strategy = SeededRollouts((job.config.seed, 0, 0))
    rolled = await do_group_rollout(group, completer, strategy=strategy)
    first = rolled.trajectories_G[0].transitions[0].ob.to_ints()
    return "".join(TokenTexts(job.codec).pieces(first)), records


def _described(job: Job, prompt: str, records: Sequence[RolloutRecord]) -> Iterator[str]:
    """Yield the prompt, the rewards and the share of well-formed replies of a group."""
    tokens = records[0].own_turns[0].prompt_tokens
    yield f"The first prompt of {job.title}, as the model reads it ({tokens} tokens):"
    yield f"{prompt}\n"
    for role in dict.fromkeys(record.role for record in records):
        returns = [record.total for record in records if record.role == role]
        of_role = f", {role}" if len(job.roles) > 1 else ""
        earned = " ".join(f"{value:.4f}" for value in returns)
        yield f"One group of {len(returns)}{of_role}: rewards {earned}"
        if len(set(returns)) == 1:
            yield "All are equal: such a group teaches nothing."
    replies = [turn for record in records for turn in record.own_turns]
    yield f"The first reply: {replies[0].said!r}"
    malformed = sum(turn.malformed for turn in replies) / len(replies)
    cut_off = sum(record.cut_off for record in records) / len(replies)
    repeating = sum(record.repeating for record in records) / len(replies)
    length = sum(turn.completion_tokens or 0 for turn in replies) / len(replies)
    yield (
        f"{1 - malformed:.0%} of {len(replies)} replies are well-formed, {cut_off:.0%} were cut "
        f"off at {job.max_tokens} tokens; {length:.0f} tokens each on average"
    )
    if warning := form_warning(malformed, cut_off, repeating, job.world.prompt):
        yield warning
