"""`tokengym sweep`: train with every combination of some settings, and compare the runs."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

import typer
from pydantic import TypeAdapter, ValidationError

from tokengym.agents.cli.options import Columns, Data, Yes, add_data, new_folder
from tokengym.agents.cli.shown import show
from tokengym.agents.cli.train import train_run, world_of
from tokengym.agents.settings import Setting
from tokengym.agents.settings.commands import takes
from tokengym.agents.training.config import JobConfig, TrainConfig
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.presets import preset_for, without_world
from tokengym.envs.core.errors import OptionError
from tokengym.installed import require_extra

_WHOLE = ("system",)
"""Settings that may have a comma within one value, and are not swept."""
_FILLED_IN = ("renderer", "system", "max_tokens", "learning_rate", "warm_start_rate")
"""Settings that a job fills in where nothing was asked for."""
_UNNAMEABLE = re.compile(r"[^\w.=-]+")
"""Characters that are left out of a folder's name."""
_COMMA = re.compile(r",(?![^\[{]*[\]}])")
"""A comma that is in no JSON list or object."""


class Variant(NamedTuple):
    """One of the values that a setting is swept over.

    Attributes:
        label: which one, such as `group_size=4`; empty if it is the only one.
        value: the value.
    """

    label: str
    value: Any


@dataclass(frozen=True)
class Swept(Setting):
    """A setting of a command as an option that takes several values, with commas between them.

    Attributes:
        single: the setting.
    """

    single: Setting

    @classmethod
    def of(cls, setting: Setting) -> Self:
        """Return what a sweep offers of a setting."""
        usual = vars(without_world(setting)).copy()
        if not setting.repeats:
            words = f" ({', '.join(setting.choices)})" if setting.choices else ""
            usual |= {"kind": str, "choices": (), "help": setting.help + words}
        if setting.name == "seed":
            usual["flag"] = "--seeds --seed"
        return cls(**usual, single=setting)

    def value(self, typed: Any) -> tuple[Variant, ...]:
        """Return the values of what was typed.

        Raises:
            OptionError: if one of them is none of the setting's.
        """
        if self.name in _WHOLE:
            return (Variant("", self.single.value(typed)),)
        if self.single.repeats:
            # Of each name=value the value may be several.
            names = [pair.partition("=") for pair in typed]
            every = [
                [f"{name}{equals}{one}" for one in _COMMA.split(value)] if equals else [name]
                for name, equals, value in names
            ]
            several = [place for place, values in enumerate(every) if len(values) > 1]
            return tuple(
                Variant(" ".join(pairs[place] for place in several), self.single.value([*pairs]))
                for pairs in product(*every)
            )
        values = _COMMA.split(typed)
        label = f"{self.name}={{}}".format if len(values) > 1 else lambda value: ""
        return tuple(Variant(label(value), self._one(value)) for value in values)

    def _one(self, text: str) -> Any:
        if self.single.kind is str or self.single.choices:
            return self.single.value(text)
        try:
            return TypeAdapter(self.single.kind).validate_python(text)
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise OptionError(f"{self.single.flag} {text}: {reason}") from error


@takes(TrainConfig, change=Swept.of)
def sweep(
    world: Annotated[str, typer.Argument(metavar="WORLD", help="as of tokengym train")],
    *,
    said: dict[str, Any],
    level: Annotated[str | None, typer.Option(help="level of the world")] = None,
    data: Data = None,
    columns: Columns = None,
    runs: Annotated[
        Path | None,
        typer.Option(help="folder of the runs and the table (runs/sweep-WORLD)", parser=new_folder),
    ] = None,
    yes: Yes = False,
) -> None:
    """Train with every combination of the values given, and print one table of the runs.

    Every option of `tokengym train` takes several values, as in --group-size 4,8,16 --seeds 0,1,2;
    those that are on or off take true or false. Finished runs are not run again, and an interrupted
    one is resumed: repeat the command, also with more values. The table's
    data are written beside them, and `tokengym view` of the folder shows it with the runs.
    """
    require_extra("tinker", "training")
    folder = runs or Path("runs") / f"sweep-{_UNNAMEABLE.sub('-', world)}"
    if level is not None:
        values = level.split(",")
        said["level"] = [Variant(f"level={value}" * (len(values) > 1), value) for value in values]
    runs_there = [run for path in sorted(folder.glob("*/")) if (run := RunFolder(path)).exists]
    earlier = [(run, run.config) for run in runs_there]
    planned: dict[str, list[tuple[RunFolder, JobConfig]]] = {}
    for label, name, chosen in _combinations(said):
        add_data(chosen, data, columns)
        asked = preset_for(TrainConfig, *world_of(world, chosen.pop("level", None)), **chosen)
        run = RunFolder(folder / name)
        planned.setdefault(label or world, []).append(_known_or_new(run, asked, earlier))
    for run, config in (job for jobs in planned.values() for job in jobs):
        if run.exists and run.outcome is not None:
            typer.echo(f"finished before: {run.folder}")
        else:
            train_run(config, run, ask=not yes)
    _conclude(folder, {label: [run for run, _ in jobs] for label, jobs in planned.items()})


def _combinations(
    said: Mapping[str, Sequence[Variant]],
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield of each combination what it is without its seed, the name of its folder, and values."""
    for values in product(*said.values()):
        chosen = dict(zip(said, values, strict=True))
        labels = {name: variant.label for name, variant in chosen.items() if variant.label}
        label = " ".join(text for name, text in labels.items() if name != "seed")
        name = _UNNAMEABLE.sub("_", "-".join(labels.values())) or "run"
        yield label, name, {name: variant.value for name, variant in chosen.items()}


def _known_or_new(
    run: RunFolder, config: JobConfig, earlier: Sequence[tuple[RunFolder, JobConfig]]
) -> tuple[RunFolder, JobConfig]:
    """Return the earlier run with this configuration, wherever it stands, or a new one.

    A folder's name holds what varied in the sweep that made it, so that a wider sweep names the
    same run otherwise.

    Raises:
        OptionError: if there is none, and the new run's folder holds one with other settings.
    """
    for found, known in earlier:
        if not _differences(config, known):
            return found, known
    for found, known in earlier:
        if found.folder == run.folder:
            raise OptionError(
                f"{run.folder} holds a run with another "
                f"{' and '.join(_differences(config, known))}; name another folder by --runs"
            )
    return run, config


def _differences(config: JobConfig, known: JobConfig) -> list[str]:
    """Return the settings in which a known run is not what is asked for."""
    open_ones = [name for name in _FILLED_IN if getattr(config, name) in (None, "")]
    names = [field.name for field in fields(config) if field.name not in open_ones]
    return [name for name in names if getattr(known, name) != getattr(config, name)]


def _conclude(folder: Path, planned: Mapping[str, Sequence[RunFolder]]) -> None:
    """Write the figures of finished runs, and print their table."""
    from tokengym.agents.viewer.sweep import saved_sweep, sweep_columns

    written = {label: column.to_dict() for label, column in sweep_columns(planned).items()}
    text = json.dumps(written, indent=1, allow_nan=False) + "\n"
    (folder / "sweep.json").write_text(text)
    report = saved_sweep(folder)
    show(*report.tables, title=report.title)
    typer.echo(f"page: tokengym view {folder}")
