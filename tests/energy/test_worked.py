"""What `worked` writes follows from what is shown, and is the best of the simple rules."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.energy.drawn import plant_of
from tokengym.envs.core.play import PlayedEpisode, play
from tokengym.envs.energy.rules import time_of_use
from tokengym.envs.registry import baselines, make_world

BASELINES = baselines("energy")
NUMBER = r"(-?\d+(?:\.\d+)?)"
UNJOINED = rf"(?<![\d.]){NUMBER}"
TENTH = Decimal("0.1")
SHOWN = re.compile(
    rf"energy {NUMBER} load {NUMBER} sun {NUMBER} buy {NUMBER}.* (?:keep {NUMBER}|GRID DOWN)"
)


def played(level: str, index: int, name: str = "worked") -> PlayedEpisode:
    world = make_world("energy", level, prompt="terse")
    return play(world, world.task("train", index), BASELINES[name])


@pytest.mark.nightly
@given(index=st.integers(0, 2**31), level=st.sampled_from(["small", "day", "outages"]))
def test_who_reads_the_prompt_finds_every_number_of_the_steps(index: int, level: str) -> None:
    record = played(level, index)
    opening = record.turns[0].text
    table = re.findall(r"^\d+ (.+)$", opening, re.MULTILINE)
    dearest = max(Decimal(row.split()[2]) for row in table if len(row.split()) == 4)
    most = float(re.findall(rf"kWh, {NUMBER} kW,", opening)[0])
    for turn, reply in zip(record.turns, record.replies, strict=False):
        *shown, kept = SHOWN.findall(turn.text)[-1]
        energy, load, sun, price = map(Decimal, shown)
        steps, command = reply.split("\nBATTERY ")
        surplus, keep = sun - load, Decimal(kept or 0)
        spare, power = energy - keep, Decimal(command)
        written = list(map(Decimal, re.findall(UNJOINED, steps)))
        if spare < 0:
            assert steps == f"{float(energy):g}<{float(keep):g}"
            assert float(command) == pytest.approx(most)
            continue
        assert re.sub(UNJOINED, "0", steps).startswith("0-0=0")
        assert written[:3] == [sun, load, surplus]
        if not kept:
            # In an outage nothing is kept, and the load comes first.
            assert len(written) == 3
            assert abs(power - surplus) <= TENTH
        elif surplus >= 0:
            assert len(written) == 3
            assert power == surplus
        elif price < dearest:
            assert steps.endswith(f", {price:g} of {dearest:g}")
            assert command == "0"
        else:
            assert written[3:] == [energy, keep, spare]
            assert -power == -surplus or Decimal("0.8") * spare - TENTH < -power <= spare


@pytest.mark.parametrize("index", range(5))
def test_time_of_use_charges_where_power_is_cheapest(index: int) -> None:
    plant = plant_of("small", index)
    charged = [time_of_use(plant, step, plant.initial)[0] for step in range(plant.steps)]
    priced = list(zip(plant.price, charged, strict=True))
    assert {power for price, power in priced if price == min(plant.price)} == {plant.power}
    assert all(power < plant.power for price, power in priced if price == max(plant.price))
