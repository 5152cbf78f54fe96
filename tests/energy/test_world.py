"""Laws of the energy world: what is shown, how replies are read, what an episode earns."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.energy.drawn import task_of, world_of
from tokengym.envs.core.errors import EpisodeStateError, OptionError, TaskError
from tokengym.envs.core.task import Task, canonical_json
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import PROMPTS
from tokengym.envs.energy.world import EnergyWorld
from tokengym.envs.registry import spec
from tokengym.rewards.control import SAFE_RETURN

LEVELS = spec("energy").levels


def play(world: EnergyWorld, task: Task, replies: Sequence[str]) -> list[Turn]:
    """Every Turn of an episode in which the replies come round again and again."""
    turns = [world.start(task)]
    for reply in itertools.cycle(replies):
        turns.append(world.reply(reply))
        if turns[-1].done:
            return turns
    raise AssertionError("unreachable")


def command(level: str, power: float) -> str:
    if level.startswith("commit"):
        return f"BIG {power:.2f}\nSMALL {3.0 - power:.2f}"
    if level == "household":
        return f"BATTERY {power:.2f}\nEV {power / 2:.2f}\nHEAT {power / 4 + 0.5:.2f}"
    return f"BATTERY {power:.2f}"


# What an episode earns
@given(
    st.sampled_from(LEVELS), st.integers(0, 3), st.lists(st.floats(-6, 6), min_size=1, max_size=24)
)
def test_only_violations_score_below_the_floor(level: str, index: int, powers: list[float]) -> None:
    world = world_of(level)
    turns = play(world, task_of(level, index), [command(level, power) for power in powers])
    violated = any(turn.metrics["cost"] > 0.0 for turn in turns[1:])
    value, last = world.returns["operator"], turns[-1].metrics
    assert (value < SAFE_RETURN) == violated
    assert last["safety_floor_mass"] == float(violated)
    assert (last["violation_depth"] > 0.0) == violated
    assert last["total_cost"] == pytest.approx(sum(turn.metrics["cost"] for turn in turns[1:]))
    assert last["total_money_cost"] == pytest.approx(
        sum(turn.metrics["money_cost"] for turn in turns[1:])
    )
    if violated:
        first = int(last["first_violation_step"])
        assert turns[first + 1].metrics["cost"] > 0.0
        assert not any(turn.metrics["cost"] for turn in turns[1 : first + 1])
    else:
        assert "first_violation_step" not in last
        assert last["normalized_score"] <= 1.0 + 1e-6 or level.startswith("commit")
    # Only the last step pays.
    assert not any(turn.rewards for turn in turns[:-1])
    assert len(turns) == spec("energy").turn_limits[level] + 1
    assert turns[-1].stop_reason is StopReason.COMPLETED


@given(st.integers(0, 3), st.lists(st.floats(-6, 6), max_size=12), st.integers(1, 9))
@example(0, [], 1)
def test_the_flat_floor_pays_violations_nothing(
    index: int, powers: list[float], malformed: int
) -> None:
    # An episode that kept the limit may earn as little as one that did not: it does not fall.
    replies = [*(command("small", power) for power in powers), *malformed * ["nothing"]]
    graded, flat = world_of("small"), world_of("small", flat_floor=True)
    last = play(graded, task_of("small", index), replies)[-1]
    play(flat, flat.adopt(task_of("small", index)), replies)
    kept = last.metrics["safety_floor_mass"] == 0.0
    assert flat.returns["operator"] == (graded.returns["operator"] if kept else 0.0)


@pytest.mark.nightly
@given(st.integers(0, 3), st.lists(st.floats(-6, 6), min_size=3, max_size=12))
def test_termination_pays_no_more_than_violating_on(index: int, powers: list[float]) -> None:
    replies = [command("small", power) for power in powers]
    world = world_of("small", terminate_on_violation=True)
    turns = play(world, world.adopt(task_of("small", index)), replies)
    full = play(world_of("small"), task_of("small", index), replies)
    first = full[-1].metrics.get("first_violation_step")
    if first is None:
        assert turns[-1].stop_reason is StopReason.COMPLETED
    else:
        assert len(turns) == first + 2
        assert world.returns["operator"] < SAFE_RETURN
        ended = len(turns) == len(full)
        assert turns[-1].stop_reason is (StopReason.COMPLETED if ended else StopReason.FAILURE)


# How replies are read


def test_a_reply_cut_off_is_zero_power_and_reported() -> None:
    cut, null = world_of("small"), world_of("small")
    cut.start(task_of("small", 0))
    null.start(task_of("small", 0))
    after = cut.reply("BATTERY 3", complete=False)
    assert after.text.startswith("Malformed reply: it was cut off")
    assert after.text.endswith(null.reply("BATTERY 0").text)


@pytest.mark.parametrize(
    ("prompt", "report"),
    [("full", r"The battery could only do \d+\.\d\d kW\. "), ("terse", r"Did \d+\.\d\d\. ")],
)
def test_what_physics_clips_is_reported(prompt: str, report: str) -> None:
    world = world_of("small", prompt=prompt)
    world.start(task_of("small", 0))
    assert re.match(report, world.reply("BATTERY 999").text)


# What is shown


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_shown_depends_on_the_future(level: str) -> None:
    task = task_of(level, 0)
    now = 2 if level.startswith("commit") else spec("energy").turn_limits[level] // 2
    instance = dict(task.instance)
    for name in ("load", "pv", "outside"):
        if name in instance:
            tail = [value + 1.0 for value in instance[name][now + 1 :]]
            instance[name] = [*instance[name][: now + 1], *tail]
    if "day" in instance:
        suns, loads, day = instance["suns"], instance["loads"], instance["day"]
        twins = [
            other
            for other in range(len(loads))
            if other != day
            and (loads[other][:now], suns[other][:now]) == (loads[day][:now], suns[day][:now])
        ]
        instance["day"] = twins[0]
    for name in ("load", "pv", "outside"):
        name += "_updates"
        if instance.get(name):
            tail = [[value + 1.0 for value in row] for row in instance[name][now + 1 :]]
            instance[name] = [*instance[name][: now + 1], *tail]
    answer = {**task.answer, "optimum": task.answer["optimum"] - 1.0}
    other = replace(
        task, instance_json=canonical_json(instance), answer_json=canonical_json(answer)
    )
    reply = command(level, 0.7)
    for prompt in PROMPTS:
        one, two = world_of(level, prompt=prompt), world_of(level, prompt=prompt)
        assert one.start(task) == two.start(other)
        for _ in range(now):
            assert one.reply(reply) == two.reply(reply)
        assert one.shown == two.shown


@pytest.mark.parametrize("level", LEVELS)
def test_every_number_is_the_one_that_is_shown(level: str) -> None:
    """Texts write six digits; prices at the end have one."""
    for index in range(4):
        instance = task_of(level, index).instance
        for name, value in instance.items():
            for number in np.ravel(np.array(value, dtype=object)).tolist():
                for single in number if isinstance(number, list) else [number]:
                    assert float(f"{single:g}") == single, name
        for name in ("price_of_missing", "price_of_extra"):
            assert round(instance[name], 3) == instance[name]


# A caller's mistakes


def test_a_damaged_task_is_refused() -> None:
    task = task_of("small", 0)
    for instance, answer in (
        ({}, task.answer),
        ({**task.instance, "load": [1.0]}, task.answer),
        (task.instance, {}),
        ({**task.instance, "unheard_of": 1}, task.answer),
    ):
        damaged = replace(
            task, instance_json=canonical_json(instance), answer_json=canonical_json(answer)
        )
        with pytest.raises(TaskError, match="damaged"):
            world_of("small").start(damaged)


@pytest.mark.parametrize("option", ["terminate_on_violation", "flat_floor", "credit"])
def test_a_switch_takes_true_or_false_only(option: str) -> None:
    with pytest.raises(OptionError, match=option):
        world_of("small", **{option: 1})


def test_nothing_is_shown_before_the_start() -> None:
    with pytest.raises(EpisodeStateError, match="start"):
        _ = world_of("small").shown
