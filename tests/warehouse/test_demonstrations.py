"""What the warehouse demonstrates is what its best rule does, without routes nobody can copy."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.core.play import play
from tokengym.envs.registry import baselines, make_world
from tokengym.envs.warehouse.baselines import demonstrate

WORKED = baselines("warehouse")["worked"]


@pytest.mark.parametrize("level", ["pick", "stock", "lease"])
def test_demonstrations_are_nearly_as_good_as_the_best_rule(level: str) -> None:
    world = make_world("warehouse", level)
    found = {}
    for name, policy in {
        "demonstrated": demonstrate,
        "rule": baselines("warehouse")["replan"],
    }.items():
        records = [play(world, task, policy) for task in world.first_tasks("train", 3)]
        assert all(record.metrics.get("well_formed", 1.0) == 1.0 for record in records)
        found[name] = np.mean([record.returns["lead"] for record in records])
        replies = [reply for record in records for reply in record.replies]
        if name == "demonstrated":
            assert not any(":" in reply for reply in replies)
    assert found["demonstrated"] >= found["rule"] - 0.1


@pytest.mark.nightly
@given(index=st.integers(0, 2**31))
def test_who_reads_the_prompt_finds_every_sum_of_the_arithmetic(index: int) -> None:
    world = make_world("warehouse", "pick", prompt="terse")
    record = play(world, world.task("train", index), WORKED)
    opening = record.turns[0].text
    (capacity,) = map(int, re.findall(r"carry (\d+) units", opening))
    due, units = {}, {}
    for name, date, lines in re.findall(r"(O\d+) \$\d+ due (\d+): (.+)", opening):
        due[name] = int(date)
        units[name] = sum(map(int, re.findall(r"(\d+)@", lines)))
    left = set(due)
    for turn, reply in zip(record.turns, record.replies, strict=False):
        assert not turn.text.startswith("Refused")
        steps, trip = reply.split("\n")
        carried, taken = 0, []
        rows = re.findall(r"(O\d+) due (\d+): (\d+)( no)?", steps)
        assert [int(date) for _, date, *_ in rows] == sorted(due[name] for name, *_ in rows)
        for name, date, total, over in rows:
            assert due[name] == int(date)
            assert int(total) == carried + units[name]
            assert bool(over) == (int(total) > capacity)
            if not over:
                carried = int(total)
                taken.append(name)
        # Orders are left out of the sum only once the trip is full.
        unnamed = left - {name for name, *_ in rows}
        assert not unnamed or carried == capacity
        assert trip == f"TRIP {','.join(taken)}"
        left -= set(taken)


@pytest.mark.parametrize("level", ["pick", "pick_online", "stock", "lease"])
def test_arithmetic_earns_what_the_rule_without_it_earns(level: str) -> None:
    world = make_world("warehouse", level)
    for task in world.first_tasks("train", 3):
        earned = [
            play(world, task, baselines("warehouse")[name]).returns
            for name in ("worked", "edd_sshape")
        ]
        assert earned[0] == earned[1]
