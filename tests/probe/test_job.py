"""The job of docs/probe.md ends as a right, a faulty and a biased training script deserve."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import blocks

PAGE = Path(__file__).parents[2] / "docs" / "probe.md"
DUE = 'advantage = rollout["reward"] - sum(rewards) / len(rewards)'
LOSS = 'rollout["advantages"][0] * (trained * chosen).sum()'


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("before", "after", "status", "said"),
    [
        (DUE, DUE, 0, "follows: centred by group, summed over tokens"),
        (LOSS, f"{LOSS} / trained.sum()", 0, "biased by choice: length: "),
        (DUE, f"advantage = -({DUE.partition(' = ')[2]})", 1, "wrong: the sign is wrong"),
        (DUE, f"{DUE} + 0.1", 1, "wrong: "),
        ("mask[1:]", "mask[:-1]", 1, "wrong: the mask is one token late"),
        (DUE, f"{DUE}\n    advantage /= torch.tensor(rewards).std().item() + 1e-4", 3, "biased"),
    ],
)
def test_the_job_of_the_page_ends_as_the_trainer_deserves(
    before: str, after: str, status: int, said: str, tmp_path: Path
) -> None:
    files = {block.name: block.text for block in blocks(PAGE) if block.name}
    assert before in files["one_step.py"]
    (tmp_path / "one_step.py").write_text(files["one_step.py"].replace(before, after))
    (tmp_path / "probe_job.sh").write_text(files["probe_job.sh"])
    (tmp_path / "probe").mkdir()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "probe_job.sh"],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == status, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1].startswith(said)
