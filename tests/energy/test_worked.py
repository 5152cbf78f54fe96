"""What `worked` writes follows from what is shown, and is the best of the simple rules."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.core.rollout import Record, play
from tokengym.envs.energy.levels import LEVELS
from tokengym.envs.registry import baselines, make_world

BASELINES = baselines("energy")
NUMBER = r"(-?\d+(?:\.\d+)?)"
SHOWN = re.compile(
    rf"energy {NUMBER} load {NUMBER} sun {NUMBER} buy {NUMBER}.* (?:keep {NUMBER}|GRID DOWN)"
)
STEPS = re.compile(
    rf"{NUMBER}-{NUMBER}={NUMBER}"
    rf"(?:, {NUMBER}-{NUMBER}={NUMBER}, buy {NUMBER} of {NUMBER})?\nBATTERY {NUMBER}"
)


def played(level: str, index: int, name: str = "worked") -> Record:
    world = make_world("energy", level, prompt="terse")
    return play(world, world.task("train", index), BASELINES[name], np.random.default_rng(0))


@given(index=st.integers(0, 2**31), level=st.sampled_from(["small", "two_days", "outages"]))
def test_who_reads_the_prompt_finds_every_number_of_the_steps(index: int, level: str) -> None:
    record = played(level, index)
    table = re.findall(r"^\d+ (.+)$", record.turns[0].text, re.MULTILINE)
    dearest = max(float(row.split()[2]) for row in table if len(row.split()) == 4)
    (most,) = re.findall(rf"kWh, {NUMBER} kW,", record.turns[0].text)
    for turn, reply in zip(record.turns, record.replies, strict=False):
        energy, load, sun, price, keep = SHOWN.findall(turn.text)[-1]
        surplus = float(sun) - float(load)
        found = STEPS.fullmatch(reply)
        assert found is not None
        assert (float(found[1]), float(found[2])) == (float(sun), float(load))
        assert float(found[3]) == pytest.approx(surplus)
        command = float(found[9])
        if not keep:
            # In an outage nothing is kept, and the load comes first.
            assert found[4] is None
            assert command == pytest.approx(surplus, abs=0.1)
            continue
        spare = float(energy) - float(keep)
        assert (float(found[4]), float(found[5])) == (float(energy), float(keep))
        assert float(found[6]) == pytest.approx(spare)
        assert (float(found[7]), float(found[8])) == (float(price), dearest)
        if surplus < 0.0 and float(price) == dearest and spare > 0.2:
            assert surplus - 1e-9 <= command <= 0.0
            assert command == pytest.approx(surplus) or -command <= spare
        elif spare > 0.2:
            assert command == pytest.approx(max(surplus, 0.0))
        elif spare < 0.0:
            assert command == math.ceil(float(most) * 10.0 - 1e-6) / 10.0


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_has_a_reply_in_form(level: str) -> None:
    record = played(level, 0)
    assert record.metrics["malformed_replies"] == 0.0


def test_it_earns_more_than_other_rules_of_thumb() -> None:
    earned = {
        name: np.mean([played("small", index, name).returns["operator"] for index in range(60)])
        for name in ("worked", "self_consumption", "time_of_use")
    }
    assert earned["worked"] > max(earned["self_consumption"], earned["time_of_use"]) + 0.05
