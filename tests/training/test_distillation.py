"""Laws of on-policy distillation: the teacher alone decides what is learned."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tinker

from tests.training.folders import ROUNDING, differences
from tests.training.jobs import metrics, run_job
from tests.training.rollouts import rollout
from tokengym.agents.cli.compare import training_method
from tokengym.agents.training.batches.distillation import distill
from tokengym.agents.training.config import DistilConfig, SftConfig
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset, preset_for
from tokengym.agents.viewer import RunView
from tokengym.envs.core.errors import OptionError

pytestmark = pytest.mark.filterwarnings("ignore")

TINY: dict[str, Any] = {"groups_per_batch": 2, "group_size": 2, "evaluation_tasks": 2, "steps": 1}


@dataclass
class Knowing:
    """Answers like a `tinker.SamplingClient`: token n has the log-probability -n / 10."""

    async def compute_logprobs(self, prompt: tinker.ModelInput) -> list[float | None]:
        return [None, *(-token / 10 for token in prompt.to_ints()[1:])]


def test_advantages_are_teacher_less_student_log_probabilities() -> None:
    """Of sampled tokens alone; rewards play no part."""
    two_turns = rollout([([1, 2], [3, 4], 1.0), ([5], [6], 0.0)])
    again = rollout([([1, 2], [8], 0.5)])
    teacher: Any = Knowing()
    found = asyncio.run(distill([two_turns, again], teacher))
    thought = {token: -0.25 * (1 + token % 7) for token in (3, 4, 6, 8)}
    wanted = {token: -token / 10 - thought[token] for token in thought}
    first, second = (datum.loss_fn_inputs for datum in found.data)
    assert first["target_tokens"].tolist() == [2, 3, 4, 5, 6]
    assert first["advantages"].tolist() == pytest.approx([0, wanted[3], wanted[4], 0, wanted[6]])
    assert second["advantages"].tolist() == pytest.approx([0, wanted[8]])
    assert first["logprobs"].tolist()[1] == pytest.approx(thought[3])
    assert found.advantages == pytest.approx([(wanted[3] + wanted[4] + wanted[6]) / 3, wanted[8]])
    assert found.metrics == {"teacher/kl": pytest.approx(-sum(wanted.values()) / 4)}


@pytest.mark.nightly
def test_a_student_learns_from_a_run_as_its_teacher(tmp_path: Path, served: dict[str, Any]) -> None:
    """The teacher was taught by demonstrations; the same job twice leaves the same folder."""
    teacher = tmp_path / "teacher"
    run_job(preset_for(SftConfig, "forecast", **TINY, **served, learning_rate=5e-3), teacher)
    config = preset_for(
        DistilConfig, "forecast", **TINY, **served, teacher=str(teacher), learning_rate=5e-3
    )
    one, two = tmp_path / "a" / "run", tmp_path / "b" / "run"
    for folder in (one, two):
        run_job(config, folder)
    assert not differences(one, two, ROUNDING)
    (first,) = metrics(one)
    assert first["teacher/kl"] != 0.0
    assert first["optim/grad_norm"] > 0.0
    assert first["optim/kl_sample_train_v1"] == pytest.approx(0.0, abs=1e-3)
    kept = [record.advantage for record in RunFolder(one).rollouts.read("train_000000")]
    assert len(kept) == 4
    assert all(kept)
    assert RunView("one", one).curves()["series"]["teacher KL"] == [first["teacher/kl"]]
    assert training_method(config) == "teacher teacher"


def test_a_teacher_of_other_tokens_is_refused(tmp_path: Path, served: dict[str, Any]) -> None:
    RunFolder(tmp_path).write_config(preset("forecast", renderer="role_colon"))
    line = '{"name": "final", "batch": 1, "sampler_path": "tinker://a/sampler_weights/b"}\n'
    (tmp_path / "checkpoints.jsonl").write_text(line)
    with pytest.raises(OptionError, match="a teacher needs the student's tokens"):
        Job.resolve(preset_for(DistilConfig, "forecast", **served, teacher=str(tmp_path)))
