"""Packages that certify has no source for: games of gem-llm and environments of SkyRL-Gym.

`benchmarks/certified_sources.py:Gem --option name=game:Mastermind-v0-hard` is a target.
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tokengym.agents.certify.source import MANY_TURNS, Episode, Facts, Place, Source, Step
from tokengym.agents.certify.sources import package
from tokengym.envs.intake.rows import rows_of

SECRETS: Mapping[str, Callable[[Any], str]] = {
    "GuessTheNumber": lambda game: str(game.game_number),
    "Mastermind": lambda game: " ".join(map(str, game.game_code)),
}
"""What ends a game at once, by the game's name."""


class Gem(Source):
    """A game of gem-llm; a Task is the seed of its reset.

    Args:
        name: id, such as `game:Mastermind-v0-hard`.
        best: what naming the secret at once is said to earn; if `None`, nothing is said.
    """

    def __init__(self, name: str, best: float | None = None) -> None:
        import gem  # type: ignore[import-not-found]  # here, not when an episode starts: importing it takes longer than an answer may

        self._made, self._name, self._best = gem.make, name, best
        self._secret = SECRETS.get(name.removeprefix("game:").partition("-")[0])
        self.facts = Facts(package("gem-llm"), turns=MANY_TURNS, form=r"\boxed{{{}}}")

    def start(self, place: Place) -> Episode:
        """Reset a new game."""
        game = self._made(self._name)
        shown, more = game.reset(seed=place.index)

        def reply(text: str) -> Step:
            seen, reward, terminated, truncated, told = game.step(text)
            return Step(reward, terminated or truncated, f"{seen}\n{told.get('suffix', '')}")

        known = (self._secret(game),) if self._secret else ()
        prompt = f"{shown}\n{more.get('suffix', '')}"
        return Episode(prompt, reply, known, self._best if known else None)


class SkyRL(Source):
    """An environment of SkyRL-Gym on rows of a file; a Task is a row.

    Args:
        name: id, such as `gsm8k`.
        prompts: rows with a prompt, which is messages, and an answer.
        best: what the answer is said to earn.
    """

    def __init__(self, name: str, prompts: str, best: float) -> None:
        import skyrl_gym

        logging.disable()
        self._made = skyrl_gym.make
        self._name, self._best = name, best
        self._rows = [row for _, row in rows_of(Path(prompts))]
        turns = MANY_TURNS if name.endswith("multi_turn") else 1
        self.facts = Facts(package("skyrl-gym"), size=len(self._rows), turns=turns)

    def start(self, place: Place) -> Episode:
        """Make an environment of a row."""
        row = self._rows[place.index]
        truth = {"ground_truth": row.get("ground_truth", row["answer"])}
        extras = {"reward_spec": truth, "reward_model": truth, "extra_info": {}}
        extras |= {"max_turns": 5}
        env = self._made(self._name, env_config={}, extras=extras)
        asked, _ = env.init(row["prompt"])

        def reply(text: str) -> Step:
            step = env.step(text)
            shown = "\n".join(one["content"] for one in step["observations"])
            return Step(step["reward"], step["done"], shown)

        prompt = "\n".join(one["content"] for one in asked)
        return Episode(prompt, reply, (row["answer"],), self._best)
