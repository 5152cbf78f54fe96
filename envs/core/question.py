"""A world of one question: a subclass draws the question, and says what an answer earns."""

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tokengym.envs.core.form import ReplyForm
from tokengym.envs.core.grammar import IS, Grammar, complaint, last_match
from tokengym.envs.core.optimum import Optimum
from tokengym.envs.core.play import Policy
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World

_CONSTANTS = 32


class Asked(NamedTuple):
    """A question and its best answer."""

    text: str
    best: Any


class QuestionWorld(World[Asked]):
    """A world whose episodes are one question and one reply.

    A subclass writes `question` and `reward`, and says how an answer reads. The last line of a
    reply that begins with `word` is the answer; a reply without one earns 0.

    Attributes:
        word: what the line with the answer begins with; not `Answer`, which is taken for decoration
            around another word.
        value: pattern of an answer, without groups.
        form: an answer described, such as `<number from 0 to 1>`, which the prompt shows; no answer
            itself, which a policy would copy.
        example: an answer, for tests.
    """

    word: ClassVar[str]
    value: ClassVar[str]
    form: ClassVar[str]
    example: ClassVar[str]
    grammar: ClassVar[Grammar]

    def __init_subclass__(cls) -> None:
        """Derive the form of a reply from how an answer reads."""
        cls.expected_form = f"{cls.word}: {cls.example}"
        cls.grammar = Grammar(cls.word, rf"{cls.word}{IS}({cls.value})")

    @property
    def reply_form(self) -> ReplyForm:
        """A line with the answer, described."""
        return ReplyForm(f"{self.word}: {self.form}", single_line=True)

    @abstractmethod
    def question(self, rng: np.random.Generator) -> tuple[str, Any]:
        """Draw a question.

        Args:
            rng: the only source of chance: equal ones give equal questions.

        Returns:
            what is asked, and the best answer, plain JSON that reads as `value` says.
        """

    @abstractmethod
    def reward(self, answer: str, best: Any) -> float:
        """Return what an answer earns, in the range that the declaration states.

        Grade it: if most answers earn the same, groups of rollouts teach nothing.

        Args:
            answer: as the reply states it, of the pattern `value`.
            best: what `question` returned as the best answer, which must earn the most.
        """

    def write(self, answer: Any) -> str:
        """Return a reply that states an answer."""
        return f"{self.word}: {answer}"

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        """Return of the best answer."""
        best = self.compile(task).best
        return {self.spec.roles[0]: Optimum(self.reward(str(best), best), exact=True)}

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        seed = int(rng.integers(2**63))
        return {"question": self.question(generator("question", seed))[0], "seed": seed}

    def _split_key(self, instance: Mapping[str, Any]) -> object:
        return instance["question"]

    def _solve(self, instance: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        return {"best": self.question(generator("question", instance["seed"]))[1]}

    @classmethod
    def _compile(cls, task: Task) -> Asked:
        return Asked(str(task.instance["question"]), task.answer["best"])

    def _begin(self, task: Task) -> Turn:
        form = f"End with one line in this form:\n{self.reply_form.words}"
        return Turn(self.spec.roles[0], f"{form}\n\n{self.compiled.text}")

    def _respond(self, text: str, complete: bool) -> Turn:
        match = last_match(self.grammar, text, complete=complete)
        form = self.reply_form.words
        wrong = "" if match else complaint(text, form, self.grammar, complete=complete)
        earned = self.reward(match[1], self.compiled.best) if match else 0.0
        role, reason = self.spec.roles[0], StopReason.COMPLETED if match else StopReason.MALFORMED
        metrics = {"well_formed": float(match is not None)}
        return self._end(role, wrong, {role: {"reward": earned}}, reason, metrics)


def null(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Reply nothing."""
    return ""


def random(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Give the best answer to another question."""
    asked = QuestionWorld.cast(world)
    return asked.write(asked.question(rng)[1])


def oracle(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Give the best answer."""
    asked = QuestionWorld.cast(world)
    return asked.write(asked.compiled.best)


BASELINES: Mapping[str, Policy] = {"null": null, "random": random, "oracle": oracle}


def blind(world: World) -> Mapping[str, Policy]:
    """Return policies that give one answer to every question, by name."""
    asked, rng = QuestionWorld.cast(world), generator("blind", world.spec.id, world.level)
    answers = dict.fromkeys(asked.question(rng)[1] for _ in range(_CONSTANTS))
    return {f"always {answer}": partial(_always, asked.write(answer)) for answer in answers}


def _always(reply: str, world: World, turn: Turn, rng: np.random.Generator) -> str:
    return reply
