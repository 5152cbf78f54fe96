"""Laws of the plants: energy is conserved, physics clips, safety does not."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.energy.drawn import plant_of
from tokengym.envs.energy.microgrid import LOST_LOAD
from tokengym.envs.energy.plants import Plant
from tokengym.envs.energy.step_result import TOLERANCE, State
from tokengym.envs.registry import spec

powers = st.floats(-20.0, 20.0, allow_nan=False)
levels = st.sampled_from([one for one in spec("energy").levels if one[:6] != "commit"])
indices = st.integers(0, 3)


def run(plant: Plant, commanded: list[tuple[float, ...]]) -> list[State]:
    """States before and after each command."""
    states = [plant.initial]
    for step, command in enumerate(commanded):
        states.append(plant.advance(step, states[-1], command).state)
    return states


@given(levels, indices, st.data())
def test_a_microgrid_conserves_energy_and_stays_within_its_limits(
    level: str, index: int, data: st.DataObject
) -> None:
    grid = plant_of(level, index)
    step = data.draw(st.integers(0, grid.steps - 1))
    charged = data.draw(st.floats(0.0, 12.0)) if grid.car else 0.0
    state = State(data.draw(st.floats(0.0, grid.capacity)), charged, (), 20.0, 1.0)
    commands = tuple(data.draw(powers) for _ in grid.devices)
    outcome = grid.advance(step, state, commands)
    done = dict(zip(grid.devices, outcome.done, strict=True))
    battery, ev, heat = done["BATTERY"], done.get("EV", 0.0), done.get("HEAT", 0.0)

    assert -1e-12 <= outcome.state.stored <= grid.capacity + 1e-12
    assert abs(battery) <= grid.power + 1e-12
    eta = grid.efficiency
    change = grid.dt * (battery * eta if battery > 0 else battery / eta)
    assert math.isclose(outcome.state.stored, state.stored + change, rel_tol=0, abs_tol=1e-9)
    assert math.isclose(outcome.state.charged, state.charged + grid.dt * ev, abs_tol=1e-9)

    # The least money that balances the power, given what the devices did.
    needed = grid.load[step] + heat + ev + battery - grid.pv[step]
    up = grid.up[step]
    if needed < 0.0 and grid.resale[step] < 0.0:
        needed = 0.0  # the sun is left unused
    bought = min(max(needed, 0.0), grid.import_cap * up)
    unserved = max(needed, 0.0) - bought
    sold = min(max(-needed, 0.0), grid.export_cap * up)
    assert unserved <= grid.load[step] + 1e-9
    money = grid.dt * (
        grid.price[step] * bought
        - grid.resale[step] * sold
        + grid.wear * abs(battery)
        + LOST_LOAD * unserved
    )
    missed = max(grid.reserve[step] - outcome.state.stored, 0.0)
    if grid.house:
        indoor = outcome.state.indoor
        missed = max(grid.low[step] - indoor, indoor - grid.house.high, 0.0)
    money += grid.price_of_miss * min(missed, grid.slack) + grid.demand_charge * max(bought - 1, 0)
    if grid.car and step == grid.car.departs - 1:
        money += grid.car.price_of_missing * max(grid.car.need - outcome.state.charged, 0.0)
    assert math.isclose(outcome.money, money, rel_tol=1e-9, abs_tol=1e-9)

    critical = max(unserved - (1 - grid.critical) * grid.load[step], 0.0)
    safety = max(missed - grid.slack, 0.0) + grid.dt * critical
    assert abs(outcome.safety - safety) <= TOLERANCE


@given(indices, st.data())
def test_a_car_charges_at_home_within_its_range_and_need(index: int, data: st.DataObject) -> None:
    grid = plant_of("household", index)
    assert grid.car is not None
    step, charged = data.draw(st.integers(0, grid.steps - 1)), data.draw(st.floats(0.0, 12.0))
    state = grid.initial._replace(charged=min(charged, grid.car.need))
    outcome = grid.advance(step, state, tuple(data.draw(powers) for _ in grid.devices))
    assert 0.0 <= outcome.done[1] <= grid.car.power + 1e-9
    assert outcome.state.charged <= grid.car.need + 1e-9
    if not grid.car.arrives <= step < grid.car.departs:
        assert outcome.done[1] == 0.0


@given(indices, st.data())
def test_a_house_follows_its_heat_balance(index: int, data: st.DataObject) -> None:
    grid = plant_of("household", index)
    assert grid.house
    house, step = grid.house, data.draw(st.integers(0, grid.steps - 1))
    indoor, wanted = data.draw(st.floats(10.0, 30.0)), data.draw(powers)
    outcome = grid.advance(step, State(grid.energy, indoor=indoor), (0.0, 0.0, wanted))
    power = min(max(wanted, 0.0), house.power)
    assert outcome.done[-1] == power
    cop = max(house.cop + house.slope * grid.outside[step], 1.0)
    flow = house.loss * (grid.outside[step] - indoor) + cop * power
    flow += house.gain + house.window * grid.pv[step]
    expected = indoor + grid.dt * flow / house.capacity
    assert math.isclose(outcome.state.indoor, expected, abs_tol=1e-9)
    missed = max(grid.low[step] - expected, expected - house.high, 0.0)
    assert abs(outcome.safety - max(missed - 0.1, 0.0)) <= TOLERANCE


@pytest.mark.nightly
@given(indices, st.lists(st.floats(-5.0, 5.0), min_size=24, max_size=24))
def test_no_house_misses_its_band_beyond_the_worst(index: int, wanted: list[float]) -> None:
    grid = plant_of("household", index)
    assert grid.house
    states = run(grid, [(power, power, power) for power in wanted])
    for step, state in enumerate(states[1:]):
        missed = max(grid.low[step] - state.indoor, state.indoor - grid.house.high)
        assert missed <= grid.required(step) + 1e-9


@given(levels, indices)
def test_the_end_values_charge_at_the_worst_price(level: str, index: int) -> None:
    plant = plant_of(level, index)
    start = plant.initial
    assert plant.closing(start) == 0.0
    for name in ("stored", "indoor") if start.indoor else ("stored",):
        less, more = (start._replace(**{name: getattr(start, name) + d}) for d in (-1.0, 1.0))
        # Where energy is free, nothing is paid for more of it.
        assert plant.closing(less) > -plant.closing(more) >= 0.0


@given(st.integers(0, 9))
def test_the_reserve_returns_after_an_outage_within_reach(index: int) -> None:
    grid = plant_of("outages", index)
    before = grid.schedule[0]
    for up, reserve, scheduled in zip(grid.up, grid.reserve, grid.schedule, strict=True):
        assert reserve <= scheduled
        if not up:
            assert reserve == 0.0
        elif reserve < scheduled:
            assert reserve <= before + grid.regain + 1e-9
            assert grid.regain <= grid.dt * grid.power * grid.efficiency
        before = reserve
