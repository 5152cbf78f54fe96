"""What groups of a model say before anybody pays for its training: faults, limits, settings."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.rollouts import RolloutRecord
from tokengym.agents.training.cost import Cost, EpisodeTokens, job_cost
from tokengym.agents.training.presets import preset
from tokengym.rewards.clustered import best_of_k
from tokengym.rewards.estimates import Estimate

if TYPE_CHECKING:
    from tokengym.agents.training.job import Job

_SIZES = (4, 8, 16)
_USEFUL = 0.8
"""Share of groups with an advantage that the smallest group size recommended has."""
_CUT_OFF, _MALFORMED = 0.2, 0.5
_WHOLE, _ROOM = 0.99, 1.25
"""A limit leaves a quarter more than 99 % of the replies that came to their end."""
_LEAST, _STEP = 16, 8
_NEAR = 0.9
"""Share of the way from the best blind policy to the oracle from which a level is too easy."""


@dataclass(frozen=True)
class FirstPlay:
    """A model's groups at one level, before it is trained.

    Attributes:
        cut_off: share of its replies that ran out of tokens.
        repeating: share of its replies that repeated themselves until they did.
        copied: share of its replies that copy a line or a placeholder of the prompt.
        read: tokens that an episode reads, on average.
        written: tokens that an episode's replies have, on average.
        best_of: by k, what the best of k rollouts of a Task earns.
        references: what the scripted policies of the scale earn.
        command: the command of the recommended run.
        cost: its tokens.
        reasons: why these settings, in sentences.
    """

    cut_off: float
    repeating: float
    copied: float
    read: float
    written: float
    best_of: Mapping[int, Estimate]
    references: Mapping[str, Estimate]
    command: str
    cost: Cost
    reasons: tuple[str, ...]

    @classmethod
    def of(
        cls,
        job: "Job",
        world: EvaluatedWorld,
        groups: Sequence[Sequence[RolloutRecord]],
        useful: Mapping[int, float],
    ) -> Self:
        """Describe groups, and recommend level, group size and limit.

        Args:
            job: by which the model played.
            world: where.
            groups: of equal size.
            useful: by group size, the chance that a group has an advantage.
        """
        records = [record for group in groups for record in group]
        replies = sum(len(record.own_turns) for record in records)
        cut_off, repeating, copied, malformed = (
            sum(map(count, records)) / replies
            for count in (
                lambda record: record.cut_off,
                lambda record: record.repeating,
                lambda record: record.copied,
                lambda record: record.malformed,
            )
        )
        earned_TK = np.array([[record.earned for record in group] for group in groups])
        powers = [size for size in (1, *_SIZES) if size <= earned_TK.shape[1]]
        tokens, ends = EpisodeTokens.of_records(records), world.scale.ends
        size = next((one for one in _SIZES if useful.get(one, 0.0) >= _USEFUL), _SIZES[-1])
        limit, about_limit = _limit(job.max_tokens, records, cut_off - repeating)
        lacks_form = malformed > _MALFORMED
        level, about_level = _level(world, ends.skill(float(earned_TK.mean())), lacks_form)
        usual = preset(job.config.world, level, model=job.config.model)
        planned: dict[str, Any] = {"level": level, "group_size": size, "max_tokens": limit}
        planned |= {"evaluation_tasks": usual.evaluation_tasks, "evaluate_before": None}
        config = replace(job.config, **planned)
        cost = job_cost(replace(job, config=config), {config.tag: tokens})
        words = ["tokengym", "train", f"{world.world.spec.short_name}:{level}"]
        words += ["--model", job.config.model, "--group-size", str(size)]
        words += ["--max-tokens", str(limit)]
        words += ["--start", job.config.start] if job.config.start else []
        for name, value in world.place.options.items():
            words += [
                "--option",
                f"{name}={value if isinstance(value, str) else json.dumps(value)}",
            ]
        return cls(
            cut_off=cut_off,
            repeating=repeating,
            copied=copied,
            read=tokens.read / tokens.episodes,
            written=tokens.sampled / tokens.episodes,
            best_of={k: best_of_k(earned_TK, k) for k in powers},
            references=world.scale.lines,
            command=shlex.join(words),
            cost=cost,
            reasons=tuple(filter(None, [*about_level, about_limit, *_about_size(useful, size)])),
        )

    def lines(self) -> Iterator[str]:
        """Yield the figures and what they recommend, in sentences."""
        yield (
            f"{self.cut_off:.1%} of the replies were cut off ({self.repeating:.1%} while they "
            f"repeated themselves), {self.copied:.1%} copied the prompt; an episode reads "
            f"{self.read:,.0f} tokens and writes {self.written:,.0f}."
        )
        yield from self.reasons
        yield f"Recommended: {self.command} ({self.cost} by these replies)"


def _limit(limit: int, records: Sequence[RolloutRecord], cut_off: float) -> tuple[int, str]:
    """Return the limit of a reply to take, and why.

    Args:
        limit: that was played with.
        records: the rollouts.
        cut_off: share of the replies that it cut off while they were getting somewhere.
    """
    turns = [turn for record in records for turn in record.own_turns if turn.complete]
    if cut_off > _CUT_OFF:
        return 2 * limit, f"{cut_off:.0%} of the replies would have gone on after {limit} tokens."
    if not turns:
        return limit, ""
    whole = float(np.quantile([turn.completion_tokens or 0 for turn in turns], _WHOLE))
    needed = -int(-_ROOM * whole // _STEP) * _STEP
    return min(limit, max(_LEAST, needed)), f"99 % of the whole replies took {whole:.0f} tokens."


def _level(world: EvaluatedWorld, skill: float, lacks_form: bool) -> tuple[str, list[str]]:
    """Return the level to train at, and why it is not the one that was played."""
    levels, level = world.world.spec.levels, world.world.level
    if lacks_form:
        form = "Most replies are malformed: teach the form first, by --warm-start or tokengym sft."
        return (level, [form]) if level == levels[0] else (levels[0], [form, "Begin at the first."])
    harder = levels[levels.index(level) + 1 :]
    if skill >= _NEAR and harder:
        return harder[0], [f"{level} is nearly solved before training (skill {skill:.2f})."]
    return level, []


def _about_size(useful: Mapping[int, float], size: int) -> Iterator[str]:
    if size in useful:
        yield f"{useful[size]:.0%} of the groups of {size} have an advantage."
