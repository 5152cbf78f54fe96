"""Laws of reading times."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every import every
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


@given(
    st.sampled_from(["%Y%m%d", "%Y%m%d%H%M", "%Y%m%d%H%M%S", "%Y%m%dT%H%M%S", "%Y%m%d %H%M"]),
    st.sampled_from(["", "Z", "+0200", "-05:30"]),
    st.datetimes(datetime(1900, 1, 1), datetime(2199, 12, 31)),
)
def test_compact_times_are_read_as_text_and_as_numbers(
    form: str, offset: str, when: datetime
) -> None:
    text = when.strftime(form) + offset
    expected = datetime.fromisoformat(
        datetime.strptime(when.strftime(form), form).isoformat() + offset
    )
    assert read_time(text) == expected
    if text.isdigit():
        assert read_time(int(text)) == read_time(f"{text}.0") == read_time(float(text)) == expected


@every("value", [
     "20230101120", "2023010112", 2023010112, "20230101120000000", "202301011260", "20230230", 2023,
     "20230230120000", "3023-01-01", "0203-01-01", 23, 0, "20231301T1200", 32503680000,
     "1899-12-31"])  # fmt: skip
def test_ambiguous_and_implausible_times_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match=rf"{value}.*|of the years 1900 to 2199, got .*{value}"):
        read_time(value)


@pytest.mark.parametrize("value", ["tomorrow", "", None, True, [1], float("nan"), 1e30, "9" * 16])
def test_impossible_times_are_value_errors(value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_time(value)
