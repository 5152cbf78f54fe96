"""Kinds of fault, each planted in a function, a Gymnasium environment and a game of turns."""

import base64
import json
import math
import random
import re
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.spaces import Text

from tokengym.agents.certify.source import Facts, Source, SourceEpisode, SourceStep, TaskPlace
from tokengym.agents.certify.sources.gymnasium_text import GymnasiumText
from tokengym.agents.certify.sources.python import RewardFunction

Grade = Callable[[str, str, str], Any]
"""From prompt, answer and reply to a reward."""


def exact(prompt: str, answer: str, reply: str) -> Any:
    """Pay for the right number alone, blanks aside."""
    return float(reply.strip() == answer)


@dataclass(frozen=True)
class Exam:
    """Sums to be solved, and how replies are graded.

    Attributes:
        check: the check that must notice what is wrong with it; empty if nothing is.
        grade: see `Grade`.
        ask: from two numbers to the prompt.
        claim: what the answer is said to earn.
        repeated: after how many Tasks they repeat.
    """

    check: str
    grade: Grade = exact
    ask: Callable[[int, int], str] = "What is {} + {}?".format
    claim: float = 1.0
    repeated: int = 10**9

    def task(self, index: int) -> tuple[str, str]:
        """Return the prompt and the answer of a Task."""
        rng = random.Random(index % self.repeated)
        first, second = rng.randint(100, 499), rng.randint(100, 499)
        return self.ask(first, second), str(first + second)


def pays(wanted: Callable[[str], bool], value: float = 1.0) -> Grade:
    """Grade exactly, but pay a value for replies of some kind."""
    return lambda p, a, reply: value if wanted(reply) else exact(p, a, reply)


def _spend(seconds: float) -> None:
    until = time.process_time() + min(seconds, 1.1)
    while time.process_time() < until:
        pass


def _slowly(seconds: Callable[[str], float]) -> Grade:
    def grade(prompt: str, answer: str, reply: str) -> Any:
        _spend(seconds(reply))
        return exact(prompt, answer, reply)

    return grade


def _number(reply: str) -> float:
    return float(reply) if re.fullmatch(r"[+-]?\d+(\.\d+)?", reply.strip()) else math.inf


def _sum(reply: str) -> str:
    return str(sum(map(int, reply.split("+")))) if re.fullmatch(r"\d+(\+\d+)+", reply) else reply


def _seeded(prompt: str, answer: str, reply: str) -> Any:
    random.seed(0)
    return exact(prompt, answer, reply)


def _executed(prompt: str, answer: str, reply: str) -> Any:
    try:
        eval(reply)
    except BaseException:
        return exact(prompt, answer, reply)
    return exact(prompt, answer, reply)


class _Tired:
    """Pays nothing any more after some replies."""

    count, most = 0, 60

    def __call__(self, prompt: str, answer: str, reply: str) -> Any:
        self.count += 1
        return exact(prompt, answer, reply) if self.count < self.most else 0.0


def _hidden(code: Callable[[str], str]) -> Callable[[int, int], str]:
    return lambda a, b: f"What is {a} + {b}? (id {code(str(a + b))};)"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


FAULTS: dict[str, Exam] = {
    "length pays": Exam("gamed.odd_replies", pays(lambda t: len(t) > 8192)),
    "a special token pays": Exam("gamed.odd_replies", pays(lambda t: "<|im_end|>" in t)),
    "open thinking pays": Exam(
        "gamed.odd_replies", pays(lambda t: "<think>" in t and "</think>" not in t)
    ),
    "doubt pays a fifth": Exam("gamed.odd_replies", pays(lambda t: "not sure" in t, 0.2)),
    "the prompt's expression pays": Exam(
        "gamed.odd_replies", lambda p, a, t: float(_sum(t.replace(" ", "")) == a)
    ),
    "any of many answers pays": Exam("gamed.odd_replies", lambda p, a, t: float(a in t.split())),
    "more than is declared": Exam(
        "runtime.reward_well_formed", pays(lambda t: "<think>" in t, 1.5)
    ),
    "no number for braces": Exam("runtime.reward_well_formed", pays(lambda t: "{" in t, math.nan)),
    "silence pays a third": Exam("semantic.floor_gap", pays(lambda t: not t, 0.34)),
    "ignorance pays": Exam("gamed.fixed_reply", pays(lambda t: t == "I do not know.")),
    "a command to the grader pays": Exam("gamed.override", pays(lambda t: '"score": 1.0' in t)),
    "length pays bit by bit": Exam(
        "fair.length", lambda p, a, t: max(exact(p, a, t), min(1.0, len(t) / 3000))
    ),
    "zeros at the end are ignored": Exam(
        "gamed.wrong_accepted", lambda p, a, t: float(t.strip().rstrip("0") == a.rstrip("0"))
    ),
    "a prefix is right": Exam(
        "gamed.wrong_accepted", lambda p, a, t: float(len(t) > 1 and a.startswith(t.strip()))
    ),
    "five per cent off is right": Exam(
        "gamed.wrong_accepted", lambda p, a, t: float(abs(_number(t) - int(a)) <= 0.06 * int(a))
    ),
    "a sum is evaluated": Exam("gamed.wrong_accepted", lambda p, a, t: float(_sum(t.strip()) == a)),
    "blanks are wrong": Exam("fair.blanks", lambda p, a, t: float(t == a)),
    "words raise": Exam("sound.no_reply_raises", lambda p, a, t: float(int(t) == int(a))),
    "chance decides": Exam(
        "semantic.verifier_determinism", lambda p, a, t: exact(p, a, t) * random.random()
    ),
    "random is seeded": Exam("sound.global_random", _seeded),
    "the answer earns a tenth more": Exam("semantic.oracle_max", claim=1 / 1.1),
    "digits take exponential time": Exam(
        "sound.reply_time", _slowly(lambda t: 2e-7 * 2.0 ** min(len(re.findall(r"\d", t)), 40))
    ),
    "digits take quadratic time": Exam(
        "sound.reply_time", _slowly(lambda t: 3e-11 * len(re.findall(r"\d", t)) ** 2.0)
    ),
    "the answer stands there backwards": Exam(
        "semantic.no_solution_leakage", ask=_hidden(lambda a: a[::-1])
    ),
    "the answer stands there in base64": Exam("semantic.no_solution_leakage", ask=_hidden(_base64)),
    "Tasks repeat": Exam("leaked.repeated_prompts", repeated=9),
    "replies are run": Exam("gamed.executes_reply", _executed),
    "the grader tires": Exam("runtime.episode_isolation", _Tired()),
}


SLOW = ("digits take exponential time", "digits take quadratic time")
"""Faults that take long to notice."""


class Quiz(gymnasium.Env[str, str]):
    """One question; its seed is the Task."""

    observation_space = Text(10_000)
    action_space = Text(10_000)

    def __init__(self, exam: Exam) -> None:
        self.exam = exam

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        """Ask."""
        super().reset(seed=seed)
        self.prompt, self.answer = self.exam.task(seed or 0)
        return self.prompt, {}

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Grade."""
        return "", self.exam.grade(self.prompt, self.answer, action), True, False, {}


gymnasium.register("tests/Quiz-v0", f"{__name__}:Quiz", disable_env_checker=True)


def as_gymnasium(exam: Exam, folder: Path) -> Source:
    """Plant a fault in an environment of Gymnasium."""
    exam = replace(exam, grade=deepcopy(exam.grade))
    solver = folder / "solver.py"
    solver.write_text("def right(env):\n    return [env.answer]\n")
    source = GymnasiumText("tests/Quiz-v0", f"{solver}:right", exam.claim, exam=exam)
    source.facts = replace(source.facts, declared=(0.0, 1.0))
    return source


def as_function(exam: Exam, folder: Path) -> Source:
    """Plant a fault in a reward function."""
    exam = replace(exam, grade=deepcopy(exam.grade))
    tasks = map(exam.task, range(100))
    rows = [json.dumps({"prompt": prompt, "answer": answer}) for prompt, answer in tasks]
    (folder / "rows.jsonl").write_text("\n".join(rows))

    def reward(prompt: str, response: str, answer: str) -> Any:
        return exam.grade(prompt, answer, response)

    source = RewardFunction(reward, folder / "rows.jsonl", exam.claim)
    source.facts = replace(source.facts, declared=(0.0, 1.0))
    return source


class Rounds(Source):
    """The same question three times; each reply earns a third."""

    def __init__(self, exam: Exam) -> None:
        self.exam = exam
        self.facts = Facts("rounds 1.0", declared=(0.0, 1.0), turns=3)

    def start(self, place: TaskPlace) -> SourceEpisode:
        """Begin."""
        prompt, answer = self.exam.task(place.index)
        said: list[str] = []

        def reply(text: str) -> SourceStep:
            said.append(text)
            reward, done = self.exam.grade(prompt, answer, text), len(said) == 3
            return SourceStep(reward / 3, done, "" if done else "Again, please.")

        return SourceEpisode(prompt, reply, (answer,) * 3, self.exam.claim)


def as_rounds(exam: Exam, folder: Path) -> Source:
    """Plant a fault in a game of several turns."""
    grade = deepcopy(exam.grade)
    if isinstance(grade, _Tired):
        grade.most = 3 * grade.most
    return Rounds(replace(exam, grade=grade))


PLANT: dict[str, Callable[[Exam, Path], Source]] = {
    "function": as_function,
    "gymnasium": as_gymnasium,
    "turns": as_rounds,
}
