"""Laws of preferences: pairs as they were sampled, all seen once before any again, DPO's loss."""

import asyncio
import math
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import tinker

from tests.training.jobs import metrics, run_job, write_rollouts
from tokengym.agents.evaluation.trained import read_trained
from tokengym.agents.rollouts import RolloutOrigin, RolloutRecord, TurnRecord, train_segment
from tokengym.agents.training.batches.examples import ExampleOrder, Examples, preference_pairs
from tokengym.agents.training.config import DpoConfig
from tokengym.agents.training.earlier_runs import SavedRollouts, TokenPair
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.job import Job
from tokengym.agents.training.loop import submit
from tokengym.agents.training.presets import preset, preset_for
from tokengym.envs.core.errors import OptionError
from tokengym.envs.tokens.episode import Episode

pytestmark = pytest.mark.filterwarnings("ignore")

TINY: dict[str, Any] = {"groups_per_batch": 2, "group_size": 2, "evaluation_tasks": 2, "steps": 2}
FORECAST = preset("forecast", **TINY)
FORECASTS = [0.1, 0.9, 0.9, 0.5]


def pairs_of(folder: Path, job: Job, margin: float = 0.05) -> list[TokenPair]:
    saved = SavedRollouts.of_run(RunFolder(folder), job.world, job.roles[0], job.codec)
    return saved.preferences(margin)


def test_a_pair_is_what_was_read_and_sampled(tmp_path: Path) -> None:
    job = write_rollouts(tmp_path, FORECAST, FORECASTS)
    returns = [record.total for record in RunFolder(tmp_path).rollouts.read()]
    prompt = Episode(job.world, job.world.task("train", 0), job.codec).observation.tolist()
    said = [list(job.codec.write(f"Probability: {one}")) for one in FORECASTS]
    wanted = [
        (said[better], said[worse])
        for better in range(4)
        for worse in range(4)
        if returns[better] - returns[worse] >= 0.05
    ]
    found = pairs_of(tmp_path, job)
    assert sorted((list(one.chosen), list(one.rejected)) for one in found) == sorted(wanted)
    assert all(one.prompt == prompt for one in found)
    assert 3 <= len(found) <= 5  # the two equal ones are no pair


def test_later_replies_are_paired_after_what_came_before(tmp_path: Path) -> None:
    """Two days of energy that part in the second hour: their prompt holds the first."""
    job = Job.resolve(preset("energy", **TINY))
    RunFolder(tmp_path).write_config(job.config)
    task = job.world.task("train", 0)
    for member, (hours, total) in enumerate(((["1", "2"], 0.5), (["1", "3"], 0.75))):
        episode = Episode(job.world.fork(), task, job.codec)
        turns = []
        for hour in hours:
            prompt, read = episode.observation.tolist(), episode.turn.text
            tokens = list(job.codec.write(hour))
            turns.append(TurnRecord(job.roles[0], read, hour, tokens=tokens))
            episode.act(tokens, "stop")
        place = (task.world, task.level, "train", 0, task.fingerprint, job.roles[0])
        origin = RolloutOrigin("train", step=0, member=member)
        record = RolloutRecord(origin, *place, turns, "completed", total)
        RunFolder(tmp_path).rollouts.append(train_segment(0), [record])
    (pair,) = pairs_of(tmp_path, job)
    assert pair.prompt == prompt
    assert (list(pair.chosen), list(pair.rejected)) == (
        list(job.codec.write("3")),
        list(job.codec.write("2")),
    )


def test_rollouts_in_other_tokens_or_of_other_tasks_are_refused(tmp_path: Path) -> None:
    job = write_rollouts(tmp_path, FORECAST, FORECASTS)
    with pytest.raises(OptionError, match="no two of a group differ in return by 2"):
        pairs_of(tmp_path, job, margin=2.0)
    with pytest.raises(OptionError, match="in this model's tokens"):
        pairs_of(tmp_path, Job.resolve(preset("forecast", renderer="role_colon")))
    with pytest.raises(
        OptionError, match="kept 0 training rollouts of the forecaster at level 'hard'"
    ):
        pairs_of(tmp_path, Job.resolve(preset("forecast", "hard")))


@dataclass
class Indifferent:
    """Answers like a `tinker.SamplingClient` that finds all tokens equally likely."""

    asked: int = 0

    async def compute_logprobs(self, prompt: tinker.ModelInput) -> list[float | None]:
        self.asked += 1
        return [None, *[-1.0] * (prompt.length - 1)]


def test_all_pairs_are_seen_once_before_any_is_seen_again() -> None:
    reference: Any = Indifferent()
    pairs = [TokenPair([1, 2], [10 + n], [20 + n]) for n in range(5)]
    source = preference_pairs(pairs, ExampleOrder(5, 2, 3), 5, reference, 0.1)

    def shown(source: Examples) -> list[list[int]]:
        batches = [asyncio.run(source.batch(step, None)).data for step in range(5)]
        return [
            [row.loss_fn_inputs["target_tokens"].tolist()[-1] for row in one] for one in batches
        ]

    seen = [token for batch in shown(source) for token in batch]
    chosen, rejected = seen[::2], seen[1::2]
    assert [token + 10 for token in chosen] == rejected
    assert sorted(chosen[:5]) == sorted(chosen[5:]) == list(range(10, 15))
    assert chosen[:5] != chosen[5:]
    assert reference.asked == 10  # each reply once
    assert shown(preference_pairs(pairs, ExampleOrder(5, 2, 3), 5, reference, 0.1)) == shown(source)
    assert shown(preference_pairs(pairs, ExampleOrder(5, 2, 4), 5, reference, 0.1)) != shown(source)


@dataclass
class Recorder:
    """Answers like a `tinker.TrainingClient` that only notes what it is sent."""

    passes: list[list[tinker.Datum]] = field(default_factory=list)
    steps: int = 0

    def forward_backward_custom(self, data: list[tinker.Datum], loss: Any) -> None:
        self.passes.append(list(data))

    def optim_step(self, adam: tinker.AdamParams) -> None:
        self.steps += 1


@pytest.mark.parametrize("optimizer_steps", range(1, 8))
def test_a_pair_stays_together_whatever_the_number_of_optimizer_steps(optimizer_steps: int) -> None:
    """Parted, the chosen reply of one pair would be compared with the rejected one of another."""
    reference: Any = Indifferent()
    pairs = [TokenPair([1, 2], [10 + n], [20 + n]) for n in range(5)]
    source = preference_pairs(pairs, ExampleOrder(5, 5, 3), 1, reference, 0.1)
    data = asyncio.run(source.batch(0, None)).data
    client: Any = Recorder()
    submit(client, data, source.loss, 1e-5, optimizer_steps)
    assert client.steps == len(client.passes) == min(optimizer_steps, 5)
    last = [
        [row.loss_fn_inputs["target_tokens"].tolist()[-1] for row in one] for one in client.passes
    ]
    for part in last:
        assert part
        assert [token + 10 for token in part[::2]] == part[1::2]
    assert sorted(chain.from_iterable(last)) == [*range(10, 15), *range(20, 25)]
    sizes = [len(part) for part in last]
    assert max(sizes) - min(sizes) <= 2


@pytest.mark.nightly
def test_a_job_learns_what_earns_more(tmp_path: Path, served: dict[str, Any]) -> None:
    """At the first step the policy is its own reference; after a few it prefers the chosen."""
    rolled = tmp_path / "rolled"
    config = preset_for(
        DpoConfig, "forecast", **{**TINY, "steps": 3}, **served, preferences=str(rolled), substeps=2
    )
    write_rollouts(rolled, preset("forecast", **TINY, **served), [0.1, 0.9])
    _, shown = run_job(config, tmp_path / "run")
    rows = metrics(tmp_path / "run")
    assert rows[0]["dpo/loss"] == pytest.approx(math.log(2), abs=0.02)
    assert rows[-1]["dpo/loss"] < rows[0]["dpo/loss"]
    assert rows[-1]["dpo/accuracy"] == 1.0
    assert rows[-1]["dpo/margin"] > 0.0
    assert rows[-1]["dpo/chosen_reward"] > rows[-1]["dpo/rejected_reward"]
    (found,) = read_trained(RunFolder(tmp_path / "run")).values()
    assert found.after.result.tasks == 2
    assert "loss" in shown
    assert "2 preference pairs" in (tmp_path / "run" / "report.html").read_text()
