"""A model's first groups, played before its training is paid for: faults, limits, settings."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
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

_FAULTS = ("malformed", "cut_off", "repeating", "copied")
_USEFUL = 0.8
"""Share of groups with an advantage that the smallest group size recommended has."""
_CUT_OFF, _MALFORMED = 0.2, 0.5
_WHOLE, _ROOM = 0.99, 1.25
"""A limit leaves a quarter more than 99 % of the replies that came to their end."""
_LEAST, _STEP = 16, 8
_NEAR = 0.9
"""Skill from which a level is too easy."""


@dataclass(frozen=True)
class FirstPlay:
    """A model's groups at one level, before it is trained.

    Attributes:
        shares: of its replies, those that are `malformed`, were `cut_off`, were `repeating`
            themselves until then, or have `copied` a line or a placeholder of the prompt.
        read: tokens that an episode reads, on average.
        written: tokens that an episode's replies have, on average.
        best_of: by k, what the best of k rollouts of a Task earns.
        references: what the scripted policies of the scale earn.
        command: the command of the recommended run.
        cost: its tokens.
        reasons: why these settings, in sentences.
    """

    shares: Mapping[str, float]
    read: float
    written: float
    best_of: Mapping[int, Estimate]
    references: Mapping[str, Estimate]
    command: str
    cost: Cost
    reasons: Sequence[str]

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
        shares = {
            name: sum(getattr(record, name) for record in records) / replies for name in _FAULTS
        }
        earned_TK = np.array([[record.earned for record in group] for group in groups])
        size = next((one for one in sorted(useful) if useful[one] >= _USEFUL), max(useful))
        limit, about_limit = _limit(job.max_tokens, records, shares)
        skill = world.scale.ends.skill(float(earned_TK.mean()))
        level, about_level = _level(world, skill, shares["malformed"])
        tokens, model = EpisodeTokens.of_records(records), job.config.model
        usual = preset(job.config.world, level, model=model)
        planned: dict[str, Any] = {"level": level, "group_size": size, "max_tokens": limit}
        planned |= {"evaluation_tasks": usual.evaluation_tasks, "evaluate_before": None}
        config = replace(job.config, **planned)
        named = {"model": model, "group-size": size, "max-tokens": limit, "start": config.start}
        words = [f"--{name}={value}" for name, value in named.items() if value is not None]
        words += [
            f"--option={name}={value if isinstance(value, str) else json.dumps(value)}"
            for name, value in world.place.options.items()
        ]
        live = f"{useful[size]:.0%} of the groups of {size} have an advantage."
        return cls(
            shares=shares,
            read=tokens.read / tokens.episodes,
            written=tokens.sampled / tokens.episodes,
            best_of={
                k: best_of_k(earned_TK, k) for k in sorted({1, *useful}) if k <= earned_TK.shape[1]
            },
            references=world.scale.lines,
            command=shlex.join(
                ["tokengym", "train", f"{world.world.spec.short_name}:{level}", *words]
            ),
            cost=job_cost(replace(job, config=config), tokens),
            reasons=[*filter(None, (about_level, about_limit, live))],
        )

    def lines(self) -> Iterator[str]:
        """Yield the figures and what they recommend, in sentences."""
        yield (
            "Of the replies {malformed:.1%} were malformed, {cut_off:.1%} cut off ({repeating:.1%} "
            "while they repeated themselves), and {copied:.1%} copied the prompt".format(
                **self.shares
            )
            + f"; an episode reads {self.read:,.0f} tokens and writes {self.written:,.0f}."
        )
        yield from self.reasons
        yield f"Recommended: {self.command} ({self.cost} by these replies)"


def _limit(
    limit: int, records: Sequence[RolloutRecord], shares: Mapping[str, float]
) -> tuple[int, str]:
    """Return the limit of a reply to take, and why.

    Args:
        limit: that was played with.
        records: the rollouts.
        shares: of faults; a longer limit is no use to replies that repeat themselves.
    """
    cut_off = shares["cut_off"] - shares["repeating"]
    if cut_off > _CUT_OFF:
        return 2 * limit, f"{cut_off:.0%} of the replies would have gone on after {limit} tokens."
    turns = [turn for record in records for turn in record.own_turns if turn.complete]
    if not turns:
        return limit, ""
    whole = float(np.quantile([turn.completion_tokens or 0 for turn in turns], _WHOLE))
    needed = ceil(_ROOM * whole / _STEP) * _STEP
    return min(limit, max(_LEAST, needed)), f"99 % of the whole replies took {whole:.0f} tokens."


def _level(world: EvaluatedWorld, skill: float, malformed: float) -> tuple[str, str]:
    """Return the level to train at, and why it is not simply the one that was played."""
    levels, level = world.world.spec.levels, world.world.level
    if malformed > _MALFORMED:
        return levels[0], "Teach the form first, by --warm-start or tokengym sft."
    harder = levels[levels.index(level) + 1 :]
    if skill >= _NEAR and harder:
        return harder[0], f"{level} is nearly solved before training (skill {skill:.2f})."
    return level, ""
