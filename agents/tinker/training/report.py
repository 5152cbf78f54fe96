"""A finished run as a picture and a page: the reward curve, its reference lines, figures."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from tokengym.agents.evaluate import Estimate
from tokengym.agents.tinker.training.evaluation import BEST_CONSTANT, Evaluation
from tokengym.agents.tinker.training.settings import TrainSettings
from tokengym.agents.tinker.training.watch import StepRow

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
    """
    draw(folder / "reward.png", settings, steps, references, before, after)
    rows = [("before training", before.returns)]
    if after is not None:
        rows.append(("after training", after.returns))
    rows += sorted(references.items(), key=lambda item: -item[1].mean)
    template = jinja2.Template(_PAGE.read_text(encoding="utf-8"), autoescape=True)
    page = template.render(
        title=f"{settings.world} ({settings.level})",
        summary=_summary(settings, steps),
        warning=warning,
        picture="reward.png",
        rows=rows,
        details=_details(before, after),
        episodes=episodes,
        settings=json.dumps(_plain(settings), indent=2),
    )
    (folder / "report.html").write_text(page, encoding="utf-8")


def draw(
    path: Path,
    settings: TrainSettings,
    steps: Sequence[StepRow],
    references: Mapping[str, Estimate],
    before: Evaluation,
    after: Evaluation | None,
) -> None:
    """Draw rewards and tie rates by step, and stated against exact probabilities where known."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    scatters = [found for found in (before, after) if found is not None and found.stated]
    figure, axes = pyplot.subplots(
        1, 2 if scatters else 1, figsize=(12 if scatters else 8, 5), squeeze=False
    )
    _draw_curve(axes[0][0], steps, references, before, after)
    axes[0][0].set_title(f"{settings.world} ({settings.level})")
    if scatters:
        _draw_scatter(axes[0][1], before, after)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _draw_curve(
    axes: "Axes",
    steps: Sequence[StepRow],
    references: Mapping[str, Estimate],
    before: Evaluation,
    after: Evaluation | None,
) -> None:
    numbers = [row.step for row in steps]
    axes.plot(numbers, [row.reward for row in steps], color="#9bb7d4", lw=0.8)
    axes.plot(numbers, _smooth([row.reward for row in steps]), color="#1f5f99", lw=2)
    last = numbers[-1] + 1 if numbers else 1
    for at, found in ((0, before), (last, after)):
        if found is not None:
            mean, low, high, _ = found.returns
            spread = [[mean - low], [high - mean]]
            axes.errorbar([at], [mean], spread, fmt="o", color="k", capsize=4)
    shown = [name for name in ("null", "random", BEST_CONSTANT, "oracle") if name in references]
    for name in shown:
        mean = references[name].mean
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
    axes.plot(numbers, [row.uniform_rate for row in steps], color="#c44", lw=0.8, alpha=0.7)
    axes.set_xlabel("step")
    axes.set_ylabel("mean return (blue), uniform-group rate (red)")


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
    return (
        f"{len(steps)} steps of {settings.groups_per_batch} groups of {settings.group_size} in "
        f"{seconds:.0f} s; {tokens:.0f} tokens read and sampled by the rollouts."
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
