"""Training jobs as the tests run them."""

import io
import json
from pathlib import Path
from typing import Any

from rich.console import Console

from tokengym.agents.experiment import run_experiment
from tokengym.agents.training.config import TrainConfig
from tokengym.agents.training.job import Job
from tokengym.agents.training.outcome import Outcome
from tokengym.agents.training.progress import Progress
from tokengym.agents.training.run import Run


def run_job(config: TrainConfig, folder: Path) -> tuple[Outcome, str]:
    """Run a job in a folder; returns what it came to and what it showed."""
    shown = io.StringIO()
    progress = Progress(Console(file=shown))
    outcome = run_experiment(Job.resolve(config), Run(folder), progress)
    return outcome, shown.getvalue()


def metrics(folder: Path) -> list[dict[str, Any]]:
    """Return the logged rows of a run's steps."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if "progress/batch" in row]
