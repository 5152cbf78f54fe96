"""Small environments without a fault, to plant faults in."""

import re
from dataclasses import replace
from typing import Any

import numpy as np

from tokengym.agents.certify.bench import CertifySettings
from tokengym.agents.certify.source import Facts, Source, SourceEpisode, SourceStep, TaskPlace

QUICK = CertifySettings(tasks=12, strategies=20, replies=40, drawn=60)

_NUMBER = re.compile(r"[+-]?\d*\.?\d+(?:e\d+)?")


def number(text: str) -> float | None:
    """Return the last number of a reply."""
    found = _NUMBER.findall(text.replace(",", ""))
    return float(found[-1]) if found else None


class Products(Source):
    """Multiply two numbers; graded by how near the last number of the reply is."""

    facts = Facts("products 1.0", splits=("train", "test"), declared=(0.0, 1.0))

    def factors(self, place: TaskPlace) -> tuple[int, int]:
        """Draw a Task."""
        key = [place.seed, sum(place.split.encode()), place.index]
        first, second = np.random.default_rng(key).integers(100, 1000, 2)
        return int(first), int(second)

    def prompt(self, place: TaskPlace) -> str:
        """Word a Task."""
        return "What is {} times {}?".format(*self.factors(place))

    def answer(self, place: TaskPlace) -> str:
        """Solve a Task."""
        first, second = self.factors(place)
        return str(first * second)

    def claim(self, place: TaskPlace) -> float | None:
        """Say what the answer earns."""
        return 1.0

    def reward(self, place: TaskPlace, text: str) -> Any:
        """Score a reply."""
        said, right = number(text), float(self.answer(place))
        return 0.0 if said is None else float(np.exp(-abs(said - right) / 3e4))

    def start(self, place: TaskPlace) -> SourceEpisode:
        """Begin an episode of one reply."""
        return SourceEpisode(
            self.prompt(place),
            lambda text: SourceStep(self.reward(place, text), True),
            (self.answer(place),),
            self.claim(place),
        )


class Seeded(Products):
    """The same with seeds for splits."""

    facts = Facts("products 1.0", seeded=True, declared=(0.0, 1.0))


class Guesses(Products):
    """Two replies to each Task, each of which earns half; the first is answered by a hint."""

    facts = Facts("guesses 1.0", splits=("train", "test"), declared=(0.0, 1.0), turns=2)

    def hint(self, place: TaskPlace, text: str) -> str:
        """Answer the first reply."""
        return "Once more, please."

    def start(self, place: TaskPlace) -> SourceEpisode:
        """Begin an episode of two replies."""
        said: list[str] = []

        def reply(text: str) -> SourceStep:
            said.append(text)
            last = len(said) == 2
            return SourceStep(
                self.reward(place, text) / 2, last, "" if last else self.hint(place, text)
            )

        answer = self.answer(place)
        return SourceEpisode(self.prompt(place), reply, (answer, answer), self.claim(place))


class CostsNonsense(Products):
    """A reply that is no number costs something, and a wrong number earns a little."""

    facts = replace(Products.facts, declared=(-1.0, 1.0))

    def reward(self, place: TaskPlace, text: str) -> Any:
        """Score a reply."""
        return -1.0 if number(text) is None else 0.2 + 0.8 * float(super().reward(place, text))


class ReadsTags(Products):
    """Scores what its tags enclose, or else the whole reply."""

    facts = replace(Products.facts, form="<answer>{}</answer>")

    def reward(self, place: TaskPlace, text: str) -> Any:
        """Score a reply."""
        before, closed, _ = text.rpartition("</answer>")
        _, opened, inside = before.rpartition("<answer>")
        alone = (inside if closed and opened else text).strip("$ \n")
        return super().reward(place, alone) if re.fullmatch(r"[\d.,e+]+", alone) else 0.0


class ReadsLines(Products):
    """Wants two lines, decorated or not, and reads no box around several lines."""

    def answer(self, place: TaskPlace) -> str:
        """Solve a Task."""
        return "FACTORS {} {}\nPRODUCT {}".format(*self.factors(place), super().answer(place))

    def reward(self, place: TaskPlace, text: str) -> Any:
        """Score a reply."""
        said = [] if "boxed" in text else re.findall(r"\nPRODUCT ([\d.,e+]+)", text, re.IGNORECASE)
        right = float(super().answer(place))
        return float(np.exp(-abs((number(said[-1]) or 0.0) - right) / 3e4)) if said else 0.0
