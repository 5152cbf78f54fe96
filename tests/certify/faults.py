"""Environments with one fault each, and the check that must catch it."""

import math
import random
from dataclasses import replace
from typing import Any

import numpy as np

from tests.certify.synthetic import Guesses, Products, Seeded, number
from tokengym.agents.certify.source import (
    Source,
    SourceEpisode,
    SourceFailure,
    SourceStep,
    TaskPlace,
)


class DrawsAnew(Products):
    def prompt(self, place: TaskPlace) -> str:
        return f"{super().prompt(place)} ({random.random()})"


class IgnoresTheSeed(Seeded):
    def factors(self, place: TaskPlace) -> tuple[int, int]:
        return super().factors(replace(place, seed=0))


class NoisyHint(Guesses):
    def hint(self, place: TaskPlace, text: str) -> str:
        return f"Once more, please: {random.random()}"


class SharesState(Guesses):
    current: TaskPlace

    def start(self, place: TaskPlace) -> SourceEpisode:
        self.current = place
        return super().start(place)

    def reward(self, place: TaskPlace, text: str) -> Any:
        return super().reward(self.current, text)


class SharesOneQuestion(Products):
    """Whoever begins an episode changes that of all others: it shows where two are under way."""

    asked: list[TaskPlace] = []

    def start(self, place: TaskPlace) -> SourceEpisode:
        self.asked[:] = [place]
        return replace(
            super().start(place),
            reply=lambda text: SourceStep(self.reward(self.asked[0], text), True),
        )


class Hashed(Products):
    """Its fresh process has another seed of hashes; here that is another salt."""

    def __init__(self, salt: int = 0) -> None:
        self.salt = salt

    def reward(self, place: TaskPlace, text: str) -> Any:
        return float(super().reward(place, text)) / (1 + self.salt)

    def fresh(self, **how: Any) -> Source:
        return type(self)(self.salt + 1)


class Repeatable(Hashed):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return Products.reward(self, place, text)


class NoReward(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return super().reward(place, text) if number(text) else None


class OutOfRange(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return -1.0 if not text else super().reward(place, text)


class RaisesInOpenThought(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        before, opened, inside = text.partition("<think>")
        thought = inside[: inside.index("</think>")] if opened else ""
        return super().reward(place, before + inside.replace(thought, "", 1))


class WrongReference(Products):
    def answer(self, place: TaskPlace) -> str:
        return str(int(super().answer(place)) + 1000)

    def reward(self, place: TaskPlace, text: str) -> Any:
        right = float(super().answer(place))
        said = number(text)
        return 0.0 if said is None else math.exp(-abs(said - right) / 3e4)


class PaysMoreForSilence(Products):
    facts = replace(Products.facts, declared=(0.0, 2.0))

    def reward(self, place: TaskPlace, text: str) -> Any:
        return 2.0 if not text else super().reward(place, text)


class Hangs(Products):
    def start(self, place: TaskPlace) -> SourceEpisode:
        def hang(text: str) -> SourceStep:
            raise SourceFailure("no answer in 10 s")

        return replace(super().start(place), reply=hang)


class Leaks(Products):
    """Counts what it keeps as its memory."""

    kept = 0

    def reward(self, place: TaskPlace, text: str) -> Any:
        self.kept += 500 * len(text)
        return super().reward(place, text)

    def memory(self) -> int:
        return self.kept


class Tidy(Leaks):
    def memory(self) -> int:
        return 10**9


class WantsItBare(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return float(text == self.answer(place))


class LikesBold(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return 1.0 if "**" in text else super().reward(place, text)


class WantsDigitsAlone(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return super().reward(place, text) if text.isdigit() else 0.0


class WantsEnglish(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return super().reward(place, text) if "answer is" in text else 0.8 * self.bare(place, text)

    def bare(self, place: TaskPlace, text: str) -> float:
        return float(super().reward(place, text))


class PaysForSilence(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return super().reward(place, text) if text else 0.9


class PaysForAnyText(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return float(len(text) > 3)


class PaysForTheQuestion(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return 1.0 if self.prompt(place) in text else super().reward(place, text)


class FirstNumberIsRight(Products):
    def answer(self, place: TaskPlace) -> str:
        return str(self.factors(place)[0])


class TakesAnyReference(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return float(text.isdigit() and len(text) > 4)


class FindsItAnywhere(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return float(self.answer(place) in text)


class AllOrNothing(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return float(number(text) == float(self.answer(place)))


class PaysNearAnswers(Products):
    """Pays nothing to any answer that is far off, as those of other Tasks."""

    def reward(self, place: TaskPlace, text: str) -> Any:
        off = abs((number(text) or 0.0) / float(self.answer(place)) - 1.0)
        return 1.0 if off == 0.0 else 0.5 * (off < 1e-3)


class PaysForARepeatedReference(Products):
    """Only the search edits references."""

    def reward(self, place: TaskPlace, text: str) -> Any:
        return 1.0 if len(text.splitlines()) > 1 else super().reward(place, text)


class ShowsTheAnswer(Products):
    def prompt(self, place: TaskPlace) -> str:
        return f"{super().prompt(place)}\n<!-- solution: {self.answer(place)} -->"


class TellsItAfterAGuess(Guesses):
    """Only a guess that could be right is answered with the answer, and only the second one."""

    facts = replace(Guesses.facts, turns=3)

    def start(self, place: TaskPlace) -> SourceEpisode:
        said: list[str] = []

        def reply(text: str) -> SourceStep:
            said.append(text)
            hint = f"It is {self.answer(place)}." if len(said) == 2 and text.isdigit() else "No."
            return SourceStep(self.reward(place, text), len(said) == 3, hint)

        return SourceEpisode(self.prompt(place), reply, (self.answer(place),), 1.0)

    def reward(self, place: TaskPlace, text: str) -> Any:
        return float(text.strip() == self.answer(place)) / 3


class TellsWhetherItIsMore(TellsItAfterAGuess):
    def start(self, place: TaskPlace) -> SourceEpisode:
        began = super().start(place)

        def reply(text: str) -> SourceStep:
            more = text.isdigit() and int(text) < int(self.answer(place))
            return began.reply(text)._replace(text="More." if more else "Less.")

        return replace(began, reply=reply)


class NeverEnds(Guesses):
    def start(self, place: TaskPlace) -> SourceEpisode:
        began = super().start(place)
        return replace(began, reply=lambda text: began.reply(text)._replace(done=False))


class EndsOnlyWhenSolved(Guesses):
    def start(self, place: TaskPlace) -> SourceEpisode:
        def reply(text: str) -> SourceStep:
            right = text == self.answer(place)
            return SourceStep(float(right), right, "" if right else "Again.")

        return SourceEpisode(self.prompt(place), reply, (self.answer(place),), 1.0)


class SharesSplits(Products):
    def factors(self, place: TaskPlace) -> tuple[int, int]:
        return super().factors(replace(place, split=""))


class AsksThemInOtherWords(SharesSplits):
    def prompt(self, place: TaskPlace) -> str:
        if place.split == "train":
            return super().prompt(place)
        return "Work out the product of {} and {}, please.".format(*self.factors(place))


class AsksOthersInOtherWords(AsksThemInOtherWords):
    def factors(self, place: TaskPlace) -> tuple[int, int]:
        return Products.factors(self, place)


class SharesThemInOtherCase(SharesSplits):
    def prompt(self, place: TaskPlace) -> str:
        prompt = super().prompt(place)
        return prompt.upper() if place.split == "test" else prompt


class ShiftsIndices(Seeded):
    def factors(self, place: TaskPlace) -> tuple[int, int]:
        return super().factors(TaskPlace("", 0, place.seed + place.index))


class NeverPays(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return 0.0


class PaysAlmostAlike(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return 0.999 + 0.001 * super().reward(place, text)


class PaysWholeNumbers(Products):
    """More than a float holds, for near misses and for hostile replies."""

    def reward(self, place: TaskPlace, text: str) -> Any:
        return 10 ** len(text) if text.strip().isdecimal() else super().reward(place, text)


class PaysAnArray(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return np.ones(2)


class AsksInMessages(Products):
    def prompt(self, place: TaskPlace) -> Any:
        return [{"role": "user", "content": super().prompt(place)}]


class GivesOneTextForReferences(Products):
    def start(self, place: TaskPlace) -> SourceEpisode:
        return replace(super().start(place), reference=self.answer(place))  # type: ignore[arg-type]


class PaysHugeSums(Products):
    facts = replace(Products.facts, declared=None)

    def reward(self, place: TaskPlace, text: str) -> Any:
        return -1.7e308 if number(text) is None else 1.7e308


PLANTED: dict[str, list[type[Products]]] = {
    "runtime.seed_control": [DrawsAnew, IgnoresTheSeed],
    "runtime.episode_determinism": [NoisyHint],
    "runtime.episode_isolation": [SharesState, SharesOneQuestion],
    "semantic.replayability": [Hashed],
    "runtime.reward_well_formed": [
        *(NoReward, OutOfRange, PaysWholeNumbers, PaysAnArray),
        *(AsksInMessages, GivesOneTextForReferences),
    ],
    "sound.no_reply_raises": [RaisesInOpenThought],
    "sound.ends": [NeverEnds, EndsOnlyWhenSolved],
    "semantic.oracle_max": [WrongReference],
    "sound.claim_unbeaten": [PaysMoreForSilence],
    "sound.reply_time": [Hangs],
    "sound.memory": [Leaks],
    "fair.decoration": [WantsItBare],
    "fair.decoration_pays": [LikesBold],
    "fair.right_refused": [WantsDigitsAlone],
    "fair.language": [WantsEnglish],
    "semantic.canary_floor": [PaysForAnyText],
    "gamed.echo": [PaysForTheQuestion],
    "gamed.prompt_numbers": [FirstNumberIsRight],
    "gamed.other_reference": [TakesAnyReference],
    "gamed.several_answers": [FindsItAnywhere],
    "statistical.adversarial_floor": [PaysForARepeatedReference],
    "semantic.no_solution_leakage": [ShowsTheAnswer],
    "leaked.observation": [TellsItAfterAGuess],
    "leaked.splits": [SharesSplits, SharesThemInOtherCase, AsksThemInOtherWords],
    "leaked.seeds": [ShiftsIndices],
    "statistical.training_signal": [NeverPays],
    "teaches.wrong_replies": [PaysNearAnswers],
    "statistical.variance_bound": [PaysAlmostAlike],
    "statistical.reward_reachability": [NeverPays],
    "statistical.headroom": [PaysForAnyText],
}
"""Faults by the check that must catch them, beside those of `kinds.py`, which are planted in three
forms; `statistical.difficulty_separation` and `sound.scored_together` have tests of their own."""
