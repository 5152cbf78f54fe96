"""Laws of the spaces: sampling stays inside, JSON both ways, equality, refusals, shared memory."""

import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from gymnasium.vector.utils import (
    batch_space,
    create_shared_memory,
    read_from_shared_memory,
    write_to_shared_memory,
)
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.core.errors import OptionError, TokenError
from tokengym.envs.gymnasium.spaces import Tokens, UnicodeText

spaces = st.one_of(
    st.builds(Tokens, st.integers(1, 300), st.integers(0, 100)),
    st.builds(UnicodeText, st.integers(0, 100)),
)


@given(spaces, st.integers(0, 2**32 - 1))
def test_a_sample_is_contained_and_survives_json(space: Tokens | UnicodeText, seed: int) -> None:
    space.seed(seed)
    sample = space.sample()
    assert space.contains(sample)
    (again,) = space.from_jsonable(space.to_jsonable([sample]))  # type: ignore[list-item]
    assert space.contains(again)
    assert np.array_equal(again, sample)


@given(spaces)
def test_a_space_equals_its_pickle_and_samples_like_it(space: Tokens | UnicodeText) -> None:
    space.seed(7)
    twin = pickle.loads(pickle.dumps(space))
    assert twin == space
    assert np.array_equal(twin.sample(), space.sample())


@pytest.mark.nightly
@given(st.text(max_size=20))
def test_every_string_within_the_bound_is_contained(text: str) -> None:
    assert UnicodeText(20).contains(text)
    assert not UnicodeText(20).contains(text + "x" * 21)
    assert not UnicodeText(20).contains(text.encode("utf-8", "replace"))


@pytest.mark.parametrize(
    "array",
    [np.array([[1]]), np.array([1.0]), np.array([-1]), np.array([5]), np.zeros(4, int), [1, 2]],
    ids=["two-dimensional", "float", "negative", "not in vocabulary", "too long", "list"],
)
def test_what_is_no_token_array_is_not_contained(array: object) -> None:
    assert not Tokens(5, 3).contains(array)
    assert Tokens(5, 3).contains(np.array([], dtype=np.int64))


@given(spaces)
def test_a_batch_holds_a_tuple_of_samples(space: Tokens | UnicodeText) -> None:
    assert (space.sample(), space.sample()) in batch_space(space, 2)


@given(spaces, st.integers(0, 1))
def test_shared_memory_gives_back_what_was_written_last(
    space: Tokens | UnicodeText, index: int
) -> None:
    memory = create_shared_memory(space, 2)
    rows: Any = read_from_shared_memory(space, memory, 2)
    for _ in range(2):
        sample: Any = space.sample()
        write_to_shared_memory(space, index, sample, memory)
        assert np.array_equal(rows[index], sample)
    assert deepcopy(rows) in batch_space(space, 2)


def test_an_observation_too_long_for_the_memory_is_refused() -> None:
    space = Tokens(5, 3)
    with pytest.raises(TokenError, match="length 4, more than 3"):
        write_to_shared_memory(space, 0, np.zeros(4, int), create_shared_memory(space, 1))


def test_bounds_that_make_no_sense_are_refused() -> None:
    with pytest.raises(OptionError, match="vocab_size >= 1"):
        Tokens(0, 1)
    with pytest.raises(OptionError, match="max_length >= 0"):
        UnicodeText(-1)
    with pytest.raises(OptionError, match="not supported"):
        Tokens(2, 2).sample(mask=1)  # type: ignore[arg-type]
