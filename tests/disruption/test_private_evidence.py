"""Laws of the level `private`: who may speak, what it costs, and what a Bayesian makes of it."""

import dataclasses
from functools import cache

import numpy as np
import pytest

from tests.contract.planners.disruption import Predictor
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.task import Task, canonical_json
from tokengym.envs.disruption.evidence import CITER_FEATURES, KINDS
from tokengym.envs.disruption.grammar import PredictorAnswer
from tokengym.envs.disruption.inference import kinds_given
from tokengym.envs.disruption.labels import DISRUPTION_LABELS, Target
from tokengym.envs.disruption.world import DisruptionWorld
from tokengym.envs.registry import baselines, import_object, make_world, spec

BASELINES = baselines("disruption")
REPORT = "LABEL neutral\nP 0.3 0.3 0.4"
ONE: tuple[Target, ...] = ("disruption",)


def make(
    prompt: str = "full", label: str = "expected", target: str = "disruption"
) -> DisruptionWorld:
    options = {"label": label, "prompt": prompt, "target": target}
    return DisruptionWorld.cast(make_world("disruption", "private", **options))


@cache
def tasks(count: int) -> list[Task]:
    return make().first_tasks("test", count)


def of_kind(kind: str) -> Task:
    return next(task for task in tasks(40) if task.instance["kind"] == kind)


def test_kinds_and_notes_are_drawn_as_the_prompt_says() -> None:
    drawn = [task.instance for task in make().first_tasks("train", 400)]
    for kind, count in KINDS.items():
        share = count / sum(KINDS.values())
        found = np.mean([instance["kind"] == kind for instance in drawn])
        assert abs(found - share) < 4 * np.sqrt(share * (1 - share) / len(drawn))
    for instance in drawn:
        same = instance["notes"] == instance["private"]
        assert same or instance["kind"] == "careless"
    other = [i["notes"] != i["private"] for i in drawn if i["kind"] == "careless"]
    assert np.mean(other) > 0.9
    # The notes of another paper are drawn like those of this one: no moment tells them apart.
    noted, own = (
        np.array([[i[key][name] for name in CITER_FEATURES] for i in drawn if i["kind"] == kind])
        for key, kind in (("notes", "careless"), ("private", "careless"))
    )
    error = np.sqrt((noted.var(axis=0) + own.var(axis=0)) / len(noted))
    assert (abs(noted.mean(axis=0) - own.mean(axis=0)) < 4 * error).all()


def test_each_kind_is_paid_for_its_aim() -> None:
    for kind in KINDS:
        task, world = of_kind(kind), make(label="outcome")
        place = DISRUPTION_LABELS.index(task.answer["labels"]["disruption"])
        world.start(world.adopt(task))
        world.reply(REPORT)
        world.reply("ARGUE neutral")
        better = " ".join("1" if k == place else "0" for k in range(3))
        last = world.reply(f"LABEL neutral\nP {better}")
        assert (last.terms["challenger"]["change"] < 0) == (kind == "adversarial")
    with pytest.raises(OptionError, match="private"):
        make_world("disruption", "private", challenger="critic")


@pytest.mark.parametrize("kind", KINDS)
def test_silence_and_falsehood_cost_as_much_as_misleading_can_earn(kind: str) -> None:
    task, world = of_kind(kind), make()
    noted = task.instance["notes"]["n_i"]
    for said, silence, false in (
        ("ARGUE nothing", -0.25, 0.0),
        ("ARGUE neutral", -0.25, 0.0),
        ("", -0.25, 0.0),
        (f"ARGUE neutral\nCLAIM n_i >= {noted}", -0.25, 0.0),
        ("ARGUE neutral\nCLAIM references = 3", -0.25, -0.25),
        (f"ARGUE neutral\nCLAIM n_i = {noted}", 0.0, 0.0),
        (f"ARGUE neutral\nCLAIM n_i = {noted + 1}", 0.0, -0.25),
    ):
        world.start(task)
        world.reply(REPORT)
        turn = world.reply(said)
        assert ("n_i" in turn.text) == ("n_i" in said)  # what it says is passed on, true or not
        paid = world.reply(REPORT).terms["challenger"]
        assert (paid["silence"], paid["false_claims"]) == (silence, false), said


def test_the_predictor_may_repeat_what_it_was_told_at_its_own_risk() -> None:
    world = make()
    for kind in ("honest", "careless"):
        task = of_kind(kind)
        claim = f"CLAIM n_j = {task.instance['notes']['n_j']}"
        true = task.instance["notes"]["n_j"] == task.instance["private"]["n_j"]
        for argument, told in ((f"ARGUE neutral\n{claim}", True), ("ARGUE neutral", False)):
            world.start(task)
            world.reply(REPORT)
            world.reply(argument)
            last = world.reply(f"{REPORT}\n{claim}")
            holds = told and true
            assert last.terms["predictor"]["false_claims"] == (0.0 if holds else -0.125)
            assert (last.terms["predictor"]["reasoning"] != 0.0) == holds


def test_no_text_of_the_predictor_depends_on_what_only_the_challenger_is_shown() -> None:
    world = make()
    answer = PredictorAnswer((2,), ((0.2, 0.3, 0.5),), ()).write(ONE)
    for task in tasks(10):
        opening = world.start(task).text
        shown = world.reply(answer).text
        noted = ", ".join(f"{name} {task.instance['notes'][name]}" for name in CITER_FEATURES)
        assert f"First year: {noted}" in shown
        assert "First year: n_i" not in opening
        assert ("In 2 of 3 debates" in shown) == (task.instance["kind"] != "adversarial")
        for kind in KINDS:
            changed = {**task.instance, "kind": kind, "notes": {"n_i": 9, "n_j": 9, "n_k": 9}}
            other = dataclasses.replace(task, instance_json=canonical_json(changed))
            assert world.start(other).text == opening


def test_where_only_novelty_is_asked_nobody_has_notes() -> None:
    world = make(target="novelty")
    task = world.task("test", 0)
    assert "notes" not in world.start(task).text
    assert "First year" not in world.reply("LABEL novel\nP 0.3 0.3 0.4").text


def earned(world: DisruptionWorld, task: Task, planner: Predictor) -> float:
    turn, rng = world.start(task), np.random.default_rng(0)
    while not turn.done:
        scripted = BASELINES["scripted"](world, turn, rng)
        turn = world.reply(planner.reply(turn.text) if turn.role == "predictor" else scripted)
    return world.returns["predictor"]


def test_who_models_the_kinds_gains_and_who_believes_everything_loses() -> None:
    """By a planner that reads only the texts; the oracle earns as much."""
    world, count = make(), 400
    by_trust = {
        trust: np.array([earned(world, task, Predictor(trust)) for task in tasks(count)])
        for trust in ("kinds", "nothing", "everything")
    }
    blind = max(
        np.mean([_returns(world, task, policy) for task in tasks(60)])
        for policy in import_object(spec("disruption").blind)(world).values()
    )
    gain = by_trust["kinds"] - by_trust["nothing"]
    error = gain.std(ddof=1) / np.sqrt(count)
    assert gain.mean() - 1.96 * error > 0.10 * (by_trust["kinds"].mean() - blind)
    loss = by_trust["nothing"] - by_trust["everything"]
    assert loss.mean() > 0.0
    assert by_trust["kinds"].mean() > by_trust["everything"].mean() + 0.1


def _returns(world: DisruptionWorld, task: Task, policy: object) -> float:
    turn, rng = world.start(task), np.random.default_rng(0)
    while not turn.done:
        who = policy if turn.role == "predictor" else BASELINES["scripted"]
        turn = world.reply(who(world, turn, rng))  # type: ignore[operator]
    return world.returns["predictor"]


def test_beliefs_about_the_paper_and_the_kind_are_calibrated() -> None:
    """Against drawn outcomes and drawn kinds: a simulation of the whole debate."""
    world = make(label="outcome")
    stated, came_true = [], []
    for task in make().first_tasks("train", 700):
        rng = np.random.default_rng(0)
        turn = world.start(world.adopt(task))
        for _ in range(2):
            turn = world.reply(
                BASELINES["oracle" if turn.role == "predictor" else "scripted"](world, turn, rng)
            )
        assert world.first_answer is not None
        assert world.argument is not None
        label = world.first_answer.labels[0]
        kinds = kinds_given(world.compiled.evidence, label, world.argument)
        numbers = BASELINES["oracle"](world, turn, rng).splitlines()[1].split()[1:]
        stated += [*kinds.values(), *map(float, numbers)]
        outcome = task.answer["labels"]["disruption"]
        came_true += [kind == task.instance["kind"] for kind in KINDS]
        came_true += [name == outcome for name in DISRUPTION_LABELS]
    chance, drawn = np.array(stated), np.array(came_true)
    for low in np.arange(0.0, 1.0, 0.2):
        inside = (chance >= low) & (chance < low + 0.2)
        if inside.sum() > 20:
            error = np.sqrt((chance * (1 - chance))[inside].sum()) / inside.sum()
            assert abs(drawn[inside].mean() - chance[inside].mean()) < 4 * error
