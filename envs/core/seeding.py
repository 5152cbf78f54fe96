"""Randomness for Tasks: one independent stream per (world, level, split, index), not `seed + i`.

Splits are disjoint by construction: every instance belongs to exactly one split, decided by a hash
of what it shows first, and a draw that belongs elsewhere is drawn again.
"""

import hashlib

import numpy as np

SPLITS = ("train", "validation", "test")
_SHARE_OF_TEST = 0.15
_SHARE_OF_VALIDATION = 0.15


def generator(*key: object) -> np.random.Generator:
    """Return a generator seeded by a hash of `key`.

    Equal keys give equal streams on every platform; any change gives an independent stream.
    """
    digest = hashlib.sha256("\n".join(map(str, key)).encode()).digest()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(int.from_bytes(digest))))


def split_of(fingerprint: str) -> str:
    """Return the split that a fingerprint falls to (70 % train, 15 % validation, 15 % test)."""
    share = int(fingerprint[:8], 16) / 2**32
    if share < _SHARE_OF_TEST:
        return "test"
    if share < _SHARE_OF_TEST + _SHARE_OF_VALIDATION:
        return "validation"
    return "train"
