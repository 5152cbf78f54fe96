"""A run as a page: its curves, reference lines, figures before and after, episodes as pictures."""

import json
from collections.abc import Sequence

from tokengym.agents.analysis.episode_report import episode_table
from tokengym.agents.analysis.evaluate import play_all
from tokengym.agents.analysis.example_table import example_table
from tokengym.agents.analysis.forecast_report import forecast_parts
from tokengym.agents.analysis.report import Gallery, Part, Picture, Report, Table, Text
from tokengym.agents.analysis.role_report import RoleReport, role_reports
from tokengym.agents.analysis.run_plots import run_charts
from tokengym.agents.rollouts import RolloutRecord, evaluation_segment
from tokengym.agents.training.folder.monitor import StepRow
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.folder.run_summary import RunSummary
from tokengym.agents.training.job import Job
from tokengym.envs.core.play import PlayedEpisode, record_replies
from tokengym.envs.rendering import has_picture, save_picture
from tokengym.rewards.skill import describe_skill

_KNOWS_ANSWERS = "oracle"
_CURVES = (
    "Pale: each step; bold: smoothed; dots: held-out Tasks before and after, with 95 % intervals. "
    "A group without advantage teaches nothing: its rollouts all earned the same."
)
_SKILL = (
    "Skill is (return - blind) / (oracle - blind) on the same held-out Tasks, paired: 0 is the "
    "best policy that ignores the Task, 1 the oracle."
)


def write_report(job: Job, run: RunFolder) -> None:
    """Write `report.html` and its pictures into a finished run's folder.

    Raises:
        OptionError: if the run is not finished.
    """
    run_report(job, run, run.finished).write(run.folder / "report.html")


def run_report(job: Job, run: RunFolder, outcome: RunSummary) -> Report:
    """Lay out a finished run; its pictures are written into the folder too."""
    steps = run.steps()
    sides = role_reports(job, steps, outcome)
    charts = run_charts(steps, sides)
    (run.folder / "reward.png").write_bytes(charts[0].png)
    played = [(side, [_records(run, side, when) for when in ("before", "after")]) for side in sides]
    examples = (example_table(side, *both) for side, both in played)
    parts: list[Part] = [table for table in examples if table is not None]
    parts.append(Gallery(charts, "Step by step", _CURVES))
    parts += map(_returns, sides)
    opening = len(parts)
    for side, both in played:
        ends = [[record.metrics for record in records] for records in both]
        title = side.heading("What the episodes achieved")
        figures = episode_table(side.job.world.spec, (side.before, side.after), ends, title)
        parts += [figures] if figures.rows else []
    first_of_each = sides if job.others else sides[:1]
    for side in first_of_each:
        parts += forecast_parts(side.before.stated, side.after.stated)
    parts += _replies(steps)
    for side in first_of_each:
        parts += _episodes(run, side)
    parts.append(Text(json.dumps(job.config.to_dict(), indent=2, sort_keys=True), "Settings"))
    lost, warning = outcome.collapse, ""
    if lost is not None:
        warning = f"Collapsed at step {lost.since}: {lost.reason}. Try: {lost.advice}."
    headlines = [side.what_happened for side in sides]
    headlines += [f"{s.title}: {finding}" for s in sides for finding in outcome.findings(s.name)]
    lines = [*headlines, *filter(None, [outcome.ending]), _SKILL, _summary(job, steps)]
    title = ", ".join(other.title for other in (job, *job.others))
    return Report(title, lines, parts, warning, _facts(job, steps, outcome), opening)


def _facts(job: Job, steps: Sequence[StepRow], outcome: RunSummary) -> list[tuple[str, str]]:
    first, *others = job.trained
    of_first = f", {first}" if others else ""
    skill, whens = outcome.skill(first), ("before", "after")
    dead = [row.dead_share for row in steps if row.loss is None]
    returns = [f"{mean.value:.3f}" for mean in (outcome.before.earned, outcome.after.earned)]
    skills = map(describe_skill, (skill.before, skill.after))
    facts = [
        (f"{what} {when}{of_first}", shown)
        for what, both in (("return", returns), ("skill", skills))
        for when, shown in zip(whens, both, strict=True)
    ]
    facts.append(("steps", f"{len(steps)}"))
    if dead:
        facts.append(("dead groups", f"{sum(dead) / len(dead):.1%}"))
    return [*facts, ("seconds of training alone", f"{sum(row.seconds for row in steps):,.0f}")]


def _records(run: RunFolder, side: RoleReport, name: str) -> list[RolloutRecord]:
    """Return the rollouts of an evaluation that a role played in its world."""
    world = side.job.world
    return [
        record
        for record in run.rollouts.read(evaluation_segment(name))
        if (record.role, record.world, record.level) == (side.role, world.spec.id, world.level)
    ]


def _returns(side: RoleReport) -> Table:
    kind = "Return" if side.references.on_outcomes is None else "Expected return"
    note = "Intervals are those of Student's t over Tasks."
    if kind != "Return":
        note += (
            " Expected returns are averages over what may happen, given what is shown: they have "
            "no noise of outcomes."
        )
    rows = [
        (name, f"{mean.value:.4f}", mean.interval("{:.4f}".format), f"{mean.samples}")
        for name, mean in side.rows
    ]
    header = ("policy", "mean return", "95 % interval", "Tasks")
    return Table(header, rows, side.heading(f"{kind} on held-out test Tasks"), note)


def _replies(steps: Sequence[StepRow]) -> list[Table]:
    """Describe the replies of the first, some middle and the last steps."""
    saved = [row for row in steps if row.replies is not None]
    if not saved:
        return []
    places = sorted({round(part * (len(saved) - 1) / 4) for part in range(5)})
    rows = []
    for row in (saved[place] for place in places):
        counts = row.replies
        assert counts is not None
        shares = (row.dead_share, row.malformed_share, row.cut_off_share, row.copied_share)
        said = f"{counts.distinct} of {counts.replies}"
        common = f"{counts.commonest_share:.0%} {counts.commonest!r}"
        entropy = "" if row.entropy is None else f"{row.entropy:.3f}"
        rows.append((str(row.step), *(f"{share:.0%}" for share in shares), said, common, entropy))
    head = "step, dead groups, malformed, cut off, copy the prompt, distinct, commonest, entropy"
    return [Table(tuple(head.split(", ")), rows, "Replies")]


def _episodes(run: RunFolder, side: RoleReport) -> list[Gallery]:
    """Draw the first held-out Task, where the world has a picture.

    Shown are the scripted policy of the highest mean that does not know the Task's answer, and the
    policy before and after.
    """
    job = side.job
    if not has_picture(job.world.spec.id):
        return []
    # Of several worlds each has files of its own.
    of_world = "" if side.name == side.role else f"_{side.name}"
    world, task = job.world, job.held_out[0]
    records: list[tuple[str, str, PlayedEpisode]] = []
    lines = side.references.lines
    rules = [name for name in lines if name in job.baselines and name != _KNOWS_ANSWERS]
    if rules:
        best = max(rules, key=lambda name: lines[name].value)
        (record,) = play_all(world.fork(), [task], job.baselines[best])
        records.append((best, f"episode_rule{of_world}.png", record))
    for who, evaluation in (("before", side.before), ("after", side.after)):
        if evaluation.replies:
            record = record_replies(world, task, evaluation.replies, finish=True)
            records.append((f"{who} training", f"episode_{who}{of_world}.png", record))
    pictures = []
    for who, file, record in records:
        path = run.folder / file
        save_picture(world, record, path, who)
        title = f"The rule {who}" if who in rules else who.capitalize()
        pictures.append(Picture(path.read_bytes(), f"The first held-out Task: {who}", title))
    heading = f"The first held-out Task{f' of {side.name}' if of_world else ''}"
    return [Gallery(pictures, heading, wide=True)] if pictures else []


def _summary(job: Job, steps: Sequence[StepRow]) -> str:
    config, seconds = job.config, sum(row.seconds for row in steps)
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
