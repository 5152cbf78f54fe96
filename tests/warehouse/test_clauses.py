"""Laws of clauses: solved exactly, of one split each, worth reading, and refused where damaged."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from tests.contract.planners.terms import read_term
from tests.warehouse.brute_force import Leg, Shift
from tests.warehouse.drawn import task_of, world_of
from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.play import play
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.registry import baselines
from tokengym.envs.warehouse.games.picking.clauses import CLAUSES, WORDINGS, split_of_kinds
from tokengym.envs.warehouse.games.picking.generator import draw
from tokengym.envs.warehouse.games.picking.oracle import best_plan
from tokengym.envs.warehouse.games.picking.orders import read_shift
from tokengym.envs.warehouse.levels import LEVELS, PickLevel

LEVEL = "pick_clauses"
SETS = [*combinations(CLAUSES, 3)]


def drawn(seed: int, orders: int = 8) -> dict[str, Any]:
    level = LEVELS[LEVEL]
    assert isinstance(level, PickLevel)
    return draw(np.random.default_rng(seed), replace(level, orders=(orders, orders)))


def kinds(instance: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(clause["kind"] for clause in instance["clauses"])


@pytest.mark.nightly
@pytest.mark.parametrize(("orders", "waits", "tasks"), [(6, False, 24), (4, True, 24)])
def test_no_plan_of_all_there_are_beats_the_optimum(orders: int, waits: bool, tasks: int) -> None:
    """With four orders, plans that wait without need are tried as well."""
    stated: Counter[str] = Counter()
    for seed in range(tasks):
        instance = drawn(seed, orders)
        site, book, _ = read_shift(instance)
        best = Shift(instance, waits=waits).best()
        assert best_plan(site, book).value == pytest.approx(best, abs=1e-9), seed
        stated.update(kinds(instance))
    assert min(stated[kind] for kind in CLAUSES) >= 4


def test_doing_nothing_earns_no_more_than_the_reference() -> None:
    """One order at a time may earn less than nothing where clauses fine it."""
    world, policies = world_of(LEVEL), baselines("warehouse")
    lost = 0
    for index in range(12):
        task = task_of(LEVEL, index)
        done, singly = (play(world, task, policies[name]) for name in ("null", "fcfs"))
        assert done.metrics["normalized_score"] <= 0.0
        earned = singly.metrics["objective"]
        assert task.answer["reference"] == pytest.approx(max(earned, 0.0))
        lost += earned < 0.0
    assert lost


@pytest.mark.nightly
def test_replanning_after_any_trip_earns_the_best_left() -> None:
    """What left before counts on: who is paid with whom, and what is fined."""
    world, replan = world_of(LEVEL), baselines("warehouse")["replan"]
    for seed in range(20):
        rng, instance = np.random.default_rng(seed), drawn(seed, 6)
        world.start(world.task_of(instance))
        name = str(rng.choice([order["id"] for order in instance["orders"]]))
        turn = world.reply(f"TRIP {name}")
        found = re.search(r"(?:Left t=(\d+)\. )?Walked (\d+), back t=(\d+)", turn.text)
        assert found is not None
        leaves, steps, back = (int(number or 0) for number in found.groups())
        while not turn.done:
            turn = world.reply(replan(world, turn, rng))
        best = Shift(instance).best(Leg((name,), leaves, back, steps))
        assert turn.metrics["objective"] == pytest.approx(best, abs=1e-9), seed


@pytest.mark.parametrize("name", ["unread", "random", "fcfs", "edd_sshape"])
def test_an_episode_earns_what_its_trips_come_to(name: str) -> None:
    """Kept by another bookkeeper, from the texts alone; many of these trips break clauses."""
    world, fined, held = world_of(LEVEL), 0.0, 0
    for index in range(6):
        task = task_of(LEVEL, index)
        record = play(world, task, baselines("warehouse")[name], seed=index)
        shift, legs, now = Shift(task.instance), [], 0
        for reply, turn in zip(record.replies, record.turns[1:], strict=True):
            found = re.search(r"(?:Left t=(\d+)\. )?Walked (\d+), back t=(\d+): (.*)", turn.text)
            if found is not None:
                ids = tuple(re.findall(r"O\d+", reply.partition(":")[0]))
                leaves, steps, back = int(found[1] or now), int(found[2]), int(found[3])
                assert leaves == shift.leaves(ids, now)
                assert back == leaves + steps + shift.units(ids)
                legs.append(Leg(ids, leaves, back, steps))
                fines = re.findall(r"Fined \$(\d+)", found[4])
                fined += sum(map(int, fines))
                held += leaves > now
            clock = re.search(r"It is time (\d+)", turn.text)
            now = int(clock[1]) if clock else now
        metrics = record.turns[-1].metrics
        assert metrics["objective"] == pytest.approx(shift.value(legs), abs=1e-9)
        fined -= metrics["fined"]
    assert fined == 0.0
    assert held > 0


@pytest.mark.nightly
def test_wordings_and_sets_of_clauses_belong_to_one_split() -> None:
    world = world_of(LEVEL)
    words: dict[str, set[str]] = defaultdict(set)
    sets: dict[str, set[frozenset[str]]] = defaultdict(set)
    for seed in range(3000):
        instance = drawn(seed)
        split = world.split_of(instance)
        words[split] |= {clause["words"] for clause in instance["clauses"]}
        sets[split].add(kinds(instance))
    for one, other in combinations(SPLITS, 2):
        assert not words[one] & words[other]
        assert not sets[one] & sets[other]
    assert [len(sets[split]) for split in SPLITS] == [21, 7, 7]
    assert [len(words[split]) for split in SPLITS] == [21, 7, 14]


@pytest.mark.parametrize("split", SPLITS)
def test_a_task_states_what_its_split_has(split: str) -> None:
    for index in range(5):
        task = task_of(LEVEL, index, split)
        assert split_of_kinds([*kinds(task.instance)]) == split
        for clause in task.instance["clauses"]:
            assert clause["words"] in WORDINGS[clause["kind"]]


def test_any_two_clauses_meet_equally_often_in_every_split() -> None:
    for split, times in zip(SPLITS, (3, 1, 1), strict=True):
        pairs = Counter(
            pair
            for found in SETS
            if split_of_kinds(found) == split
            for pair in combinations(found, 2)
        )
        assert {pairs[pair] for pair in combinations(CLAUSES, 2)} == {times}


@pytest.mark.parametrize("kind", CLAUSES)
def test_every_wording_says_what_the_clause_does(kind: str) -> None:
    """Read by rules of a reader's own, all six come to the very same numbers and names."""
    entries = [entry for seed in range(60) for entry in drawn(seed)["clauses"]]
    known = frozenset(f"O{number}" for number in range(1, 9))
    assert len({*WORDINGS[kind]}) == 6
    for entry in [entry for entry in entries if entry["kind"] == kind][:8]:
        for words in WORDINGS[kind]:
            text = CLAUSES[kind].of({**entry, "words": words}, known).text
            assert read_term(text) == {n: v for n, v in entry.items() if n != "words"}


def test_clauses_of_one_s_own_are_played() -> None:
    world, instance = world_of(LEVEL), drawn(0)
    own = {"kind": "first", "words": "O2 leads, or ${fine} go.", "order": "O2", "fine": 5}
    turn = world.start(world.task_of({**instance, "clauses": [own]}))
    assert "\nO2 leads, or $5 go.\n" in turn.text
    turn = world.reply("TRIP O1")
    assert "Fined $5." in turn.text
    while not turn.done:
        turn = world.reply("DONE")
    assert turn.metrics["fined"] == 5.0


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kind": "truck"}, "the clauses are dock, .*, got 'truck'"),
        ({"order": "O9"}, r"orders that the shift lacks: \['O9'\]"),
        ({"fine": -1}, "numbers from .*, got {'fine': -1}"),
        ({"words": "Pay {toll}."}, "toll"),
    ],
)
def test_a_damaged_clause_is_refused(changes: dict[str, object], reason: str) -> None:
    clause = {"kind": "first", "words": "O2 leads.", "order": "O2", "fine": 5, **changes}
    with pytest.raises(TaskError, match=reason):
        world_of(LEVEL).task_of({**drawn(0), "clauses": [clause]})


def test_an_order_is_paid_with_others_once() -> None:
    groups = [
        {"kind": "customer", "words": "{orders} go together.", "orders": ["O1", name]}
        for name in ("O2", "O3")
    ]
    with pytest.raises(TaskError, match=r"one consignment each, got several for \['O1'\]"):
        world_of(LEVEL).task_of({**drawn(0), "clauses": groups})


def test_a_site_has_one_picker_and_clauses_need_announced_orders() -> None:
    instance = drawn(0)
    for change, reason in (({"pickers": 2}, "one picker"), ({"announced": False}, "announced")):
        with pytest.raises(TaskError, match=reason):
            world_of(LEVEL).task_of({**instance, "site": {**instance["site"], **change}})
