"""Demonstrations for the toy model: episodes of sensible and of blind baselines."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tokengym.envs.core.play import Policy, play
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world


@dataclass(frozen=True)
class DemonstrationMix:
    """The baselines that play a world's demonstrations.

    Attributes:
        world: id of the world.
        level: level of the world.
        sensible: the baseline to learn first, on its own: it takes long to learn, and noise would
            make it take longer.
        policies: weight of each baseline afterwards. One is chosen at every turn, so that earlier
            replies do not reveal which one comes next.
        edit: changes a reply before it is shown to the model; `None` for no change.
    """

    world: str
    level: str
    sensible: str
    policies: Mapping[str, float]
    edit: Callable[[str], str] | None = None

    def policy(self, *, sensible: bool) -> Policy:
        """Return the sensible baseline, or the mixture of all."""
        weights = {self.sensible: 1.0} if sensible else self.policies
        policies = [baselines(self.world)[name] for name in weights]
        chances = np.array(list(weights.values())) / sum(weights.values())

        def reply(world: World, turn: Turn, rng: np.random.Generator) -> str:
            text = policies[int(rng.choice(len(policies), p=chances))](world, turn, rng)
            return text if self.edit is None else self.edit(text)

        return reply


def conversations(
    shares: Sequence[tuple[DemonstrationMix, float]], seed: int, *, sensible: bool
) -> Iterator[list[dict[str, str]]]:
    """Yield endless demonstrations as chat messages: `user` is the world, `assistant` the policy.

    Only training Tasks are played. In a world of several roles each episode shows the side of one
    role, drawn at random: a policy that plays against itself has to play all of them.

    Args:
        shares: weight of each mixture, relative to the others.
        seed: seed of the Tasks and the policies.
        sensible: whether only the sensible baselines play.
    """
    rng = generator("demonstrations", seed, sensible)
    worlds = [make_world(mixture.world, mixture.level, prompt="terse") for mixture, _ in shares]
    policies = [mixture.policy(sensible=sensible) for mixture, _ in shares]
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
