"""Laws of splits: disjoint by what is shown first, and large enough to hold the same questions."""

from collections import Counter

import numpy as np
import pytest

from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.core.task import canonical_json, plain
from tokengym.envs.registry import make_world, spec

WORLDS = ("forecast", "disruption")
CASES = [(world, level) for world in WORLDS for level in spec(world).levels]
DRAWS = 12_000
FEWEST_PROMPTS = 100_000
SMALLEST_SHARE = 0.15
"""Share of all prompts that validation and test have."""


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_no_first_text_lies_in_two_splits(case: tuple[str, str]) -> None:
    world = make_world(*case)
    owners: dict[str, str] = {}
    for split in SPLITS:
        for index in range(100):
            task = world.task(split, index)
            assert world.split_of(task.instance) == split
            assert owners.setdefault(world.start(task).text, split) == split


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_every_split_has_many_prompts(case: tuple[str, str]) -> None:
    """The effective number of prompts, 1 / Σ p², is that of pairs by that of equal pairs."""
    world, rng = make_world(*case), np.random.default_rng(5)
    keys = Counter(canonical_json(world._split_key(plain(world._draw(rng)))) for _ in range(DRAWS))
    equal = sum(count * (count - 1) // 2 for count in keys.values())
    expected = DRAWS * (DRAWS - 1) / 2 / (FEWEST_PROMPTS / SMALLEST_SHARE)
    # Four standard deviations of a Poisson number of equal pairs.
    assert equal <= expected + 4.0 * expected**0.5
