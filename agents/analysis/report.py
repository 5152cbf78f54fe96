"""A finished run as a picture and a page: the reward curve, its reference lines, figures."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jinja2

from tokengym.agents.analysis.evaluate import Estimate
from tokengym.agents.analysis.evaluation import Evaluation
from tokengym.agents.training.config import TrainSettings
from tokengym.agents.training.monitor import StepRow
from tokengym.envs.registry import spec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SMOOTHING = 0.85

_PAGE = Path(__file__).with_name("report.html.j2")


def write_report(
    folder: Path,
    settings: TrainSettings,
    steps: Sequence[StepRow],
    references: Mapping[str, Estimate],
    before: Evaluation,
    after: Evaluation | None,
    warning: str = "",
    episodes: Sequence[tuple[str, str]] = (),
    other_references: Mapping[str, Mapping[str, Estimate]] | None = None,
) -> None:
    """Write `reward.png` and `report.html` into a run folder.

    Args:
        folder: the run folder.
        settings: the job.
        steps: its completed steps.
        references: scripted policies on the same test Tasks, by name.
        before: the policy as it was, on the test Tasks.
        after: the policy as it became, or `None` if it was not evaluated.
        warning: what went wrong, shown first.
        episodes: pictures of episodes: who played, and the file's name in the run folder.
        other_references: where several roles are trained, `references` of all but the first by
            role.
    """
    told = sides(settings, steps, references, before, after, other_references or {})
    draw(folder / "reward.png", steps, told)
    template = jinja2.Template(_PAGE.read_text(encoding="utf-8"), autoescape=True)
    page = template.render(
        title=f"{settings.world} ({settings.level})",
        summary=_summary(settings, steps),
        warning=warning,
        picture="reward.png",
        sides=told,
        episodes=episodes,
        settings=json.dumps(_plain(settings), indent=2),
    )
    (folder / "report.html").write_text(page, encoding="utf-8")


class Side(NamedTuple):
    """What a page tells of one trained role.

    Attributes:
        title: its heading: the world, or the role and whom it is evaluated against.
        rewards: mean return by step; empty where steps have none.
        uniform_rates: share of its groups whose returns all tie, by step.
        references: scripted policies on the same test Tasks, by name.
        before: the policy as it was.
        after: the policy as it became, or `None`.
        blind: name of the best policy that ignores the Task.
    """

    title: str
    rewards: Sequence[float]
    uniform_rates: Sequence[float]
    references: Mapping[str, Estimate]
    before: Evaluation
    after: Evaluation | None
    blind: str

    @property
    def rows(self) -> list[tuple[str, Estimate]]:
        """Policies and what they earn, the trained one first, then from the best."""
        rows = [("before training", self.before.returns)]
        if self.after is not None:
            rows.append(("after training", self.after.returns))
        return rows + sorted(self.references.items(), key=lambda item: -item[1].mean)

    @property
    def details(self) -> list[tuple[str, str, str]]:
        """Figures before and after, as they are shown."""
        return _details(self.before, self.after)


def sides(
    settings: TrainSettings,
    steps: Sequence[StepRow],
    references: Mapping[str, Estimate],
    before: Evaluation,
    after: Evaluation | None,
    others: Mapping[str, Mapping[str, Estimate]],
) -> list[Side]:
    """Return what there is to tell of each trained role, in order; see `write_report`."""
    blind = spec(settings.world).blind_name
    if len(settings.trained) == 1:
        rewards = [row.reward for row in steps if row.nll is None]
        uniform = [row.uniform_rate for row in steps if row.nll is None]
        title = f"{settings.world} ({settings.level})"
        return [Side(title, rewards, uniform, references, before, after, blind)]
    found = []
    for role in settings.trained:
        lines = others.get(role, references)
        now = None if after is None else after.others.get(role, after)
        key = f"env/all/{role}"
        logged = [row.metrics for row in steps if f"{key}/reward" in row.metrics]
        against = ", ".join(f"{who} {other}" for other, who in settings.opponents_of(role).items())
        found.append(
            Side(
                f"{role}, held out against {against}",
                [float(row[f"{key}/reward"]) for row in logged],
                [float(row.get(f"{key}/reward_uniform_group_rate", 0.0)) for row in logged],
                lines,
                before.others.get(role, before),
                now,
                blind,
            )
        )
    return found


def draw(path: Path, steps: Sequence[StepRow], told: Sequence[Side]) -> None:
    """Draw rewards and tie rates by step, and stated against exact probabilities where known."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    first = told[0]
    scatters = any(found is not None and found.stated for found in (first.before, first.after))
    count = len(told) + scatters
    figure, axes = pyplot.subplots(
        1, count, figsize=(8 if count == 1 else 6 * count, 5), squeeze=False
    )
    for panel, side in zip(axes[0], told, strict=False):
        _draw_curve(panel, [row.step for row in steps], side)
        if any(row.nll is not None for row in steps):
            _draw_loss(panel, steps)
        panel.set_title(side.title)
    if scatters:
        _draw_scatter(axes[0][-1], first.before, first.after)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _draw_curve(axes: "Axes", numbers: Sequence[int], side: Side) -> None:
    drawn = numbers[: len(side.rewards)]
    axes.plot(drawn, side.rewards, color="#9bb7d4", lw=0.8)
    axes.plot(drawn, _smooth(side.rewards), color="#1f5f99", lw=2)
    last = numbers[-1] + 1 if numbers else 1
    for at, found in ((0, side.before), (last, side.after)):
        if found is not None:
            mean, low, high, _ = found.returns
            spread = [[mean - low], [high - mean]]
            axes.errorbar([at], [mean], spread, fmt="o", color="k", capsize=4)
    names = ("null", "random", side.blind, "oracle")
    for name in (name for name in names if name in side.references):
        mean = side.references[name].mean
        axes.axhline(mean, ls="--", lw=1, color="#777")
        axes.annotate(
            name,
            (1.0, mean),
            xycoords=("axes fraction", "data"),
            fontsize=9,
            xytext=(-4, 3),
            textcoords="offset points",
            ha="right",
        )
    axes.plot(drawn, side.uniform_rates, color="#c44", lw=0.8, alpha=0.7)
    axes.set_xlabel("step")
    axes.set_ylabel("mean return (blue), uniform-group rate (red)")


def _draw_loss(axes: "Axes", steps: Sequence[StepRow]) -> None:
    """Draw the loss of supervised steps on a scale of its own."""
    right = axes.twinx()
    losses = [row.nll for row in steps if row.nll is not None]
    right.plot([row.step for row in steps if row.nll is not None], losses, color="#2a8a57", lw=1.5)
    right.set_ylabel("negative log-likelihood of a demonstrated token (green)")
    axes.set_ylabel("mean return on held-out Tasks")


def _draw_scatter(axes: "Axes", before: Evaluation, after: Evaluation | None) -> None:
    for found, colour, name in ((before, "#bbbbbb", "before"), (after, "#1f5f99", "after")):
        if found is not None and found.stated:
            exact, stated = zip(*found.stated, strict=True)
            axes.scatter(exact, stated, s=5, color=colour, label=name, alpha=0.6)
    axes.plot([0, 1], [0, 1], color="k", lw=0.8)
    axes.set_xlabel("what it is scored against")
    axes.set_ylabel("stated probability")
    axes.set_title("held-out questions")
    axes.legend(loc="upper left")


def _smooth(values: Sequence[float]) -> list[float]:
    smooth: list[float] = []
    for value in values:
        smooth.append(_SMOOTHING * smooth[-1] + (1 - _SMOOTHING) * value if smooth else value)
    return smooth


def _summary(settings: TrainSettings, steps: Sequence[StepRow]) -> str:
    seconds = sum(row.seconds for row in steps)
    tokens = sum(row.tokens for row in steps)
    if settings.sft:
        return (
            f"Supervised: {len(steps)} steps of {settings.groups_per_batch * settings.group_size} "
            f"demonstrations in {seconds:.0f} s; {tokens:,.0f} tokens trained on."
        )
    return (
        f"{len(steps)} steps of {settings.groups_per_batch} groups of {settings.group_size} in "
        f"{seconds:.0f} s; {tokens:,.0f} tokens read and sampled by the rollouts."
        f"{_groups(steps)}"
    )


def _groups(steps: Sequence[StepRow]) -> str:
    """Say what became of the groups; nothing where the loop does not count them."""
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


def _details(before: Evaluation, after: Evaluation | None) -> list[tuple[str, str, str]]:
    names: list[str] = sorted({*before.figures, *(after.figures if after else {})})
    return [
        (
            name,
            _show(before.figures.get(name)),
            _show(after.figures.get(name) if after is not None else None),
        )
        for name in names
    ]


def _show(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _plain(settings: TrainSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in settings.__dataclass_fields__}
