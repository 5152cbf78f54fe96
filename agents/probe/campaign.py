"""A trainer on all groups: each case is run and judged, what is wrong tried with another seed."""

import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokengym.agents.probe.estimators import group_means
from tokengym.agents.probe.fit import Fit
from tokengym.agents.probe.steps import Training
from tokengym.agents.probe.verdict import ProbeVerdict, VerdictKind, confirmed, percent, worst
from tokengym.envs.core.errors import OptionError

ALL_WORLDS, REFERENCE = "all groups", "reference"
"""Cases of every trainer: a first update on all groups, and one with a KL penalty."""


@dataclass(frozen=True)
class ProbedTrainer:
    """A trainer that is run here.

    Attributes:
        title: name and version.
        columns: its settings by the name of a column.
        runs: columns and cases, each run and judged by itself.
        run: trains, given a case, settings and a seed.
    """

    title: str
    columns: Mapping[str, Mapping[str, Any]]
    runs: Sequence[tuple[str, str]]
    run: Callable[[str, Mapping[str, Any], int], Training]


@dataclass(frozen=True)
class CaseResult:
    """Result of one case.

    Attributes:
        column: name of the settings.
        case: name of the case.
        verdict: the one of its steps that deserves most attention.
        weights: by world, how its group was weighted; empty unless the case is `ALL_WORLDS`.
    """

    column: str
    case: str
    verdict: ProbeVerdict
    weights: Mapping[str, str]


def require_known(settings: Mapping[str, Any], known: Iterable[str], owner: str) -> None:
    """Refuse settings that a trainer does not have.

    Raises:
        OptionError: naming the first of them.
    """
    if unknown := settings.keys() - set(known):
        raise OptionError(f"--set takes settings of {owner}, it has no {min(unknown)!r}")


def run_campaign(trainer: ProbedTrainer, command: str, seed: int = 0) -> Iterator[CaseResult]:
    """Run and judge all cases of a trainer.

    Args:
        trainer: the trainer.
        command: shows the same again, for people.
        seed: the first one; the next one confirms what is wrong.
    """
    for column, case in trainer.runs:
        training = _quietly(trainer, column, case, seed)
        first, second = worst(training.verdicts()), None
        if first.kind is VerdictKind.WRONG:
            second = worst(_quietly(trainer, column, case, seed + 1).verdicts())
        weights = world_weights(training) if case == ALL_WORLDS else {}
        yield CaseResult(column, case, confirmed(first, second, command), weights)


def _quietly(trainer: ProbedTrainer, column: str, case: str, seed: int) -> Training:
    """Train without what trainers print and warn of, which would bury the verdicts."""
    nowhere = io.StringIO()
    with redirect_stdout(nowhere), redirect_stderr(nowhere), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return trainer.run(case, trainer.columns[column], seed)


def world_weights(training: Training) -> dict[str, str]:
    """Return how the first step weighted each group beside `spread`'s, where 1 is right.

    A group's part of the update is compared with what the rewards, centred by group, would have
    made of it. A difference that rounding can explain is `-`.
    """
    batch, step = training.steps[0]
    fit, table = Fit(batch.table, step.change_P), batch.table
    weights_K = fit.weights_K()
    due_N = batch.rewards_N - group_means(batch.rewards_N, batch.groups_N)
    due_K = np.where(batch.own_K, due_N[table.rollout_K], 0.0)
    due_size = float(np.linalg.norm(table.scores_PK @ due_K))
    cells, standard = {}, 0.0
    for number, world in enumerate(dict.fromkeys(rollout.group for rollout in batch.rollouts)):
        here_K = (batch.groups_N == number)[table.rollout_K]
        part_P = table.scores_PK[:, here_K] @ weights_K[here_K]
        due_P = table.scores_PK[:, here_K] @ due_K[here_K]
        size, due = float(np.linalg.norm(part_P)), float(np.linalg.norm(due_P)) / due_size
        if max(size, due) < 1e-4:
            cells[world] = "0" if due == 0.0 else "-"
            continue
        if due == 0.0:
            cells[world] = f"{percent(size)} of the update, where nothing is due"
            continue
        factor = float(part_P @ due_P) / (due * due_size) ** 2
        standard = standard or factor
        rest = float(np.linalg.norm(part_P - factor * due_P)) / size if size else 0.0
        off = f" (off by {percent(rest)})" if rest > 0.01 else ""
        cells[world] = f"{factor / standard:.2g}{off}"
    return cells
