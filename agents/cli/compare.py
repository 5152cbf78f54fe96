"""`tokengym compare`: several finished runs on the same held-out Tasks, as one table."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokengym.agents.analysis.evaluate import Estimate
from tokengym.envs.core.errors import OptionError

if TYPE_CHECKING:
    from tokengym.agents.training.config import TrainSettings


def compare(
    runs: Annotated[list[Path], typer.Argument(help="run folders of `tokengym train`")],
) -> None:
    """Set finished runs side by side: what each way of training added, on the same Tasks."""
    from rich.console import Console
    from rich.table import Table

    from tokengym.agents.training.config import SETTINGS_FILE, TrainSettings
    from tokengym.agents.training.job import OUTCOME_FILE

    read: list[tuple[Path, TrainSettings, dict[str, Any]]] = []
    for folder in runs:
        path = folder / OUTCOME_FILE
        if not path.is_file():
            raise OptionError(f"{folder} has no {OUTCOME_FILE}: it holds no run that is finished")
        read.append(
            (folder, TrainSettings.load(folder / SETTINGS_FILE), json.loads(path.read_text()))
        )
    _require_one_test([settings for _, settings, _ in read])
    table = Table("run", "trained by", "role", "before", "after", "Tasks")
    for folder, settings, outcome in read:
        for role in settings.trained:
            then, now = (
                Estimate(*_of(outcome[when], role)["returns"]) for when in ("before", "after")
            )
            name = folder.resolve().name
            table.add_row(name, way(settings), role, str(then), str(now), str(now.tasks))
    table.add_section()
    shown: set[tuple[str, str]] = set()
    for _, settings, outcome in read:
        for role in settings.trained:
            lines = outcome.get("other_references", {}).get(role, outcome["references"])
            for name, value in sorted(lines.items(), key=lambda item: -float(item[1][0])):
                if (role, name) not in shown:
                    shown.add((role, name))
                    table.add_row(name, "script", role, "", str(Estimate(*value)), str(value[3]))
    Console().print(table)


def way(settings: "TrainSettings") -> str:
    """Say in a few words how a run trained."""
    if settings.sft:
        how = "demonstrations"
    elif settings.self_play:
        how = "self-play, own policies" if settings.separate else "self-play"
    else:
        how = "rewards"
    return how if settings.start is None else f"{how}, from {Path(settings.start).name}"


def _of(evaluation: dict[str, Any], role: str) -> dict[str, Any]:
    found: dict[str, Any] = evaluation.get("others", {}).get(role, evaluation)
    return found


def _require_one_test(several: "list[TrainSettings]") -> None:
    """Refuse runs whose held-out returns are not of the same Tasks and opponents.

    Raises:
        OptionError: naming the first thing that differs.
    """
    first = several[0]
    for other in several[1:]:
        for name in ("world", "level", "options", "evaluation_tasks"):
            ours, theirs = getattr(first, name), getattr(other, name)
            if ours != theirs:
                raise OptionError(f"runs to compare need one {name}, got {ours!r} and {theirs!r}")
        for role in {*first.trained} & {*other.trained}:
            ours, theirs = first.opponents_of(role), other.opponents_of(role)
            if ours != theirs:
                raise OptionError(
                    f"runs to compare need one set of opponents of {role}, got {ours} and {theirs}"
                )
