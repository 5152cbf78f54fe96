"""Laws of levels with hidden evidence: who may speak, what it costs, what Bayesians make of it."""

import dataclasses
from functools import cache

import numpy as np
import pytest

from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.task import Task, canonical_json
from tokengym.envs.disruption.evidence import (
    CITER_FEATURES,
    KINDS,
    NEXT_FEATURES,
    NOTED_LEVELS,
    PERIODS,
)
from tokengym.envs.disruption.grammar import PredictorAnswer
from tokengym.envs.disruption.labels import DISRUPTION_LABELS, Target
from tokengym.envs.disruption.world import DisruptionWorld
from tokengym.envs.registry import baselines, make_world

BASELINES = baselines("disruption")
REPORT = "LABEL neutral\nP 0.3 0.3 0.4"
ONE: tuple[Target, ...] = ("disruption",)


each_level = pytest.mark.parametrize("level", NOTED_LEVELS)


def make(level: str, label: str = "expected", target: str = "disruption") -> DisruptionWorld:
    return DisruptionWorld.cast(make_world("disruption", level, label=label, target=target))


@cache
def tasks(level: str, count: int) -> list[Task]:
    return make(level).first_tasks("test", count)


def of_kind(level: str, kind: str) -> Task:
    return next(task for task in tasks(level, 60) if task.instance["kind"] == kind)


def names_at(level: str) -> tuple[str, ...]:
    return NEXT_FEATURES if level == "L2" else CITER_FEATURES


@pytest.mark.nightly
@each_level
def test_kinds_and_notes_are_drawn_as_the_prompt_says(level: str) -> None:
    drawn = [task.instance for task in make(level).first_tasks("train", 400)]
    for kind, count in KINDS.items():
        share = count / sum(KINDS.values())
        found = np.mean([instance["kind"] == kind for instance in drawn])
        assert abs(found - share) < 4 * np.sqrt(share * (1 - share) / len(drawn))
    for instance in drawn:
        same = instance["notes"] == instance["private"]
        assert same or instance["kind"] == "careless"
        noted, true = (sorted(instance[key].values()) for key in ("notes", "private"))
        assert noted == true
    other = [i["notes"] != i["private"] for i in drawn if i["kind"] == "careless"]
    assert np.mean(other) > 0.75


@each_level
def test_each_kind_is_paid_for_its_aim(level: str) -> None:
    for kind in KINDS:
        task, world = of_kind(level, kind), make(level, label="outcome")
        place = DISRUPTION_LABELS.index(task.answer["labels"]["disruption"])
        world.start(world.adopt(task))
        world.reply(REPORT)
        world.reply("ARGUE neutral")
        better = " ".join("1" if k == place else "0" for k in range(3))
        last = world.reply(f"LABEL neutral\nP {better}")
        assert (last.terms["challenger"]["change"] < 0) == (kind == "adversarial")
    with pytest.raises(OptionError, match=level):
        make_world("disruption", level, challenger="critic")


@each_level
@pytest.mark.parametrize("kind", KINDS)
def test_silence_and_falsehood_cost_as_much_as_misleading_can_earn(kind: str, level: str) -> None:
    task, world = of_kind(level, kind), make(level)
    name = names_at(level)[0]
    noted = task.instance["notes"][name]
    for said, silence, false in (
        ("ARGUE nothing", -0.25, 0.0),
        ("ARGUE neutral", -0.25, 0.0),
        ("", -0.25, 0.0),
        (f"ARGUE neutral\nCLAIM {name} >= {noted}", -0.25, 0.0),
        ("ARGUE neutral\nCLAIM references = 3", -0.25, -0.25),
        (f"ARGUE nothing\nCLAIM {name} = {noted}", 0.0, 0.0),
        (f"ARGUE neutral\nCLAIM {name} = {noted}", 0.0, 0.0),
        (f"ARGUE neutral\nCLAIM {name} = {noted + 1}", 0.0, -0.25),
    ):
        world.start(task)
        world.reply(REPORT)
        turn = world.reply(said)
        assert (name in turn.text) == (name in said)  # what it says is passed on, true or not
        paid = world.reply(REPORT).terms["challenger"]
        assert (paid["silence"], paid["false_claims"]) == (silence, false), said


@each_level
def test_predictors_may_repeat_claims_at_their_risk(level: str) -> None:
    world = make(level)
    for kind in ("honest", "careless"):
        task = of_kind(level, kind)
        _, name, _ = names_at(level)
        claim = f"CLAIM {name} = {task.instance['notes'][name]}"
        true = task.instance["notes"][name] == task.instance["private"][name]
        for argument, told in ((f"ARGUE neutral\n{claim}", True), ("ARGUE neutral", False)):
            world.start(task)
            world.reply(REPORT)
            world.reply(argument)
            last = world.reply(f"{REPORT}\n{claim}")
            holds = told and true
            assert last.terms["predictor"]["false_claims"] == (0.0 if holds else -0.125)
            assert (last.terms["predictor"]["reasoning"] != 0.0) == holds


@each_level
def test_the_predictors_texts_hide_the_challengers_evidence(level: str) -> None:
    world = make(level)
    answer = PredictorAnswer((2,), ((0.2, 0.3, 0.5),), ()).write(ONE)
    for task in tasks(level, 60)[:10]:
        opening = world.start(task).text
        shown = world.reply(answer).text
        period = PERIODS[names_at(level)].capitalize()
        noted = ", ".join(f"{name} {value}" for name, value in task.instance["notes"].items())
        assert f"{period}: {noted}" in shown
        assert f"{period}: " not in opening
        assert ("In 4 of 5 debates" in shown) == (task.instance["kind"] != "adversarial")
        for kind in KINDS:
            changed = {**task.instance, "kind": kind, "notes": dict.fromkeys(names_at(level), 9)}
            other = dataclasses.replace(task, instance_json=canonical_json(changed))
            assert world.start(other).text == opening


@each_level
def test_what_the_challenger_is_shown_does_not_decide_the_split(level: str) -> None:
    world = make(level)
    for task in tasks(level, 60)[:10]:
        for kind in KINDS:
            changed = {**task.instance, "kind": kind, "notes": dict.fromkeys(names_at(level), 9)}
            assert world.split_of({**changed, "private": {"x": 7}}) == "test"


@each_level
def test_where_only_novelty_is_asked_nobody_has_notes(level: str) -> None:
    world = make(level, target="novelty")
    task = world.task("test", 0)
    assert "notes" not in world.start(task).text
    period = PERIODS[names_at(level)].capitalize()
    assert period not in world.reply("LABEL novel\nP 0.3 0.3 0.4").text


@pytest.mark.parametrize("level", ["L0", "examples"])
def test_a_challenge_changes_nothing_at_the_warm_ups(level: str) -> None:
    world, rng = make(level), np.random.default_rng(0)
    for task in world.first_tasks("test", 10):
        first = BASELINES["oracle"](world, world.start(task), rng)
        turn = world.reply(first)
        turn = world.reply(BASELINES["scripted"](world, turn, rng))
        assert BASELINES["oracle"](world, turn, rng) == first
