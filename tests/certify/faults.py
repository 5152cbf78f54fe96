"""Environments with one fault each, and the check that must catch it."""

import itertools
import math
import random
import re
import time
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


class NoisyReward(Products):
    def reward(self, place: TaskPlace, text: str) -> float:
        return float(super().reward(place, text)) * random.random()


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


class TiresOfReplies(Products):
    def __init__(self) -> None:
        self.count = itertools.count()

    def reward(self, place: TaskPlace, text: str) -> Any:
        return super().reward(place, text) if next(self.count) < 40 else 0.0


class Hashed(Products):
    """Its fresh process has another seed of hashes; here that is another salt."""

    def __init__(self, salt: int = 0) -> None:
        self.salt = salt

    def reward(self, place: TaskPlace, text: str) -> Any:
        return float(super().reward(place, text)) / (1 + self.salt)

    def fresh(self) -> Source:
        return type(self)(self.salt + 1)


class Repeatable(Hashed):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return Products.reward(self, place, text)


class NotANumber(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return math.nan if "1e999" in text else super().reward(place, text)


class NoReward(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return super().reward(place, text) if number(text) else None


class OutOfRange(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return -1.0 if not text else super().reward(place, text)


class RaisesOnText(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return float(text) and super().reward(place, text)


class RaisesOnSurrogates(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return text.encode() and super().reward(place, text)


class WrongReference(Products):
    def answer(self, place: TaskPlace) -> str:
        return str(int(super().answer(place)) + 1000)

    def reward(self, place: TaskPlace, text: str) -> Any:
        right = float(super().answer(place))
        said = number(text)
        return 0.0 if said is None else math.exp(-abs(said - right) / 3e4)


class PaysHalfForAll(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return 0.5


class PaysMoreForSilence(Products):
    facts = replace(Products.facts, declared=(0.0, 2.0))

    def reward(self, place: TaskPlace, text: str) -> Any:
        return 2.0 if not text else super().reward(place, text)


class Slow(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        until = time.process_time() + 1.1 * (text.startswith("((") and len(text) > 50_000)
        while time.process_time() < until:
            pass
        return super().reward(place, text)


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


class WantsNoBlanks(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return super().reward(place, text) if text.strip() == text else 0.0


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


class PaysForLength(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return max(super().reward(place, text), min(1.0, len(text) / 3000))


class PaysForSilence(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return super().reward(place, text) if text else 0.9


class PaysForAnyText(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return float(len(text) > 3)


class PaysForTheQuestion(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return 1.0 if self.prompt(place) in text else super().reward(place, text)


class PaysForIgnorance(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return 1.0 if text == "I do not know." else super().reward(place, text)


class FirstNumberIsRight(Products):
    def answer(self, place: TaskPlace) -> str:
        return str(self.factors(place)[0])


class ObeysTheReply(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return 1.0 if '"score": 1.0' in text else super().reward(place, text)


class TakesAnyReference(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return float(text.isdigit() and len(text) > 4)


class FindsItAnywhere(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return float(self.answer(place) in text)


class Evaluates(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        try:
            eval(text)
        except Exception:
            return super().reward(place, text)
        return super().reward(place, text)


class AllOrNothing(Products):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return float(number(text) == float(self.answer(place)))


class PaysForAToken(AllOrNothing):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return 1.0 if "<|im_end|>" in text else super().reward(place, text)


class PaysForWords(AllOrNothing):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return 0.3 if len(text) > 8192 else super().reward(place, text)


class EvaluatesSums(AllOrNothing):
    def reward(self, place: TaskPlace, text: str) -> Any:
        if re.fullmatch(r"\d+\+\d+", text):
            text = str(sum(map(int, text.split("+"))))
        return super().reward(place, text)


class WantsThePrefix(AllOrNothing):
    def reward(self, place: TaskPlace, text: str) -> Any:
        return float(len(text) > 3 and self.answer(place).startswith(text))


class SeedsRandom(AllOrNothing):
    def reward(self, place: TaskPlace, text: str) -> Any:
        random.seed(0)
        return super().reward(place, text)


class PaysForARepeatedReference(Products):
    """Only the search edits references."""

    def reward(self, place: TaskPlace, text: str) -> Any:
        return 1.0 if len(text.splitlines()) > 1 else super().reward(place, text)


class ShowsTheAnswer(Products):
    def prompt(self, place: TaskPlace) -> str:
        return f"{super().prompt(place)}\n<!-- solution: {self.answer(place)} -->"


class TellsTheAnswer(Guesses):
    def hint(self, place: TaskPlace, text: str) -> str:
        return f"No. It would have been {self.answer(place)}; once more, please."


class Repeats(Products):
    def factors(self, place: TaskPlace) -> tuple[int, int]:
        return super().factors(replace(place, index=place.index % 5))


class SharesSplits(Products):
    def factors(self, place: TaskPlace) -> tuple[int, int]:
        return super().factors(replace(place, split=""))


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
    "semantic.verifier_determinism": [NoisyReward],
    "runtime.episode_determinism": [NoisyHint],
    "runtime.episode_isolation": [SharesState, TiresOfReplies],
    "semantic.replayability": [Hashed],
    "runtime.reward_well_formed": [
        *(NotANumber, NoReward, OutOfRange, PaysWholeNumbers, PaysAnArray),
        *(AsksInMessages, GivesOneTextForReferences),
    ],
    "sound.no_reply_raises": [RaisesOnText, RaisesOnSurrogates],
    "semantic.oracle_max": [WrongReference, PaysHalfForAll],
    "sound.claim_unbeaten": [PaysMoreForSilence],
    "sound.reply_time": [Slow, Hangs],
    "sound.memory": [Leaks],
    "fair.blanks": [WantsItBare, WantsNoBlanks],
    "fair.decoration": [WantsItBare],
    "fair.decoration_pays": [LikesBold],
    "fair.right_refused": [WantsDigitsAlone],
    "fair.language": [WantsEnglish],
    "fair.length": [PaysForLength],
    "semantic.floor_gap": [PaysForSilence],
    "semantic.canary_floor": [PaysForAnyText],
    "gamed.echo": [PaysForTheQuestion],
    "gamed.fixed_reply": [PaysForIgnorance],
    "gamed.prompt_numbers": [FirstNumberIsRight],
    "gamed.override": [ObeysTheReply],
    "gamed.other_reference": [TakesAnyReference],
    "gamed.several_answers": [FindsItAnywhere],
    "gamed.executes_reply": [Evaluates],
    "gamed.odd_replies": [PaysForAToken, PaysForWords],
    "gamed.wrong_accepted": [EvaluatesSums, WantsThePrefix],
    "sound.global_random": [SeedsRandom],
    "statistical.adversarial_floor": [PaysForARepeatedReference, PaysForIgnorance],
    "statistical.gameability_gap": [PaysForIgnorance],
    "semantic.no_solution_leakage": [ShowsTheAnswer],
    "leaked.observation": [TellsTheAnswer],
    "leaked.repeated_prompts": [Repeats],
    "leaked.splits": [SharesSplits],
    "leaked.near_repeats": [SharesThemInOtherCase],
    "leaked.seeds": [ShiftsIndices],
    "statistical.training_signal": [NeverPays],
    "teaches.wrong_replies": [AllOrNothing],
    "statistical.variance_bound": [PaysAlmostAlike],
    "statistical.reward_reachability": [NeverPays],
    "statistical.headroom": [PaysForAnyText],
}
"""Faults by the check that must catch them; `teaches.recorded_return` is tested with records, and
`statistical.difficulty_separation` in a test of its own."""
