"""Games of TextArena for one player, by id."""

from typing import Any

import textarena

from tokengym.agents.certify.source import Facts, Source, SourceEpisode, SourceStep, TaskPlace
from tokengym.agents.certify.sources import MANY_TURNS, package
from tokengym.agents.certify.sources.python import load


class TextArena(Source):
    """A game; a Task is the seed of its reset. It pays when it ends, as `close` says, -1 to 1.

    Args:
        name: id, such as `Bandit-v0`.
        reference: `FILE.py:NAME` of a function from the game, reset, to right replies.
        best: the return that is claimed for them; `None` without a claim.
        **options: of the game.
    """

    def __init__(
        self, name: str, reference: str = "", best: float | None = None, **options: Any
    ) -> None:
        self._name, self._options, self._best = name, options, best
        self._solve = load(reference) if reference else None
        self.facts = Facts(package=package("textarena"), declared=(-1.0, 1.0), turns=MANY_TURNS)
        self.start(TaskPlace("", 0, 0))

    def start(self, place: TaskPlace) -> SourceEpisode:
        """Reset a new game."""
        game = textarena.make(self._name, **self._options)
        game.reset(num_players=1, seed=place.index)
        _, prompt = game.get_observation()

        def reply(text: str) -> SourceStep:
            done, _ = game.step(text)
            if done:
                rewards, _ = game.close()
                return SourceStep(rewards[0], True)
            return SourceStep(0.0, False, str(game.get_observation()[1]))

        told = tuple(self._solve(game) if self._solve else ())
        return SourceEpisode(str(prompt), reply, told, self._best)
