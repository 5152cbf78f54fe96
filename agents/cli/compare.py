"""`tokengym compare`: several finished runs on the same held-out Tasks, as one table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tokengym.agents.cli.shown import show
from tokengym.agents.rollouts import RolloutRecord, evaluation_segment
from tokengym.agents.training.config import DistilConfig, DpoConfig, JobConfig, SftConfig
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.folder.run_summary import Evaluation, RunSummary
from tokengym.agents.training.setting_groups import SelfPlaySettings
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import spec
from tokengym.rewards.skill import describe_skill

_TEST = ("world", "level", "options", "evaluation_tasks", "model", "temperature", "max_tokens")
"""Settings of a run that make up its test."""


def compare(
    runs: Annotated[list[Path], typer.Argument(help="run folders of `tokengym train`")],
) -> None:
    """Compare finished runs on the same held-out Tasks."""
    from tokengym.agents.analysis.report import Table
    from tokengym.agents.analysis.run_ties import FIGURES_NOTE, figure_rows, run_ties

    read = [(run, run.finished, run.config) for run in map(RunFolder, runs)]
    _require_one_test([config for *_, config in read])
    _require_one_answer([run for run, *_ in read])
    rows = []
    for run, outcome, config in read:
        for role in outcome.references:
            before, after = (played.of(role).earned for played in (outcome.before, outcome.after))
            skill = describe_skill(outcome.skill(role).after)
            earned = str(before), str(after), skill, str(after.samples)
            rows.append((run.name, training_method(config), role, *earned))
    scripts: dict[tuple[str, str], tuple[str, ...]] = {}
    for _, outcome, _ in read:
        for role, references in outcome.references.items():
            for name, value in sorted(references.lines.items(), key=lambda item: -item[1].value):
                line = name, "script", role, "", str(value), "", str(value.samples)
                scripts.setdefault((role, name), line)
    header = "run", "trained by", "role", "before", "after", "skill", "Tasks"
    show(Table(header, [*rows, *scripts.values()]))
    for place in _places(read):
        typer.echo(place)
    stepped = [run for run, _, config in read if config.rolls_out and run.steps_done]
    if stepped:
        figures = figure_rows([[run_ties(run)] for run in stepped])
        show(Table(("training", *(run.name for run in stepped)), figures, note=FIGURES_NOTE))
    if pairs := _pairs(read):
        note = (
            "returns are expected ones where they are known; p by Holm; 'could show' is the "
            "smallest difference found in four of five cases"
        )
        show(Table(("difference of", "role", "return", "p", "could show"), pairs, note=note))


def _places(read: Sequence[tuple[RunFolder, RunSummary, JobConfig]]) -> list[str]:
    """Return between which rungs of its level's ladder each run ended, as far as that is known."""
    return [
        f"{run.name}, {role}: {place}"
        for run, outcome, _ in read
        for role in outcome.references
        if (place := outcome.place(role, outcome.after)) is not None
    ]


def _pairs(read: Sequence[tuple[RunFolder, RunSummary, JobConfig]]) -> list[tuple[str, ...]]:
    """Return the differences of every two runs after training, as evaluations state them."""
    from tokengym.agents.evaluation.results import Played, compared
    from tokengym.agents.evaluation.rollout_table import Returns

    def returns(after: Evaluation) -> Returns:
        paid_T, mean_T = np.array(after.returns_by_task), np.array(after.expected_by_task)
        return Returns(paid_T[:, None], mean_T[:, None] if mean_T.size else None)

    played = [
        Played(config.world, config.level, role, run.name, returns(outcome.after.of(role)))
        for run, outcome, config in reversed(read)
        for role in outcome.references
    ]
    return [
        (
            f"{pair.first} - {pair.second}",
            role,
            str(pair.difference),
            f"{pair.p_corrected:.3f}",
            f"{pair.detectable:.3f}",
        )
        for role, pair in compared(played)
    ]


def training_method(config: JobConfig) -> str:
    """Return in a few words how a run was trained."""
    match config:
        case DpoConfig(preferences=run):
            how = f"preferences of {Path(run).name}"
        case DistilConfig(teacher=run):
            how = f"teacher {Path(run).name}"
        case SftConfig():
            how = "demonstrations"
        case SelfPlaySettings(self_play=True, separate=separate):
            how = "self-play, own policies" if separate else "self-play"
        case _:
            how = "rewards"
    return how if config.start is None else f"{how}, from {Path(config.start).name}"


def _require_one_test(several: list[JobConfig]) -> None:
    """Refuse runs whose held-out returns are not of the same Tasks, opponents and sampling.

    A Task is the same in another wording: models of different sizes get different prompts. How
    replies are sampled belongs to the test: the same policy earns more at a low temperature.

    Raises:
        OptionError: naming the first thing that differs.
    """
    first = several[0]
    for other in several[1:]:
        for name in _TEST:
            ours, theirs = _test_part(first, name), _test_part(other, name)
            if ours != theirs:
                raise OptionError(f"runs to compare need one {name}, got {ours!r} and {theirs!r}")
        for role in {*first.trained_roles} & {*other.trained_roles}:
            ours, theirs = _opponents(first, role), _opponents(other, role)
            if ours != theirs:
                raise OptionError(
                    f"runs to compare need one set of opponents of {role}, got {ours} and {theirs}"
                )


def _require_one_answer(runs: Sequence[RunFolder]) -> None:
    """Refuse runs whose held-out Tasks had different answers.

    Raises:
        OptionError: with their number.
    """
    first: dict[object, RolloutRecord] = {}
    for run in runs:
        rows = list(run.rollouts.read(evaluation_segment("after")))
        known = [first.setdefault((r.world, r.level, r.role, r.origin.group), r) for r in rows]
        if differ := sum(not one.is_of(row) for one, row in zip(known, rows, strict=True)):
            raise OptionError(
                f"{differ} of {len(rows)} answers in {run.folder} differ from those in "
                f"{runs[0].folder}: tokengym evaluate, with --policy for each run, plays them again"
            )


def _test_part(config: JobConfig, name: str) -> object:
    if name == "options":
        options = {**config.options, **spec(config.world).evaluation}
        return {option: value for option, value in options.items() if option != "prompt"}
    return getattr(config, name)


def _opponents(config: JobConfig, role: str) -> dict[str, str]:
    named = {**spec(config.world).opponents, **config.opponents}
    return {other: who for other, who in named.items() if other != role}
