"""Worlds of designed rewards: groups in which right and wrong trainers part ways.

Replies are random tokens: what is decomposed is the update on a batch, whoever wrote it. Rewards
are paid in order of arrival, or for what was written.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tokengym.agents.probe.policy import END, VOCABULARY
from tokengym.agents.probe.rollouts import ProbeRollout


class DesignedWorld(NamedTuple):
    """A group of rollouts.

    Attributes:
        name: the world's.
        rewards: by order of arrival; empty where they are `text_reward`'s.
        lengths: tokens of each turn, by order of arrival.
        turns: of each rollout.
        turn_rewards: whether the reward of each turn is known.
        cut: whether every second reply lacks its end token.
        twins: whether the first two rollouts are equal.
    """

    name: str
    rewards: tuple[float, ...]
    lengths: tuple[int, ...] = (3, 2, 4, 3)
    turns: int = 1
    turn_rewards: bool = False
    cut: bool = False
    twins: bool = False


WORLDS = (
    DesignedWorld("spread", (0.0, 0.2, 0.7, 1.0)),
    # Three times as far apart: divided by the deviation it is not.
    DesignedWorld("shifted", (5.0, 5.6, 7.1, 8.0)),
    DesignedWorld("tie", (0.5, 0.5, 0.5, 0.5)),
    # A constant added to the deviation shows here.
    DesignedWorld("near tie", (2e-6, -2e-6, 2e-6, -2e-6)),
    DesignedWorld("one of four", (1.0, 0.0, 0.0, 0.0)),
    DesignedWorld("negative", (-3.0, -1.4, -2.2, -1.0)),
    DesignedWorld("lengths", (0.9, 0.1, 0.4, 0.8), (1, 2, 4, 5)),
    DesignedWorld("two turns", (0.1, 0.4, 0.6, 0.9), turns=2),
    DesignedWorld("turn credit", (0.3, 0.8, 0.2, 1.0), turns=2, turn_rewards=True),
    DesignedWorld("cut", (0.2, 0.9, 0.6, 0.1), cut=True),
    DesignedWorld("rare", (0.1, 0.1, 0.2, 5.0)),
    DesignedWorld("content", ()),
    DesignedWorld("conversation", (), turns=2),
    DesignedWorld("twins", (0.0, 0.6, 0.3, 1.0), twins=True),
)

FEW = tuple(one for one in WORLDS if one.name in {"spread", "tie", "lengths", "two turns"})
"""Enough for second updates and references."""
TEXT = frozenset(one.name for one in WORLDS if not one.rewards)


def text_reward(token_ids: Sequence[int]) -> float:
    """Return a reward for what was written: the share of even ids, from 0 to 1."""
    return sum(token % 2 == 0 for token in token_ids) / max(1, len(token_ids))


def designed_return(
    world: DesignedWorld, number: int, size: int, token_ids: Sequence[int]
) -> float:
    """Return what a rollout earns.

    Args:
        world: the world.
        number: of the rollout in its group, by order of arrival from 0.
        size: rollouts in the group.
        token_ids: its completion.
    """
    if not world.rewards:
        return text_reward(token_ids)
    at = np.linspace(0, len(world.rewards) - 1, size)[number]
    return float(np.interp(at, range(len(world.rewards)), world.rewards))


def turn_rewards(world: DesignedWorld, number: int, reward: float) -> tuple[float, ...]:
    """Return the reward of each turn: all of it at the last one, unless the world pays by turn."""
    if not world.turn_rewards:
        return (*[0.0] * (world.turns - 1), reward)
    first = 0.2 * (1 + number)
    return (first, reward - first)


def designed_rollouts(
    seed: int, size: int = 4, worlds: Sequence[DesignedWorld] = WORLDS
) -> list[ProbeRollout]:
    """Return one group of each world.

    Args:
        seed: of the tokens.
        size: rollouts in a group, at least 2; rewards of other sizes than four are interpolated.
        worlds: the worlds.
    """
    rng = np.random.default_rng(seed)
    rollouts: list[ProbeRollout] = []
    for world in worlds:
        prompt = _tokens(rng, int(rng.integers(4, 8)))
        group = [_rollout(world, i, size, prompt, rng) for i in range(size)]
        if world.twins:
            group[1] = replace(group[0], reward=group[1].reward)
        rollouts += group
    return rollouts


def _tokens(rng: np.random.Generator, count: int) -> tuple[int, ...]:
    return tuple(rng.integers(END + 1, VOCABULARY, count).tolist())


def _rollout(
    world: DesignedWorld, number: int, size: int, prompt: tuple[int, ...], rng: np.random.Generator
) -> ProbeRollout:
    completion: list[int] = []
    mask: list[int] = []
    for turn in range(world.turns):
        if turn:
            read = _tokens(rng, 3)
            completion, mask = [*completion, *read], [*mask, 0, 0, 0]
        length = world.lengths[(number + turn) % len(world.lengths)]
        cut = world.cut and number % 2 == 1
        said = _tokens(rng, length if cut else length - 1) + (() if cut else (END,))
        completion, mask = [*completion, *said], [*mask, *[1] * len(said)]
    reward = designed_return(world, number, size, completion)
    of_turns = turn_rewards(world, number, reward) if world.turn_rewards else None
    ids, own = tuple(completion), tuple(mask)
    return ProbeRollout(prompt, ids, own, reward, world.name, turn_rewards=of_turns)
