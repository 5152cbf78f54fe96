"""Laws of the reward for form: graded, bounded, always less for a malformed reply."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.rewards.form import FORM_SHARE, FormAccount, form_of

near = st.floats(0, 1)


@given(st.lists(near, max_size=12), st.floats(0, 1))
def test_each_malformed_reply_costs_form_and_value(grades: list[float], value: float) -> None:
    account = FormAccount(12)
    before = account.form + account.earned(value)
    for grade in grades:
        account.note_malformed(grade)
        after = account.form + account.earned(value)
        assert 0.0 <= after < before
        before = after
    assert account.malformed == len(grades)


def test_no_malformed_reply_leaves_everything() -> None:
    assert FormAccount(7).form + FormAccount(7).earned(1.0) == 1.0


def test_malformed_replies_alone_earn_less_than_form_and_nothing_else() -> None:
    account = FormAccount(5)
    for _ in range(5):
        account.note_malformed(1.0)
    assert account.earned(1.0) == 0.0
    assert account.form < FORM_SHARE


@given(near, near)
def test_nearer_earns_more(one: float, other: float) -> None:
    assert (form_of(one) < form_of(other)) == (one < other) or form_of(one) == form_of(other)
    assert form_of(one) < 1.0


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_a_nearness_out_of_range_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="nearness"):
        form_of(wrong)
