"""Hypothesis strategies of Tasks, replies (hostile ones too) and token arrays."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from tokengym.envs.core.odd_replies import near_misses
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.core.task import Task
from tokengym.envs.testing.subject import WorldLike, world_of
from tokengym.envs.testing.written import written
from tokengym.envs.tokens.codec import Codec, TokenArray


def tasks(
    world: WorldLike, splits: Sequence[str] = SPLITS, *, most: int = 100
) -> st.SearchStrategy[Task]:
    """Return a strategy of a world's Tasks.

    Args:
        world: a world as an object, by its id, or as (id, level).
        splits: where they are taken from; empty splits of a user's data are left out.
        most: indices are below this, and below the size of the split.
    """
    made = world_of(world)
    strategies = []
    for split in splits:
        size = made.size(split)
        last = most - 1 if size is None else min(most, size) - 1
        if last >= 0:
            strategies.append(st.builds(made.task, st.just(split), st.integers(0, last)))
    return st.one_of(strategies)


def replies(world: WorldLike | None = None) -> st.SearchStrategy[str]:
    """Return a strategy of replies that any world must handle.

    They are empty, binary, bidirectional, full of lone surrogates or control characters, huge
    numbers, nested markup, or any text; for a given world also near misses of its form and copies
    of its prompt.

    Args:
        world: a world as an object, by its id, or as (id, level).
    """
    if world is None:
        return written()
    made = world_of(world)
    form, prompt = made.expected_form, made.fork().start(made.task()).text
    return written([form, *near_misses(form)], copied=[prompt, f"{prompt}\n{form}"])


def token_arrays(
    vocabulary: Codec | int, *, min_length: int = 0, max_length: int = 32
) -> st.SearchStrategy[TokenArray]:
    """Return a strategy of token arrays of shape (length,), ids in [0, vocabulary).

    Args:
        vocabulary: a codec, or the size of a vocabulary.
        min_length: fewest tokens.
        max_length: most tokens.
    """
    size = vocabulary if isinstance(vocabulary, int) else vocabulary.vocab_size
    ids = st.lists(st.integers(0, size - 1), min_size=min_length, max_size=max_length)
    return ids.map(lambda tokens: np.array(tokens, dtype=np.int64))
