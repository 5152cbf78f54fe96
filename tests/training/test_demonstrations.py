"""Laws of demonstrations: true to the label, honest, and weighed where the role itself speaks."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.jobs import write_rollouts
from tokengym.agents.tinker.codec import codec_named
from tokengym.agents.tinker.scripted_rollout import TurnTokens, roll_out_scripted
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.agents.training.batches.examples import demonstrations, imitation_data
from tokengym.agents.training.config import SftConfig
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset, preset_for
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import play
from tokengym.envs.disruption.challengers import scripted
from tokengym.envs.disruption.demonstrations import SMOOTHING, labelled
from tokengym.envs.disruption.grammar import read_answer
from tokengym.envs.disruption.labels import LABELS
from tokengym.envs.disruption.world import DisruptionWorld
from tokengym.envs.registry import make_world, specs
from tokengym.envs.tokens.codec import ByteCodec
from tokengym.envs.tokens.episode import Episode

BYTE = ByteCodec()


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.nightly
@given(st.integers(0, 400), st.sampled_from(("disruption", "novelty", "both")))
def test_a_labelled_debate_says_the_gold_label_and_nothing_false(index: int, target: str) -> None:
    world = make_world("disruption", target=target)
    assert isinstance(world, DisruptionWorld)
    task = world.task("train", index)
    record = play(world, task, labelled)
    answers = [
        read_answer(reply, world.targets).value
        for turn, reply in zip(record.turns, record.replies, strict=False)
        if turn.role == "predictor"
    ]
    assert len(answers) == 2
    for answer in answers:
        assert answer is not None
        for said, report, name in zip(answer.labels, answer.reports, world.targets, strict=True):
            assert LABELS[name][said] == task.answer["labels"][name]
            assert report[said] == pytest.approx(1 - 2 * SMOOTHING)
        assert answer.claims
        assert all(claim.holds(world.compiled.evidence) for claim in answer.claims)
    assert record.metrics["well_formed"] == 1.0
    assert record.returns["predictor"] > 1.0  # the label is right, so +1 and some for its reasons


@pytest.mark.parametrize("world_id", specs())
def test_demonstrations_hold_no_unknowable_digits(world_id: str) -> None:
    job = Job.resolve(preset(world_id))
    for task in job.world.first_tasks("train", 3):
        record = play(job.world.fork(), task, job.demonstrations)
        assert record.metrics["well_formed"] == 1.0
        for reply in record.replies:
            assert len(job.codec.write(reply)) <= job.max_tokens
            assert all(len(digits) <= 3 for digits in re.findall(r"\.(\d+)", reply))


def scripted_debate(codec_name: str, role: str) -> tuple[list[TurnTokens], float]:
    world = make_world("disruption")
    other = "challenger" if role == "predictor" else "predictor"
    found = asyncio.run(
        roll_out_scripted(
            world,
            world.task("train", 2),
            codec_named(codec_name),
            role,
            labelled,
            {other: scripted if other == "challenger" else labelled},
            rng(),
        )
    )
    return found.turns, found.total_reward


@pytest.mark.parametrize(("role", "count"), [("predictor", 2), ("challenger", 1)])
def test_one_datum_holds_a_side_and_its_weights(role: str, count: int) -> None:
    turns, earned = scripted_debate("byte", role)
    assert len(turns) == count
    (datum,) = imitation_data(turns, append_only=True)
    targets = datum.loss_fn_inputs["target_tokens"].tolist()
    weights = datum.loss_fn_inputs["weights"].tolist()
    whole = [*turns[-1].observation, *turns[-1].reply]
    assert datum.model_input.to_ints() == whole[:-1]
    assert targets == whole[1:]
    weighed = [token for token, weight in zip(targets, weights, strict=True) if weight]
    assert weighed == [token for turn in turns for token in turn.reply]
    assert set(weights) == {0.0, 1.0}
    assert (earned > 1.0) == (role == "predictor")


def test_a_format_that_renders_again_makes_a_datum_a_turn() -> None:
    name = f"qwen3@{MODEL_DIR}"
    assert not codec_named(name).append_only
    turns, _ = scripted_debate(name, "predictor")
    made = imitation_data(turns, append_only=False)
    assert len(made) == len(turns) == 2
    for datum, turn in zip(made, turns, strict=True):
        assert sum(datum.loss_fn_inputs["weights"].tolist()) == len(turn.reply)


def test_steps_have_fixed_examples_and_share_none() -> None:
    sizes: dict[str, Any] = {"steps": 3, "groups_per_batch": 1, "group_size": 2}
    config = preset_for(SftConfig, "disruption", **sizes, self_play=True)
    source = demonstrations(
        Job.resolve(config),
        {"predictor": {"challenger": "scripted"}, "challenger": {"predictor": "logistic"}},
    )
    assert len(source) == 3

    def batch(step: int) -> list[tuple[int, ...]]:
        data = asyncio.run(source.batch(step, None)).data
        return [tuple(datum.model_input.to_ints()) for datum in data]

    first, again, second = batch(0), batch(0), batch(1)
    assert first == again
    assert len(first) == 4  # two Tasks, both sides of each
    assert not set(first) & set(second)


def test_each_groups_best_rollout_is_imitated(tmp_path: Path) -> None:
    """As it was read and sampled; a job's configuration names the run."""
    sizes: dict[str, Any] = {"groups_per_batch": 1, "group_size": 2, "steps": 2}
    job = write_rollouts(tmp_path, preset("forecast", **sizes), [0.1, 0.9, 0.5])
    records = list(RunFolder(tmp_path).rollouts.read())
    best = max(records, key=lambda record: record.total)
    config = preset_for(SftConfig, "forecast", **sizes, demonstrations=str(tmp_path))
    ((turn,),) = Job.resolve(config).recorded
    assert turn.reply == list(best.turns[0].tokens)
    episode = Episode(job.world, job.world.task("train", 0), job.codec)
    assert turn.observation == episode.observation.tolist()
    source = demonstrations(Job.resolve(config), {})
    data = asyncio.run(source.batch(1, None)).data
    assert [row.model_input.to_ints() for row in data] == [
        [*turn.observation, *turn.reply][:-1]
    ] * 2
    with pytest.raises(OptionError, match="none well-formed with a return of at least 2"):
        Job.resolve(replace(config, demonstration_return=2.0))
