"""Demonstrations to imitate: episodes of baselines, now a sensible one, now a blind one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tokengym.envs.core.rollout import Policy, play
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world


@dataclass(frozen=True)
class Mixture:
    """Which baselines play a world's demonstrations.

    Attributes:
        world: id of the world.
        level: level of the world.
        sensible: the baseline to learn first, alone: what it does takes long to learn, and noise
            beside it would take the longer.
        policies: weight of each baseline afterwards. The choice is made anew at every turn, so
            that what was said before does not tell which one speaks next.
        said: what is told of a reply; the reply itself if `None`.
    """

    world: str
    level: str
    sensible: str
    policies: Mapping[str, float]
    said: Callable[[str], str] | None = None

    def speaker(self, *, sensible: bool) -> Policy:
        """Return the policy that plays, with or without the noise."""
        speak = mixed_policy(self.world, {self.sensible: 1.0} if sensible else self.policies)
        said = self.said
        if said is None:
            return speak
        return lambda world, turn, rng: said(speak(world, turn, rng))


def mixed_policy(world_id: str, weights: Mapping[str, float]) -> Policy:
    """Return a policy that lets one of the baselines speak, chosen anew at every turn."""
    known = baselines(world_id)
    names = list(weights)
    chances = np.array([weights[name] for name in names])
    chances = chances / chances.sum()

    def speak(world: World, turn: Turn, rng: np.random.Generator) -> str:
        return known[names[int(rng.choice(len(names), p=chances))]](world, turn, rng)

    return speak


def conversations(
    shares: Sequence[tuple[Mixture, float]], seed: int, *, sensible: bool
) -> Iterator[list[dict[str, str]]]:
    """Yield endless demonstrations as chat messages, `user` the world and `assistant` the policy.

    Only training Tasks are played. In a world of several roles one role's side is told, drawn anew
    for every episode: a policy that plays against itself has to speak for all of them.

    Args:
        shares: how much of each mixture, relative to the others.
        seed: of the Tasks and the policies.
        sensible: whether the sensible baselines play alone.
    """
    rng = generator("demonstrations", seed, sensible)
    worlds = [make_world(mixture.world, mixture.level) for mixture, _ in shares]
    policies = [mixture.speaker(sensible=sensible) for mixture, _ in shares]
    weights = np.array([share for _, share in shares])
    while True:
        chosen = int(rng.choice(len(worlds), p=weights / weights.sum()))
        world = worlds[chosen]
        task = world.task("train", int(rng.integers(2**31)))
        record = play(world, task, policies[chosen], rng)
        role = world.spec.roles[int(rng.integers(len(world.spec.roles)))]
        messages: list[dict[str, str]] = []
        for turn, reply in zip(record.turns, record.replies, strict=False):
            if turn.role == role:
                messages.append({"role": "user", "content": turn.text})
                messages.append({"role": "assistant", "content": reply})
        yield messages
