"""Laws of the small parts of the core: splits, labels, rewards, odd replies, tables, texts."""

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every import every
from tests.tokens.duet import DUET, ROLES
from tokengym.envs.core.display import shorten
from tokengym.envs.core.errors import DataError, OptionError, require_one_of
from tokengym.envs.core.label_noise import outcomes_of_label
from tokengym.envs.core.odd_replies import (
    DECORATIONS,
    LINE_DECORATIONS,
    WHOLE_DECORATIONS,
    near_misses,
)
from tokengym.envs.core.reward_checks import pay_terms
from tokengym.envs.core.seeding import SPLITS, generator, split_of
from tokengym.envs.core.split_windows import Windows
from tokengym.envs.core.templates import MissingError, figure, templates
from tokengym.rewards.bounds import RewardRangeError

STEP = 2**-16


@given(starts=st.lists(st.integers(0, 10**6), min_size=3, max_size=90, unique=True))
def test_windows_are_split_as_given_and_listed_chronologically(starts: list[int]) -> None:
    windows = Windows(starts, "days")
    assert list(windows) == list(windows.starts) == sorted(starts)
    assert len(windows) == len(starts)
    given_order = [windows[start] for start in starts]
    # As many to validation as to test, and as near to 15 % as whole windows are.
    held_out = given_order.count("test")
    assert given_order.count("validation") == held_out
    assert held_out == max(1, round(0.15 * len(starts)))
    train = len(starts) - 2 * held_out
    assert given_order == train * ["train"] + held_out * ["validation"] + held_out * ["test"]
    assert train > 0


@pytest.mark.parametrize("count", range(3))
def test_fewer_windows_than_splits_are_refused(count: int) -> None:
    with pytest.raises(DataError, match=f"the data hold {count} weeks; 3 are needed"):
        Windows(range(count), "weeks")


@pytest.mark.parametrize("count", [1, 2, 63, 64])
def test_a_label_averages_as_many_outcomes_as_it_says(count: int) -> None:
    assert outcomes_of_label(f"replay:{count}") == count
    assert outcomes_of_label("outcome") == outcomes_of_label("expected") == 1


@every(
    "label",
    [
        *("replay:0", "replay:65", "replay:-1", "replay:1.5", "replay:", "replay", "replay: 4"),
        *("replay:٣", "replay:³", "outcome:4", "expected:1", "", "4", "replays:4"),
    ],
)
def test_any_other_label_is_refused_and_named(label: str) -> None:
    with pytest.raises(OptionError, match=re.escape(f"'replay:K' with K in 1..64, got {label!r}")):
        outcomes_of_label(label)


@pytest.mark.parametrize(
    ("first", "split"),
    [
        *((0, "test"), (int(0.15 * 2**32), "test"), (int(0.15 * 2**32) + 1, "validation")),
        *((int(0.30 * 2**32), "validation"), (int(0.30 * 2**32) + 1, "train")),
        (2**32 - 1, "train"),
    ],
)
def test_a_split_owns_a_range_of_the_first_eight_digits(first: int, split: str) -> None:
    for rest in ("0" * 24, "f" * 24):
        assert split_of(f"{first:08x}{rest}") == split
    assert set(SPLITS) == {"train", "validation", "test"}


def test_streams_depend_on_their_whole_key_alone() -> None:
    keys: list[tuple[object, ...]] = [("a",), ("a", 1), ("a", 2), ("b", 1), (1, "a"), ()]
    drawn = [generator(*key).integers(2**63) for key in keys]
    assert drawn == [generator(*key).integers(2**63) for key in keys]
    assert len(set(drawn)) == len(keys)
    # The same on every platform and in every version: Tasks are drawn by it.
    assert generator("a", 1).integers(2**63) == 2352482259635007882


@given(st.text(max_size=80), st.integers(1, 80))
def test_a_text_is_cut_to_a_length_and_says_so(text: str, longest: int) -> None:
    shown = shorten(text, longest)
    if len(text) <= longest:
        assert shown == text
    else:
        assert len(shown) == longest
        assert shown == text[: longest - 1] + "…"
    assert shorten("x" * 61) == "x" * 59 + "…"
    assert shorten("x" * 60) == "x" * 60


def test_terms_are_rounded_summed_and_added_to_what_was_earned() -> None:
    returns = {ROLES[0]: 0.5, ROLES[1]: 0.25}
    rewards, terms = pay_terms(
        DUET, returns, {ROLES[0]: {"a": 0.25 + STEP / 4, "b": 0.125}}, final=False
    )
    assert terms == {ROLES[0]: {"a": 0.25, "b": 0.125}}
    assert rewards == {ROLES[0]: 0.375}
    assert returns == {ROLES[0]: 0.875, ROLES[1]: 0.25}


@pytest.mark.parametrize(("edge", "beyond"), [(0.0, -STEP), (1.0, 1.0 + STEP)])
def test_a_reward_may_not_leave_its_range(edge: float, beyond: float) -> None:
    for final in (False, True):
        rewards, _ = pay_terms(
            DUET, dict.fromkeys(ROLES, 1.0), {ROLES[1]: {"a": edge}}, final=final
        )
        assert rewards == {ROLES[1]: edge}
        with pytest.raises(RewardRangeError, match="reward of 'second'"):
            pay_terms(DUET, dict.fromkeys(ROLES, 1.0), {ROLES[1]: {"a": beyond}}, final=final)


@pytest.mark.parametrize(
    ("before", "left"), [(5.0, False), (5.0 + STEP, True), (-1.0 - STEP, True)]
)
def test_returns_of_silent_roles_are_checked_too(before: float, left: bool) -> None:
    for role in ROLES:
        returns = {**dict.fromkeys(ROLES, 1.0), role: before}
        pay_terms(DUET, dict(returns), {role: {"a": 1.0}}, final=False)
        silent = {**returns, role: before + 1.0}
        if not left:
            pay_terms(DUET, dict(returns), {role: {"a": 1.0}}, final=True)
            pay_terms(DUET, silent, {}, final=True)
            continue
        with pytest.raises(RewardRangeError, match=f"return of '{role}'"):
            pay_terms(DUET, dict(returns), {role: {"a": 1.0}}, final=True)
        with pytest.raises(RewardRangeError, match=f"return of '{role}'"):
            pay_terms(DUET, silent, {}, final=True)


def test_decorations_put_something_around_a_line_and_keep_it() -> None:
    assert len(DECORATIONS) == len(LINE_DECORATIONS) + len(WHOLE_DECORATIONS) + 1 == 21
    for decoration in DECORATIONS.values():
        decorated = decoration.format("A: 1")
        assert "A: 1" in decorated
        assert decorated != "A: 1"
    assert all("\n" not in decoration for decoration in LINE_DECORATIONS.values())


def test_near_misses_are_other_replies_each_one_step_away() -> None:
    assert near_misses("PUT 0.5 HERE") == (
        *("PUT " + "9" * 400 + " HERE", "PUT 1e999 HERE", "PUT -1 HERE"),
        *("PUT 0.000000000000000000001 HERE", "PUT nan HERE", "PUT ٣ HERE"),
        *("PUT 0.", "PUT", "0.5 HERE", "PUT PUT 0.5 HERE"),
        "PUT 0.5 HERE " + "0.5 HERE" * 200,
        *("EREH 5.0 TUP", "`PUT 0.5 HERE`", "> - **PUT 0.5 HERE**", "PUT 0.5 HERE\nPUT"),
        *("PUT\u00a00.5\u00a0HERE", "PUT\u200b 0.5 HERE"),
    )
    assert "DONE" not in near_misses("DONE")  # nothing in it can be changed by some of them


@given(st.text(max_size=30))
def test_no_near_miss_is_the_form_or_is_there_twice(form: str) -> None:
    found = near_misses(form)
    assert form not in found
    assert max(Counter(found).values(), default=1) == 1


def test_an_argument_is_one_of_the_known_ones() -> None:
    require_one_of("colour", "red", ("red", "blue"))
    with pytest.raises(OptionError, match=re.escape("colour must be one of ['red'], got 'rde'")):
        require_one_of("colour", "rde", ("red",))


def test_templates_write_figures_and_plurals(tmp_path: Path) -> None:
    text = (
        "{% macro told(n) %}\n  {{ n | figure }}, {{ n | counted('hour') }}{{ more }}\n"
        "{% endmacro %}"
        "{% macro wrong() %}{{ absent }}{% endmacro %}"
    )
    (tmp_path / "page.jinja").write_text(text)
    page = templates(tmp_path, more="!")("page")
    assert [str(page.told(n)).strip() for n in (0, 1, 2)] == [
        "0, 0 hours!",
        "1, 1 hour!",
        "2, 2 hours!",
    ]
    assert figure(0.1 + 0.2) == "0.3"
    assert figure(-0.0) == "0"
    assert figure(1 / 3) == "0.333333333333"
    with pytest.raises(MissingError, match="absent"):
        page.wrong()
