"""A finished run as a report, from its folder alone: what happened, references, figures, ties."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tokengym.agents.evaluation.plan import AFTER, BEFORE, WARM
from tokengym.agents.evaluation.run_ties import run_ties
from tokengym.agents.evaluation.trained import Evaluated, Trained, read_trained
from tokengym.agents.reports.report import Chart, Report, Table
from tokengym.agents.training.config import Command, JobConfig
from tokengym.agents.training.folder.monitor import StepRow
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.viewer.episode_report import episode_table
from tokengym.agents.viewer.forecast_report import forecast_parts
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.registry import scripted_opponent, spec
from tokengym.rewards.estimates import Estimate, mean_estimate

_SKILL = (
    "Skill is (return - blind) / (oracle - blind) on the same held-out Tasks, paired: 0 is the "
    "best policy that ignores the Task, 1 the oracle."
)
_LEARNED_FROM: Mapping[Command, str] = {
    "train": "rewards",
    "sft": "demonstrations",
    "dpo": "preferences",
    "distil": "a teacher's words",
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
    def what_happened(self) -> str:
        """What was trained, from what to what, and is it more than chance and than blind."""
        config, result, before = self.config, self.found.after.result, self._before
        after = np.array(self.found.after.earned_T)
        lead = mean_estimate((after - np.array(self.found.scale.used.blind_T)).tolist())
        label = config.options.get("label")
        read = f"{f'label {label}, ' if label else ''}{result.prompt} prompts"
        if result.temperature is not None:
            read += f", temperature {result.temperature:g}"
            read += f", at most {result.max_tokens} tokens a reply"
        kind = "return" if self.found.scale.expected is None else "expected return"
        place = f"{self.spec.short_name}:{config.level}"
        as_role = f" as {self.role}" if len(self.spec.roles) > 1 else ""
        ignorant = "the best policy that ignores the Task"
        came = f"came to {kind} {result.earned} on {len(after)} held-out Tasks"
        if before is not None:
            both = len(before.earned_T)
            gain = mean_estimate((after[:both] - np.array(before.earned_T)).tolist())
            verdict = _verdict(gain, "a gain of {}", "a loss of {}", "the difference, {},")
            first = f"on the first {both} " if both < len(after) else ""
            start = f"went from {kind} {before.result.earned} to {result.earned}"
            came = f"{start} on {len(after)} held-out Tasks: {first}{verdict}"
        beyond = _verdict(
            lead,
            f"It earns {{}} more than {ignorant}",
            f"It earns {{}} less than {ignorant}",
            f"Whether it earns more than {ignorant} is open: {{}}",
        )
        return (
            f"{config.model}, trained on {_LEARNED_FROM[config.command]} in {place}{as_role} "
            f"({read}), {came}. {beyond}."
        )

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
        if expected:
            rows += [(f"{name}, on outcomes", one.mean_return) for name, one in played.items()]
        rows += sorted(scale.lines.items(), key=lambda item: -item[1].value)
        note = "Intervals are those of Student's t over Tasks."
        if expected:
            note += (
                " Expected returns are averages over what may happen, given what is shown: they "
                "have no noise of outcomes."
            )
        cells = [
            (name, f"{mean.value:.4f}", mean.interval("{:.4f}".format), f"{mean.samples}")
            for name, mean in rows
        ]
        title = self.heading(f"{'Expected return' if expected else 'Return'} on held-out Tasks")
        return Table(("policy", "mean return", "95 % interval", "Tasks"), cells, title, note)

    def figures(self) -> Table:
        """Lay out what the episodes achieved before and after."""
        ends = {BEFORE: self._before, AFTER: self.found.after}
        tables = {when: each.table for when, each in ends.items() if each is not None}
        return episode_table(self.spec, tables, self.heading("What the episodes achieved"))

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
    lines = [*filter(None, (side.found.after.result.form_warning for side in sides))]
    lines += [side.what_happened for side in sides]
    lines += [f"{side.title}: {finding}" for side in sides for finding in side.found.findings()]
    if steps and config.rolls_out:
        ties = run_ties(run)
        lines.append(ties.summary)
        parts.append(ties.table())
    lines += [*filter(None, [outcome.ending]), _SKILL, _summary(config, steps)]
    lost = outcome.collapse
    warning = lost and (
        f"Collapsed at step {lost.since}: {lost.reason}. The last good checkpoint is kept. "
        f"Try: {lost.advice}."
    )
    title = ", ".join(dict.fromkeys(f"{side.spec.id} ({side.config.level})" for side in sides))
    return Report(title, lines, parts, warning or "")


def _verdict(difference: Estimate, more: str, less: str, unknown: str) -> str:
    """State a paired difference in the words for it, and whether chance explains it."""
    size = f"{abs(difference.value):.3f} {difference.around}"
    if difference.samples > 1 and (difference.low > 0.0 or difference.high < 0.0):
        return f"{(more if difference.value > 0.0 else less).format(size)}, more than chance"
    tasks = f"{difference.samples_to_show():,}"
    return f"{unknown.format(difference)} may be chance (about {tasks} Tasks would tell)"


def _summary(config: JobConfig, steps: Sequence[StepRow]) -> str:
    seconds = sum(row.seconds for row in steps)
    tokens = f"{sum(row.tokens for row in steps):,.0f} tokens"
    groups, size = config.groups_per_batch, config.group_size
    if config.rolls_out:
        took = f"{len(steps)} steps of {groups} groups of {size} in {seconds:.0f} s"
        return f"{took}; {tokens} read and sampled by the rollouts.{_group_counts(steps)}"
    sft = config.command == "sft"
    data = f"{groups * size} demonstrations" if sft else f"{groups * size // 2} preference pairs"
    took = f"{len(steps)} steps of {data} in {seconds:.0f} s"
    return f"Supervised: {took}; {tokens} trained on."


def _group_counts(steps: Sequence[StepRow]) -> str:
    """State how the groups were used; nothing where the loop does not count them."""
    counted = [row.metrics for row in steps if "groups/drawn" in row.metrics]
    if not counted:
        return ""

    def total(name: str) -> str:
        return f"{sum(metrics[name] for metrics in counted):.0f}"

    return (
        f" Of {total('groups/drawn')} groups {total('groups/tie')} tied and "
        f"{total('groups/resolution')} spread by no more than the resolution; "
        f"{total('groups/further')} were drawn in place of such groups for "
        f"{total('tokens/further')} tokens, and {total('groups/trained')} were trained on."
    )
