"""Laws of the operator's grammar: one power for each device, and no reply takes long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every import every
from tokengym.envs.core.grammar import SEVERAL
from tokengym.envs.energy.grammar import read_commands, write_commands

BATTERY = ("BATTERY",)
ALL = ("BATTERY", "GENSET", "EV")


def read(text: str, devices: tuple[str, ...] = BATTERY) -> tuple[float, ...] | None:
    return read_commands(text, devices).value


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
        ("BATTERY discharge 1.5, EV off", (-1.5, 0.0, 0.0)),
        ("BATTERY: discharge at 1.5 kW\nGENSET idle", (-1.5, 0.0, 0.0)),
        ("BATTERY discharge -1.5", (-1.5, 0.0, 0.0)),
        ("BATTERY 1.5 kW (discharging)", (-1.5, 0.0, 0.0)),
        ("BATTERY charge 1.5", (1.5, 0.0, 0.0)),
        ('```json\n{"BATTERY": 0.5, "EV": 0, "GENSET": 1.2}\n```', (0.5, 1.2, 0.0)),
        ("* BATTERY: 0.5 kW\n* EV: 0 kW (not at home)\n\nThis is it.", (0.5, 0.0, 0.0)),
        ("| a | b |\n| --- | --- |\n| x | 2.0 |\n\n| BATTERY | 2.0 |", (2.0, 0.0, 0.0)),
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
        *(
            "BATTERY charge -1.5",
            "BATTERY 1.5 (discharging for 2 h)",
            "BATTERY 500 W",
            "BATTERY 1 or 2",
            "BATTERY: 3 4",
            "BATTERY 1, BATTERY 2",
        ),
        *("BATTERY 3\nBATTERY 1, BATTERY 2", "HEAT 1", "no BATTERY 1", "BATTERY 2\u20143"),
        *("BATTERY 5\nBATTERY -2,5", "BATTERY 5\nbattery: as before"),
        *("BATTERY 5\nBATTERY 2 (to 3)", "Option A: BATTERY 2. Option B: BATTERY 3."),
    ],
)
def test_what_names_no_power_or_two_is_refused(reply: str) -> None:
    assert read(reply) is None


@pytest.mark.parametrize("line", ["BATTERY 2,5", "BATTERY low, EV off", "BATTERY 1, EV low"])
def test_an_unreadable_line_withdraws_all_powers_it_names(line: str) -> None:
    assert read(f"BATTERY 1\nEV 2\n{line}", ALL) is None
    assert read(f"EV 2\n{line}\nEV 3\nBATTERY 4", ALL) == (4.0, 0.0, 3.0)
    assert (read(f"EV 2\n{line}\nBATTERY 4", ALL) is None) == ("EV" in line)


def test_two_powers_for_one_device_spoil_the_others() -> None:
    assert read("BATTERY 1\nGENSET 1, GENSET 2", ALL) is None


@every("line", ["<!-- EV 2 -->", "Maybe EV 2.", "Not EV 2", "(EV 2)", "If the car is here, EV 2."])
def test_a_command_that_is_not_read_is_never_silently_idle(line: str) -> None:
    """A device without a line is off; one that is commanded in a line of no form is not."""
    devices = ("BATTERY", "EV")
    found, said = read_commands(f"BATTERY 1\n{line}", devices)
    assert found is None
    assert f"line 2 reads {line!a}" in said
    assert read(f"BATTERY 1\n{line}\nEV 3", devices) == (1.0, 3.0)
    assert read("BATTERY 1\nThe EV is away.", devices) == (1.0, 0.0)


@pytest.mark.parametrize("lead", ["{}h: ", "{}:00 - ", "Hour {}: ", "At {}h ", "| {}h | "])
def test_of_a_plan_the_line_for_this_hour_counts(lead: str) -> None:
    plan = "\n".join(f"{lead.format(hour)}BATTERY {hour}.5" for hour in (9, 10, 11))
    assert read_commands(plan, BATTERY, now="10") == ((10.5,), "")
    assert read_commands(plan, BATTERY, now="12").value is None


def test_the_last_of_several_powers_counts_and_is_remarked_on() -> None:
    assert read_commands("BATTERY 1\nBATTERY 2", BATTERY) == ((2.0,), SEVERAL)
    assert read_commands("BATTERY 2.0\nBATTERY 2", BATTERY) == ((2.0,), "")
    assert read_commands("EV 1\nBATTERY 2\nEV 3", ("BATTERY", "EV")) == ((2.0, 3.0), SEVERAL)


def test_a_cut_reply_must_have_named_every_device() -> None:
    def cut(text: str) -> tuple[float, ...] | None:
        return read_commands(text, ("BATTERY", "EV"), complete=False).value

    assert cut("BATTERY 1\nEV 2\nThis is") == (1.0, 2.0)
    assert cut("BATTERY 1\nEV 2") is None
    assert cut("BATTERY 1\n") is None
    assert cut("BATTERY 1\nEV 2\nBATTERY 3") == (1.0, 2.0)
