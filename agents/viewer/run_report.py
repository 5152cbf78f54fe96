"""A finished run as a report, from its folder alone: what happened, references, figures, ties."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from tokengym.agents.evaluation.plan import AFTER, BEFORE, WARM
from tokengym.agents.evaluation.run_ties import run_ties
from tokengym.agents.evaluation.trained import Evaluated, Trained, read_trained
from tokengym.agents.reports.report import Cell, Chart, Report, Table
from tokengym.agents.scale.level_scale import ladder_of
from tokengym.agents.training.config import Command, JobConfig
from tokengym.agents.training.folder.monitor import StepRow
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.viewer.episode_report import episode_table
from tokengym.agents.viewer.forecast_report import forecast_parts
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.registry import scripted_opponent, spec
from tokengym.rewards.estimates import Estimate, mean_estimate

_SKILL = (
    "Skill is (return - baseline) / (oracle - baseline) on the same held-out Tasks, paired: 0 is "
    "the best input-independent baseline, 1 the oracle."
)
_LEARNED_FROM: Mapping[Command, str] = {
    "train": "rewards",
    "sft": "demonstrations",
    "dpo": "preferences",
}
_WHEN = {BEFORE: "before training", WARM: "after the warm start", AFTER: "after training"}


@dataclass(frozen=True)
class Side:
    """A trained role of a run, in one world, for people.

    Attributes:
        name: of what is trained: the role, or, of several worlds, the world's tag.
        config: of the run, in this world by itself.
        role: the role.
        found: what it came to.
        alone: whether the run trains nothing else.
    """

    name: str
    config: JobConfig
    role: str
    found: Trained
    alone: bool = True

    @property
    def spec(self) -> WorldSpec:
        """The world."""
        return spec(self.config.world)

    @property
    def title(self) -> str:
        """The world, or the role and whom it is evaluated against."""
        if self.name != self.role or len(self.config.trained_roles) == 1:
            return f"{self.spec.id} ({self.config.level})"
        scripts = {role: scripted_opponent(self.spec, role) for role in self.spec.roles}
        named = {**scripts, **self.spec.opponents, **self.config.opponents}
        others = [f"{who} {role}" for role, who in named.items() if role != self.role]
        return f"{self.role}, held out against {', '.join(others)}"

    @property
    def lead(self) -> str:
        """The change and the best input-independent baseline, in at most 25 words."""
        before, after = self._before, self.found.after
        value, count = f"{after.result.earned.value:.3f}", len(after.earned_T)
        came = f"earns {value} on {count} held-out Tasks"
        if before is not None:
            gain = self._gain(before.earned_T)
            change = _verdict(gain, "gained {}", "lost {}", "changed by {},")
            went = f"{before.result.earned.value:.3f} to {value}"
            came = f"{change} on {gain.samples} held-out Tasks ({went})"
        name = self.config.model.rpartition("/")[2]
        blind = fmean(self.found.scale.used.blind_T)
        return f"{name} {came}; the best input-independent baseline earns {blind:.3f}."

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield findings, each by name: how it was trained, earnings, standing and skill."""
        config, found, result = self.config, self.found, self.found.after.result
        label = config.options.get("label")
        read = f"{f'label {label}, ' if label else ''}{result.prompt} prompts"
        if result.temperature is not None:
            read += f", temperature {result.temperature:g}"
            read += f", at most {result.max_tokens} tokens a reply"
        as_role = f" as {self.role}" if len(self.spec.roles) > 1 else ""
        place = f"{self.spec.short_name}:{config.level}{as_role}"
        yield "trained on", f"{_LEARNED_FROM[config.command]} in {place} ({read})"
        kind = "return" if found.scale.expected is None else "expected return"
        for name, each in found.policies.items():
            yield f"{kind} {_WHEN[name]}", f"{each.result.earned} on {len(each.earned_T)} Tasks"
        if self._before is not None:
            yield (
                "gain on the Tasks played before and after",
                _told(self._gain(self._before.earned_T)),
            )
        yield (
            "over the best input-independent baseline",
            _told(self._gain(found.scale.used.blind_T)),
        )
        yield from found.findings()

    def _gain(self, other_T: Sequence[float]) -> Estimate:
        """Return what the trained policy earns more than another, on the Tasks of both."""
        after = np.array(self.found.after.earned_T[: len(other_T)])
        return mean_estimate((after - np.array(other_T)).tolist())

    @property
    def _before(self) -> Evaluated | None:
        """The policy before training; `None` if it was not played."""
        return self.found.policies.get(BEFORE)

    def heading(self, what: str) -> str:
        """Return a heading, with the role or the world where the run has several."""
        return what if self.alone else f"{what}: {self.title}"

    def returns(self) -> Table:
        """Lay out what policies earn: the trained one first, then the others from the best."""
        scale = self.found.scale
        expected = scale.expected is not None
        played = {_WHEN[name]: each.result for name, each in self.found.policies.items()}
        rows = [(name, result.earned) for name, result in played.items()]
        rows += sorted(scale.lines.items(), key=lambda item: -item[1].value)
        note = "Intervals are those of Student's t over Tasks."
        if expected:
            note += (
                " Expected returns are averages over what may happen, given what is shown: they "
                "have no noise of outcomes."
            )
        ladder = ladder_of(self.spec, self.config.level, self.role)
        called = {} if ladder is None else {rung.policy: rung.name for rung in ladder.rungs}
        cells: list[Sequence[Cell]] = [
            (
                (called[name], name) if name in called else name,
                f"{mean.value:.4f}",
                mean.interval("{:.4f}".format),
                f"{mean.samples}",
            )
            for name, mean in rows
        ]
        title = self.heading(f"{'Expected return' if expected else 'Return'} on held-out Tasks")
        return Table(("policy", "mean return", "95 % interval", "Tasks"), cells, title, note)

    def figures(self) -> Table:
        """Lay out what the episodes achieved before and after."""
        ends = {BEFORE: self._before, AFTER: self.found.after}
        tables = {when: each.table for when, each in ends.items() if each is not None}
        return episode_table(self.spec, tables, self.heading("Results of the episodes"))

    def forecasts(self) -> list[Table | Chart]:
        """Lay out how well probabilities were stated, where the world has any."""
        names = self.spec.calibration or ("", "")
        pairs = [
            [(end.get(names[0]), end.get(names[1])) for end in each.table.ends] if each else []
            for each in (self._before, self.found.after)
        ]
        known = [[(y, p) for y, p in side if y is not None and p is not None] for side in pairs]
        return forecast_parts(*known)


def run_report(run: RunFolder) -> Report:
    """Lay out a finished run.

    Raises:
        OptionError: if it is unfinished.
    """
    found, outcome = read_trained(run), run.finished
    config, steps = run.config, run.step_log(replies=False).current()
    sides = [
        Side(name, *part, found[name], alone=len(found) == 1)
        for name, part in config.trained.items()
    ]
    parts: list[Table | Chart] = [side.returns() for side in sides]
    parts += [table for side in sides if (table := side.figures()).rows]
    for side in sides if config.further else sides[:1]:
        parts += side.forecasts()
    lines = [side.lead for side in sides]
    lines += filter(None, (side.found.after.result.form_warning for side in sides))
    facts = [Table(("", ""), list(side.facts()), side.heading("Figures"), _SKILL) for side in sides]
    if steps and config.rolls_out:
        ties = run_ties(run)
        facts[0] = replace(facts[0], rows=[*facts[0].rows, ("groups", ties.summary)])
        parts.append(ties.table())
    facts[0] = replace(facts[0], rows=[*facts[0].rows, *_summary(config, steps)])
    lost = outcome.collapse
    warning = lost and (
        f"Collapsed at step {lost.since}: {lost.reason}. The last good checkpoint is kept. "
        f"Try: {lost.advice}."
    )
    title = ", ".join(dict.fromkeys(f"{side.spec.id} ({side.config.level})" for side in sides))
    return Report(title, lines, [*facts, *parts], warning or "")


def _verdict(difference: Estimate, more: str, less: str, unknown: str) -> str:
    """State a paired difference in the words for it, and whether chance explains it."""
    size = f"{abs(difference.value):.3f} {difference.around}"
    if _is_shown(difference):
        return (more if difference.value > 0.0 else less).format(size)
    return f"{unknown.format(difference)} perhaps by chance,"


def _is_shown(difference: Estimate) -> bool:
    return difference.samples > 1 and (difference.low > 0.0 or difference.high < 0.0)


def _told(difference: Estimate) -> str:
    """State a difference, whether chance explains it, and how many Tasks would tell."""
    verdict = _verdict(difference, "{}, more than chance", "-{}, more than chance", "{}:")
    if _is_shown(difference):
        return verdict
    return f"{verdict} about {difference.samples_to_show():,} Tasks would tell"


def _summary(config: JobConfig, steps: Sequence[StepRow]) -> Iterator[tuple[str, str]]:
    """Yield what a run's steps took, by name."""
    seconds = sum(row.seconds for row in steps)
    tokens = f"{sum(row.tokens for row in steps):,.0f} tokens"
    groups, size = config.groups_per_batch, config.group_size
    if config.rolls_out:
        yield "steps", f"{len(steps)} steps of {groups} groups of {size} in {seconds:.0f} s"
        yield "rollouts", f"{tokens} read and sampled"
        yield from _group_counts(steps)
        return
    sft = config.command == "sft"
    data = f"{groups * size} demonstrations" if sft else f"{groups * size // 2} preference pairs"
    yield "supervised steps", f"{len(steps)} steps of {data} in {seconds:.0f} s"
    yield "examples", f"{tokens} trained on"


def _group_counts(steps: Sequence[StepRow]) -> Iterator[tuple[str, str]]:
    """Yield how the groups were used; nothing where the loop does not count them."""
    counted = [row.metrics for row in steps if "groups/drawn" in row.metrics]
    if not counted:
        return

    def total(name: str) -> str:
        return f"{sum(metrics[name] for metrics in counted):.0f}"

    yield (
        "groups drawn",
        f"{total('groups/drawn')}: {total('groups/tie')} tied and "
        f"{total('groups/resolution')} spread by no more than the resolution; "
        f"{total('groups/further')} were drawn instead of such groups for "
        f"{total('tokens/further')} tokens, and {total('groups/trained')} were trained on",
    )
