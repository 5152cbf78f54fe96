"""`tokengym compare`: runs and evaluations on the same Tasks, as one table."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import combinations, product
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from tokengym.agents.cli.shown import show
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.plan import AFTER, EvaluationPlace, EvaluationPlan
from tokengym.agents.evaluation.results import PolicyReturns, Results, compared
from tokengym.agents.evaluation.rollout_table import RolloutTable
from tokengym.agents.rollouts import RolloutRecord
from tokengym.agents.scale.level_scale import Scale
from tokengym.agents.training.folder.run import RunFolder
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import spec
from tokengym.rewards.skill import describe_skill


class _Read(NamedTuple):
    """A folder to compare: that of a finished run, or of any evaluation."""

    run: RunFolder
    evaluation: EvaluationFolder
    plan: EvaluationPlan
    scales: Sequence[Scale]
    results: Results

    @classmethod
    def of(cls, folder: Path) -> "_Read":
        """Read a folder.

        Raises:
            OptionError: if it holds no evaluation, or one that is under way.
        """
        run, evaluation = RunFolder(folder), EvaluationFolder.open(folder)
        plan, scales, results = evaluation.saved()
        if results is None or (run.exists and run.outcome is None):
            raise OptionError(f"the evaluation in {folder} is not finished")
        return cls(run, evaluation, plan, scales, results)

    def label(self, policy: str) -> str:
        """Return what tables call a policy: by its folder, where that is a run's."""
        return f"{self.run.name} {policy}" if self.run.exists else policy


def compare(
    folders: Annotated[
        list[Path], typer.Argument(help="folders of finished runs and of `tokengym evaluate`")
    ],
) -> None:
    """Compare what runs and evaluations earned on the same held-out Tasks."""
    from tokengym.agents.evaluation.run_ties import FIGURES_NOTE, figure_rows, run_ties
    from tokengym.agents.reports.report import Table

    read = [_Read.of(folder) for folder in folders]
    for other in read[1:]:
        _require_one_test(read[0].plan.places, other.plan.places)
    pairs = _pairs(read)
    header = "policy", "trained by", "setting", "return", "skill", "Tasks"
    show(Table(header, [*_figures(read), *_scripts(read)]))
    for standing in _standings(read):
        typer.echo(standing)
    runs = [one.run for one in read if one.run.exists]
    stepped = [run for run in runs if run.config.rolls_out and run.steps_done]
    if stepped:
        figures = figure_rows([[run_ties(run)] for run in stepped])
        show(Table(("training", *(run.name for run in stepped)), figures, note=FIGURES_NOTE))
    if pairs:
        note = (
            "returns are expected ones where they are known; p by Holm; 'detectable' is the "
            "smallest true difference that this many Tasks find with a power of 80 %"
        )
        show(Table(("difference of", "setting", "return", "p", "detectable"), pairs, note=note))


def _standings(read: Sequence[_Read]) -> Iterator[str]:
    """Yield each policy's standing among the reference policies of its level, where it is known."""
    for one in read:
        for row in one.results.policies:
            if row.standing:
                yield f"{one.label(row.policy)} in {row.place}: {row.standing}"


def _figures(read: Sequence[_Read]) -> Iterator[tuple[str, ...]]:
    for one in read:
        for row in one.results.policies:
            learned = one.run.exists and row.policy == AFTER
            command = one.run.config.command if learned else ""
            figures = str(row.earned), describe_skill(row.skill), str(row.mean_return.samples)
            yield one.label(row.policy), command, row.place, *figures


def _scripts(read: Sequence[_Read]) -> Iterator[tuple[str, ...]]:
    """Yield what scripted policies earn in each setting, the best first."""
    scripts: dict[tuple[str, str], tuple[str, ...]] = {}
    for one in read:
        for title, scale in zip(one.plan.titles, one.scales, strict=True):
            for name, mean in sorted(scale.lines.items(), key=lambda item: -item[1].value):
                row = name, "script", title, str(mean), "", str(mean.samples)
                scripts.setdefault((title, name), row)
    yield from scripts.values()


def _pairs(read: Sequence[_Read]) -> list[tuple[str, ...]]:
    """Return the differences of policies of a folder, and of folders' policies after training.

    Raises:
        OptionError: if Tasks of two folders had different answers.
    """
    known: dict[object, RolloutRecord] = {}
    every = [list(_played(one, known)) for one in reversed(read)]
    last = [[one for label, one in folder if label in (AFTER, "")] for folder in every]
    couples = [pair for folder in every for pair in combinations([one for _, one in folder], 2)]
    couples += [pair for two in combinations(last, 2) for pair in product(*two)]
    return [
        (
            f"{pair.first} - {pair.second}",
            pair.place,
            str(pair.difference),
            f"{pair.p_corrected:.3f}",
            f"{pair.detectable:.3f}",
        )
        for pair in compared(couples)
    ]


def _played(read: _Read, known: dict[object, RolloutRecord]) -> Iterator[tuple[str, PolicyReturns]]:
    """Yield what each policy of a folder earned, the last first, with its name if that is a run's.

    Raises:
        OptionError: if a Task had another answer than in a folder read before.
    """
    plan = read.plan
    for title, place in zip(plan.titles, plan.places, strict=True):
        for policy in reversed(plan.policies):
            records = list(read.evaluation.records(plan, place, policy))
            _require_each_once(records, f"{read.run.folder}, {title}, {policy}")
            firsts = [known.setdefault((place.test, r.origin.group), r) for r in records]
            if differ := sum(not a.is_of(b) for a, b in zip(firsts, records, strict=True)):
                raise OptionError(
                    f"{differ} of {len(records)} answers in {read.run.folder} differ from those of "
                    "another folder: tokengym evaluate, with --policy for each run, plays them "
                    "again"
                )
            returns = RolloutTable.read(records, spec(place.world).violation).returns(plan.rollouts)
            name = policy if read.run.exists else ""
            yield name, PolicyReturns(title, place, read.label(policy), returns)


def _require_each_once(records: Sequence[RolloutRecord], where: str) -> None:
    """Refuse rollouts that a file holds twice: each would be counted twice.

    Raises:
        OptionError: naming the folder, the policy and how many there are.
    """
    if repeated := len(records) - len({record.origin.place for record in records}):
        raise OptionError(
            f"{where}: {repeated} of {len(records)} rollouts are repeated; "
            "remove the lines that occur twice from its files of rollouts"
        )


def _require_one_test(first: Sequence[EvaluationPlace], other: Sequence[EvaluationPlace]) -> None:
    """Refuse evaluations without a setting in common.

    A Task is the same in another wording: models of different sizes get different prompts. How
    replies are sampled belongs to the setting: the same policy earns more at a low temperature.

    Raises:
        OptionError: naming the first thing that differs.
    """
    if {place.test for place in first} & {place.test for place in other}:
        return
    ours, theirs = asdict(first[0]), asdict(other[0])
    for side in (ours, theirs):
        side["options"].pop("prompt", None)
    name = next(name for name in ours if ours[name] != theirs[name])
    raise OptionError(
        f"evaluations to compare need one {name}, got {ours[name]!r} and {theirs[name]!r}"
    )
