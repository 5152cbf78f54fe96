"""Training jobs as the tests run them."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console

from tokengym.agents.evaluation.experiment import run_experiment
from tokengym.agents.rollouts import SampledTokens, record_episode, train_segment
from tokengym.agents.training.config import JobConfig
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.folder.run_summary import RunSummary
from tokengym.agents.training.job import Job
from tokengym.agents.training.progress import Progress
from tokengym.agents.viewer import REPORT, write_page
from tokengym.envs.core.episode import TurnExchange
from tokengym.envs.tokens.episode import Episode


def run_job(config: JobConfig, folder: Path) -> tuple[RunSummary, str]:
    """Run a job in a folder; returns what it came to and what it showed."""
    shown = io.StringIO()
    progress = Progress(Console(file=shown))
    outcome = run_experiment(Job.resolve(config), RunFolder(folder), progress)
    write_page([folder], folder / REPORT)
    return outcome, shown.getvalue()


def metrics(folder: Path) -> list[dict[str, Any]]:
    """Return the logged rows of a run's steps."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if "progress/batch" in row]


def write_rollouts(
    folder: Path, config: JobConfig, forecasts: Sequence[float], groups: int = 1
) -> Job:
    """Write a run that kept groups of forecasts, said as its policy would sample them."""
    job, run = Job.resolve(config), RunFolder(folder)
    run.write_config(config)
    common = job.origin("train", config.model, {})
    for group, (member, forecast) in product(range(groups), enumerate(forecasts)):
        task = job.world.task("train", group)
        episode = Episode(job.world.fork(), task, job.codec)
        asked, tokens = episode.turn, list(job.codec.write(f"Probability: {forecast}"))
        read = len(episode.observation)
        turn = episode.act(tokens, "stop")
        exchange = TurnExchange(asked, episode.reply, turn, turn)
        sampled = SampledTokens(tokens, [-1.0] * len(tokens), [""] * len(tokens), read)
        origin = replace(common, step=0, group=group, member=member)
        record = record_episode(origin, task, job.roles[0], [exchange], sampled=[sampled])
        run.rollouts.append(train_segment(0), [record])
    return job
