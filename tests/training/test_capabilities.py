"""What a service can do is tried before a run, and one that lacks what the run needs is refused."""

import asyncio
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.training.foreign import serving_less
from tokengym.agents.evaluation.experiment import run_experiment
from tokengym.agents.training.capabilities import LOSSES, Capability, service_capabilities
from tokengym.agents.training.connection import Connection, ServiceRefusedError
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset
from tokengym.agents.training.progress import Progress

pytestmark = pytest.mark.filterwarnings("ignore")

SMALL = preset("forecast", steps=1, groups_per_batch=2, group_size=2, evaluation_tasks=2)


def _capabilities(served: dict[str, Any], url: str, **changes: Any) -> dict[str, Capability]:
    job = Job.resolve(replace(SMALL, **{**served, "base_url": url, **changes}))
    connection = Connection(job.target.model, url, None)
    return {row.name: row for row in asyncio.run(service_capabilities(job, connection))}


@pytest.mark.nightly
def test_our_service_can_do_all_that_is_tried(served: dict[str, Any]) -> None:
    rows = _capabilities(served, served["base_url"], kl=0.1)
    assert {row.missing for row in rows.values()} == {""}
    assert rows.keys() > {f"loss {name}" for name in LOSSES}
    needed = {name for name, row in rows.items() if row.use == "needs it"}
    assert {"loss importance_sampling", "prompt_logprobs", "samples", "save_state"} <= needed
    assert "loss ppo" not in needed


@pytest.mark.nightly
def test_what_is_ignored_or_not_there_is_found(served: dict[str, Any]) -> None:
    with serving_less(
        served["base_url"], ["/ttl", "/unload_model"], ["seed", "stop", "top_k", "prompt_logprobs"]
    ) as url:
        rows = _capabilities(served, url)
    lacking = {name for name, row in rows.items() if row.missing}
    assert lacking == {"seed", "stop", "top_k", "prompt_logprobs", "ttl_seconds", "unload_model"}


@pytest.mark.nightly
def test_a_server_without_what_a_run_needs_is_refused(
    served: dict[str, Any], tmp_path: Path
) -> None:
    shown = io.StringIO()
    with serving_less(served["base_url"], without=["sample_sequence_ids"]) as url:
        job = Job.resolve(replace(SMALL, **{**served, "base_url": url}))
        with pytest.raises(ServiceRefusedError, match=r"lacks.*samples \(.*sample_sequence_ids"):
            run_experiment(job, RunFolder(tmp_path / "run"), Progress(Console(file=shown)))
    assert "no: asample promises" in " ".join(shown.getvalue().split())
    assert not (tmp_path / "run" / "metrics.jsonl").exists()
