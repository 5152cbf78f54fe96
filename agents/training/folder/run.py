"""A Run: the one writer and reader of a run folder.

| file | contents |
|---|---|
| `settings.json` | the settings of the command, and the version of this layout |
| `environment.json` | versions, processor, threads, precision, git state, by start |
| `config.json`, `metrics.jsonl`, `console.log` | what the trainer logs |
| `checkpoints.jsonl` | saved weights; in a folder of each role where each has its own policy |
| `rollouts/` | what was read and written in training and evaluations, see `RolloutLog` |
| `iteration_NNNNNN/` | the trainer's timings of a step |
| `warm-start/` | the supervised steps before reinforcement learning: a separate run |
| `evaluation.json` | the policy before and after training, see `EvaluationFolder` |
| `outcome.json` | how it ended |
| `report.html` | the viewer's page of the run, for people |
| `service/` | weights and log of a local service |
"""

import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tokengym.agents.execution.folder_lock import locked
from tokengym.agents.models.files import read_object
from tokengym.agents.rollouts import RolloutLog
from tokengym.agents.service import UnknownResourceError
from tokengym.agents.training.config import SETTINGS_FILE, JobConfig, read_config
from tokengym.agents.training.folder.monitor import StepLog, StepRow
from tokengym.agents.training.folder.run_files import (
    add_line,
    keep_lines,
    read_lines,
    read_result,
    write_json,
)
from tokengym.agents.training.folder.run_summary import RunSummary
from tokengym.envs.core.errors import OptionError
from tokengym.installed import require_extra

SCHEMA_VERSION = 6
"""Version of a run folder's layout; it goes up whenever an older folder can no longer be read."""

_METRICS = "metrics.jsonl"
_ROLLOUTS = "rollouts"
_CHECKPOINTS = "checkpoints.jsonl"
_TIMING = "timing_spans.jsonl"
_WARM_START = "warm-start"
_OUTCOME = "outcome.json"
_ENVIRONMENT = "environment.json"


class Weights(NamedTuple):
    """The last weights a run saved, as `tinker://` paths.

    Attributes:
        sampler: to sample from; `None` if there are none yet.
        state: to train on from; `None` if there are none yet.
    """

    sampler: str | None
    state: str | None


@dataclass(frozen=True)
class RunFolder:
    """A run folder.

    Attributes:
        folder: where it lies.
        wandb: a project of Weights & Biases that `log` sends its metrics to as well.

    Raises:
        OptionError: if a project is named and wandb is not installed.
    """

    folder: Path
    wandb: str | None = None

    def __post_init__(self) -> None:
        """Refuse a project that nothing can be sent to."""
        if self.wandb is not None:
            require_extra("wandb", "logging to Weights & Biases")

    @classmethod
    def open(cls, folder: Path) -> "RunFolder":
        """Return the run in a folder.

        Raises:
            OptionError: if the folder holds no run.
        """
        run = cls(folder)
        if not run.exists:
            raise OptionError(f"{folder} holds no run: it has no {SETTINGS_FILE}")
        return run

    @property
    def exists(self) -> bool:
        """Whether the folder holds a run."""
        return (self.folder / SETTINGS_FILE).is_file()

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.resolve().name

    @property
    def service_folder(self) -> Path:
        """Where a local service of this run keeps its weights and log."""
        return self.folder / "service"

    @property
    def weights_folder(self) -> Path:
        """Where a local service keeps its weights: this run's, or that of the run it is part of."""
        folders = (self.service_folder, RunFolder(self.folder.parent).service_folder)
        return next((folder for folder in folders if folder.is_dir()), self.service_folder)

    @property
    def holds_states(self) -> bool:
        """Whether a local service saved a state here, recorded or not."""
        return any(self.service_folder.glob("runs/*/weights/*"))

    # Settings

    @property
    def config(self) -> JobConfig:
        """The configuration of the run.

        Raises:
            OptionError: if there is none, it is damaged, or of another version of the layout.
        """
        path = self.folder / SETTINGS_FILE
        data = read_object(path, OptionError)
        version = data.pop("schema_version", None)
        if version != SCHEMA_VERSION:
            raise OptionError(
                f"{path} has schema_version {version!r}; this version of Tokengym reads and "
                f"writes {SCHEMA_VERSION}"
            )
        try:
            return read_config(data)
        except OptionError as error:
            raise OptionError(f"{path} is damaged: {error}") from error

    def write_config(self, config: JobConfig) -> None:
        """Create the folder if necessary, and record the configuration."""
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = {"schema_version": SCHEMA_VERSION, **config.to_dict()}
        write_json(self.folder / SETTINGS_FILE, settings)

    def write_environment(self, described: Mapping[str, Any]) -> bool:
        """Record the environment of the run; returns whether it was another one before."""
        path = self.folder / _ENVIRONMENT
        known = read_object(path, OptionError) if path.exists() else {}
        rows = known.get("environments", [])
        if not rows or rows[-1] != described:
            write_json(path, {"environments": [*rows, described]})
        return bool(rows) and rows[-1] != described

    # While it is trained

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes out of the run; the lock is released when this process ends.

        Raises:
            OptionError: if another process trains it.
        """
        with locked(self.folder / "run.lock", "trained"):
            yield

    @contextlib.contextmanager
    def console(self) -> Iterator[None]:
        """Send what the libraries print (tables, bars, warnings) to a file of the run folder."""
        root = logging.getLogger()
        handlers = list(root.handlers)
        with (
            (self.folder / "console.log").open("a", encoding="utf-8") as file,
            contextlib.redirect_stdout(file),
            contextlib.redirect_stderr(file),
        ):
            try:
                yield
            finally:
                # The trainer's handlers write to the file, which is about to be closed.
                root.handlers[:] = handlers

    def log(self, **metrics: Any) -> None:
        """Add a line to `metrics.jsonl`, for a loop of one's own.

        Args:
            **metrics: numbers by name; `step` counts on from the line before if it is not named.
        """
        line = add_line(self.folder / _METRICS, metrics)
        if self.wandb is not None:
            _wandb_run(self.folder.resolve(), self.wandb).log(line, step=line["step"])

    def step_log(self, *, replies: bool = True) -> StepLog:
        """Return a reader of the completed steps that can follow the file as it grows.

        Args:
            replies: whether to read what the steps' replies have in common, which takes long.
        """
        return StepLog(self.folder / _METRICS, self.rollouts if replies else None)

    def steps(self) -> list[StepRow]:
        """Return the completed steps, in order."""
        return self.step_log().current()

    @property
    def rollouts(self) -> RolloutLog:
        """The saved rollouts of training and evaluations."""
        return RolloutLog(self.folder / _ROLLOUTS)

    def mend(self) -> list[str]:
        """Cut off what a killed process left incomplete; returns messages on what was lost."""
        return [
            f"{path.name}: {lost} damaged {'line was' if lost == 1 else 'lines were'} cut off"
            for name in (_METRICS, _CHECKPOINTS, _TIMING)
            if (lost := keep_lines(path := self.folder / name))
        ]

    @property
    def steps_done(self) -> int:
        """The number of completed steps, saved or not."""
        rows = read_lines(self.folder / _METRICS)
        steps = [row["step"] for row in rows if "progress/done_frac" in row]
        return max((step + 1 for step in steps if isinstance(step, int)), default=0)

    # Checkpoints

    def checkpoints(self) -> list[dict[str, Any]]:
        """Return the records of saved weights, oldest first; see `tinker_cookbook`."""
        rows = read_lines(self.folder / _CHECKPOINTS)
        return [row for row in rows if isinstance(row.get("batch"), int) and "name" in row]

    @property
    def final_step(self) -> int:
        """The number of steps after which the final weights were saved; -1 without any."""
        return max(
            (row["batch"] for row in self.checkpoints() if row["name"] == "final"), default=-1
        )

    @property
    def weights(self) -> Weights:
        """The last weights that were saved."""
        saved = [row for row in self.checkpoints() if row.get("sampler_path")]
        states = [row["state_path"] for row in saved if row.get("state_path")]
        return Weights(saved[-1]["sampler_path"] if saved else None, states[-1] if states else None)

    def saved_weights(self, *, state: bool = False) -> str:
        """Return the path of the last weights to sample from, or of the last `state`.

        Raises:
            OptionError: if there is none.
        """
        path = self.weights.state if state else self.weights.sampler
        if path is None:
            raise OptionError(f"{self.folder} has saved no weights yet")
        return path

    def copy_weights(self, path: str, folder: Path) -> str:
        """Copy weights of its local service to the folder of another; returns their path there.

        Raises:
            OptionError: if they are lost.
        """
        from tokengym.agents.service import copy_checkpoint  # it loads torch

        try:
            return copy_checkpoint(path, self.weights_folder, folder)
        except UnknownResourceError as error:
            raise OptionError(f"{self.folder} has lost its weights: {error}") from error

    def states(self) -> dict[int, str]:
        """Return the `tinker://` paths of states to train on from, by steps done."""
        return {
            row["batch"]: row["state_path"] for row in self.checkpoints() if row.get("state_path")
        }

    @property
    def saved_steps(self) -> list[int]:
        """The numbers of steps after which a state was saved, ascending."""
        return sorted(self.states())

    def forget_checkpoints_after(self, step: int) -> None:
        """Forget checkpoints taken after `step` steps, so that a resume starts from there."""
        keep_lines(self.folder / _CHECKPOINTS, lambda row: row.get("batch", 0) <= step)

    def forget_deleted_checkpoints(self) -> None:
        """Forget rolling checkpoints that the trainer deleted when it saved its final one.

        The last of them may be recorded after the final one, and a resume takes the last record.
        """
        final = self.final_step
        keep_lines(
            self.folder / _CHECKPOINTS,
            lambda row: not row.get("rolling") or row.get("batch", 0) > final,
        )

    def forget_steps_from(self, step: int) -> None:
        """Forget completed steps, so that they can be repeated."""
        for name in (_METRICS, _TIMING):
            keep_lines(self.folder / name, lambda row: not _from(row, step))

    # Results

    @property
    def warm_start(self) -> "RunFolder":
        """The run of the supervised steps before reinforcement learning, within this one."""
        return RunFolder(self.folder / _WARM_START)

    @property
    def outcome(self) -> RunSummary | None:
        """The outcome of the run; `None` while it is unfinished."""
        return read_result(self.folder / _OUTCOME, RunSummary)

    @property
    def finished(self) -> RunSummary:
        """The outcome of the run.

        Raises:
            OptionError: if it is unfinished.
        """
        if (outcome := self.outcome) is None:
            raise OptionError(f"{self.folder} holds no finished run")
        return outcome

    def write_outcome(self, outcome: RunSummary) -> None:
        """Record the outcome of the run."""
        write_json(self.folder / _OUTCOME, outcome.to_dict())


def is_run(name: str | Path) -> bool:
    """Return whether a name is that of a run's folder."""
    return RunFolder(Path(name)).exists


def _from(row: Mapping[str, Any], step: int) -> bool:
    """Return whether a line is about a step or one after it."""
    number = row.get("step")
    return isinstance(number, int) and number >= step


@cache
def _wandb_run(folder: Path, project: str) -> Any:
    """Return the run of Weights & Biases that a folder's metrics go to, the same one each time.

    It is called like the folder, keeps its files there, and ends with the process.
    """
    import wandb  # pyright: ignore[reportMissingImports]

    return wandb.init(project=project, name=folder.name, dir=str(folder))
