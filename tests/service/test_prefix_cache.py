"""A cache of prefixes counts what it keeps alive, and drops conversations from their ends."""

from collections.abc import Mapping

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tokengym.agents.service.generation.prefix_cache import Prefix, PrefixCache

TOKEN_BYTES = 2 * 4


def _prefix(parent: Prefix | None, own: int) -> Prefix:
    length = own + (parent.length if parent else 0)
    return Prefix(parent, length, torch.zeros(2, 1, 1, own, 1))


def _tokens(conversation: int, length: int) -> NDArray[np.int32]:
    return np.arange(length, dtype=np.int32) + 1000 * conversation


def _alive(found: Mapping[int, Prefix | None]) -> int:
    nodes = {id(node): node for one in found.values() if one for node in one.chain()}
    return sum(node.nbytes for node in nodes.values())


turns = st.lists(st.tuples(st.integers(0, 5), st.integers(4, 12)), max_size=40)


@given(turns, st.integers(10, 200))
def test_what_is_counted_is_what_is_alive(turns: list[tuple[int, int]], room: int) -> None:
    cache = PrefixCache(room * TOKEN_BYTES)
    lengths: dict[int, int] = {}
    for conversation, own in turns:
        lengths[conversation] = lengths.get(conversation, 0) + own
        longer = _tokens(conversation, lengths[conversation])
        parent = cache.find("w", longer)
        cache.add("w", longer, _prefix(parent, len(longer) - (parent.length if parent else 0)))
        ends = {one: cache.find("w", _tokens(one, 1 << 9)) for one in lengths}
        assert cache.nbytes == _alive(ends) <= room * TOKEN_BYTES
    cache.forget("w")
    assert (len(cache), cache.nbytes) == (0, 0)


def test_a_conversation_in_use_outlives_others() -> None:
    cache = PrefixCache(100 * TOKEN_BYTES)
    first = _prefix(None, 40)
    cache.add("w", _tokens(0, 40), first)
    cache.add("w", _tokens(0, 50), _prefix(first, 10))
    for other in range(1, 6):
        assert cache.find("w", _tokens(0, 60)) is not None
        cache.add("w", _tokens(other, 40), _prefix(None, 40))
    found = cache.find("w", _tokens(0, 60))
    assert found is not None
    assert [node.length for node in found.chain()] == [50, 40]
    assert cache.find("w", _tokens(4, 45)) is None
