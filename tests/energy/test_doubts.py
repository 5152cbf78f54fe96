"""Stuck values and sun at midnight are named; flat tariffs and dark nights are not."""

import pytest

from tokengym.envs.energy.data.doubts import doubts

CLOCK = [60 * (hour % 24) for hour in range(96)]
VARIED = tuple(float(hour % 7 + 1) for hour in range(96))
DARK = tuple(float(6 <= hour % 24 < 20) for hour in range(96))


@pytest.mark.parametrize("name", ["price", "load"])
@pytest.mark.parametrize("value", [0.0, 3.25])
def test_a_value_that_repeats_for_a_day_is_named(name: str, value: float) -> None:
    stuck = (*VARIED[:60], *[value] * 24, *VARIED[84:])
    (said,) = doubts({name: stuck, "pv": DARK}, CLOCK, 60)
    shown = "zero" if value == 0.0 else "3.25"
    assert f"{name} is {shown} for 24 hours in a row from row 61" in said
    assert not [*doubts({name: (*VARIED[:60], *[value] * 23, *VARIED[83:])}, CLOCK, 60)]


def test_flat_tariffs_and_dark_nights_are_no_doubts() -> None:
    assert not [*doubts({"price": [0.3] * 96, "load": VARIED, "pv": DARK}, CLOCK, 60)]


def test_sun_at_midnight_is_named() -> None:
    (said,) = doubts({"load": VARIED, "pv": (*DARK[12:], *DARK[:12])}, CLOCK, 60)
    assert "sun at 4 of 4 midnights" in said
