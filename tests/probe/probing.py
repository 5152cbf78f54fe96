"""Probes the plain trainer: what tests of faults and of clean settings share."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import torch

from tests.probe.plain_trainer import PlainTrainer, Settings, logprobs
from tokengym.agents.probe.batch import ProbeBatch
from tokengym.agents.probe.documented import DocumentedUpdate
from tokengym.agents.probe.judge import judge
from tokengym.agents.probe.policy import Checkpoint, tiny_model
from tokengym.agents.probe.rollouts import ProbeRollout
from tokengym.agents.probe.scores import ScoreTable, draw_coordinates, score_table
from tokengym.agents.probe.steps import Training
from tokengym.agents.probe.update import update
from tokengym.agents.probe.verdict import ProbeVerdict
from tokengym.agents.probe.worlds import WORLDS, designed_rollouts
from tokengym.rewards.arrays import Ints

FEW = tuple(one for one in WORLDS if one.name in {"spread", "lengths", "two turns"})
"""Enough for settings that are right."""


@lru_cache(maxsize=4)
def first_table(
    seed: int, few: bool, temperature: float, left: bool, padding: bool = False
) -> ScoreTable:
    """Score a batch of designed rollouts at the first weights, for trainers that start there."""
    model = tiny_model(seed)
    rollouts, at = batch_of(seed, few), dict(model.named_parameters())
    of_padding = {"left_padding": left, "padding": padding}
    return score_table(model, at, rollouts, places(), temperature=temperature, **of_padding)


def batch_of(seed: int, few: bool = False) -> list[ProbeRollout]:
    return designed_rollouts(seed, worlds=FEW if few else WORLDS)


def places() -> dict[str, Ints]:
    return draw_coordinates({n: p.numel() for n, p in tiny_model().named_parameters()})


def probe(
    settings: Settings, seed: int = 0, said: Sequence[DocumentedUpdate] = (), few: bool = False
) -> ProbeVerdict:
    """Judge the first update of a trainer."""
    rollouts, own = batch_of(seed, few), settings.temperature
    before, after = trained(settings, rollouts, seed)
    table = first_table(seed, few, own, False)
    return judge(
        ProbeBatch(rollouts, table, table.logprob_K),
        update(before, after, places()),
        said,
        lambda temperature, *padded: first_table(seed, few, temperature or own, *padded),
    )


def trained(
    settings: Settings, rollouts: Sequence[ProbeRollout], seed: int
) -> tuple[Checkpoint, Checkpoint]:
    """Return the checkpoints before and after one update."""
    trainer = PlainTrainer(tiny_model(seed), settings)
    before = trainer.checkpoint()
    trainer.step(rollouts)
    return before, trainer.checkpoint()


def probe_steps(
    settings: Settings,
    rollouts: Sequence[ProbeRollout],
    seed: int = 0,
    rows: Sequence[Sequence[int] | None] = (None, None),
) -> list[ProbeVerdict]:
    """Judge several updates on one batch, all with ratios to the first weights."""
    trainer = PlainTrainer(tiny_model(seed), settings)
    with torch.no_grad():
        old = logprobs(trainer.model, rollouts, replace(settings, fault=""))[0]
    checkpoints = [trainer.checkpoint()]
    for here in rows:
        trainer.step(rollouts, old, here)
        checkpoints.append(trainer.checkpoint())
    return Training(tiny_model(seed), rollouts, checkpoints, settings.temperature).verdicts()
