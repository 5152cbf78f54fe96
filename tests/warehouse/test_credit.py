"""Exact credit of replies: what of the return is lost for good."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import baselines, make_world, specs
from tokengym.envs.warehouse.world import ROLE
from tokengym.rewards.bounds import GRID

KNOWN = ["pick", "aisle", "pick_clauses", "stock", "stock_large", "lease"]
ORACLE = baselines("warehouse")["oracle"]
RANDOM = baselines("warehouse")["random"]


@pytest.mark.nightly
@pytest.mark.parametrize("level", KNOWN)
@settings(max_examples=15)
@given(index=st.integers(0, 30), seed=st.integers(0, 10**6), data=st.data())
def test_a_reply_costs_its_irrecoverable_loss(
    level: str, index: int, seed: int, data: st.DataObject
) -> None:
    world = make_world("warehouse", level, credit=True)
    rng = np.random.default_rng(seed)
    turn = world.start(world.task("test", index))
    left = data.draw(st.integers(0, 6), "replies before the oracle plays")
    credits: list[float] = []
    while not turn.done:
        if len(credits) >= left:
            reply = ORACLE(world, turn, rng)
        else:
            reply = data.draw(st.sampled_from([RANDOM(world, turn, rng), "I wait.", ""]), "reply")
        turn = world.reply(reply)
        credits.append(turn.metrics["credit"])
    assert max(credits) <= 1e-12
    assert credits[left:] == pytest.approx([0.0] * len(credits[left:]), abs=1e-9)
    # Each of the two terms of a return is rounded to a grid.
    assert sum(credits) == pytest.approx(world.returns[ROLE] - 1.0, abs=1 / GRID)


@pytest.mark.parametrize("level", KNOWN)
def test_credit_changes_neither_texts_nor_rewards(level: str) -> None:
    played = []
    for options in ({}, {"credit": True}):
        world, rng = make_world("warehouse", level, **options), np.random.default_rng(0)
        turn = world.start(world.task("test", 0))
        texts = [turn.text]
        while not turn.done:
            turn = world.reply(RANDOM(world, turn, rng))
            texts.append(turn.text)
        played.append((texts, world.returns))
    assert played[0] == played[1]


@pytest.mark.parametrize("level", sorted({*specs()["tokengym/Warehouse-v1"].levels} - {*KNOWN}))
def test_levels_without_exact_credit_refuse_it(level: str) -> None:
    with pytest.raises(OptionError, match=f"credit=True needs a level .*'{level}'"):
        make_world("warehouse", level, credit=True)
