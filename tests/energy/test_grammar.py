"""Laws of the operator's grammar: one power for each device, and no reply takes long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every import every
from tokengym.envs.energy.grammar import read_commands, write_commands

BATTERY = ("BATTERY",)
ALL = ("BATTERY", "GENSET", "EV")


def read(text: str, devices: tuple[str, ...] = BATTERY) -> tuple[float, ...] | None:
    return read_commands(text, devices, complete=True)


@given(st.lists(st.floats(-99.0, 99.0), min_size=3, max_size=3))
def test_what_is_written_is_read(powers: list[float]) -> None:
    written = write_commands(tuple(powers), ALL, decimals=12)
    assert read(written, ALL) == pytest.approx(powers, abs=1e-11)


@pytest.mark.parametrize(
    ("reply", "powers"),
    [
        ("GENSET 1\nBATTERY 0.5", (0.5, 1.0, 0.0)),
        ("GENSET 1", (0.0, 1.0, 0.0)),
        ("EV 3.7, BATTERY -1 kW", (-1.0, 0.0, 3.7)),
        ("BATTERY 1; GENSET 2; EV 3", (1.0, 2.0, 3.0)),
        ("- **BATTERY**: 1.5 kW\n- **EV**: 2 kilowatts", (1.5, 0.0, 2.0)),
        ("BATTERY 9\nGENSET 1\nBATTERY 2", (2.0, 1.0, 0.0)),
        ("EV 3\nBATTERY 1, BATTERY 1", (1.0, 0.0, 3.0)),
        ("BATTERY 1, BATTERY 2\nBATTERY 3", (3.0, 0.0, 0.0)),
        ("BATTERY \u2212 2", (-2.0, 0.0, 0.0)),
        ("BATTERY 1e1", (10.0, 0.0, 0.0)),
    ],
)
def test_the_last_line_that_names_a_device_counts_for_it(
    reply: str, powers: tuple[float, ...]
) -> None:
    assert read(reply, ALL) == powers


@every(
    "reply",
    [
        *("", "charge a lot", "BATTERY", "BATTERY NaN", "BATTERY 1e999", "BATTERY 1.5 kWh"),
        *("BATTERY 500 W", "BATTERY 1 or 2", "BATTERY: 3 4", "BATTERY 1, BATTERY 2"),
        *("BATTERY 3\nBATTERY 1, BATTERY 2", "HEAT 1", "the BATTERY 1", "BATTERY 2\u20143"),
        *("BATTERY 5\nBATTERY -2,5", "BATTERY 5\nbattery: as before"),
        "BATTERY 5\nBATTERY 2 (to 3)",
    ],
)
def test_what_names_no_power_or_two_is_refused(reply: str) -> None:
    assert read(reply) is None


@pytest.mark.parametrize("line", ["BATTERY 2,5", "BATTERY low, EV off", "BATTERY 1, EV off"])
def test_an_unreadable_line_withdraws_all_powers_it_names(line: str) -> None:
    assert read(f"BATTERY 1\nEV 2\n{line}", ALL) is None
    assert read(f"EV 2\n{line}\nEV 3\nBATTERY 4", ALL) == (4.0, 0.0, 3.0)
    assert (read(f"EV 2\n{line}\nBATTERY 4", ALL) is None) == ("EV" in line)


def test_two_powers_for_one_device_spoil_the_others() -> None:
    assert read("BATTERY 1\nGENSET 1, GENSET 2", ALL) is None
