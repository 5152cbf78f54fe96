"""Laws of reading times."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from tokengym.envs.intake.times import read_time

NOON = datetime(2024, 5, 3, 12, tzinfo=UTC)


@pytest.mark.parametrize("value", [1714737600, "1714737600", " 1714737600000 ", 1714737600000.0])
def test_epochs_are_seconds_or_milliseconds_in_utc(value: object) -> None:
    assert read_time(value) == NOON


def test_iso_times_keep_their_offset_or_have_none() -> None:
    assert read_time("2024-05-03 12:00") == NOON.replace(tzinfo=None)
    shifted = read_time(" 2024-05-03T14:00+02:00 ")
    assert (shifted, shifted.hour) == (NOON, 14)
    assert shifted.tzinfo == timezone(timedelta(hours=2))


@pytest.mark.parametrize("value", ["tomorrow", "", None, True, [1], float("nan"), 1e30, "9" * 16])
def test_what_is_no_time_of_the_calendar_is_a_value_error(value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_time(value)
