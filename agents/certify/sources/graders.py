"""Graders as people write them: a function is called by the names of its parameters.

Known are the forms of TRL, verl, verifiers, Inspect and of rubrics, the resources servers of NeMo
Gym, coroutines and objects that are called; and results that are numbers, or lists, tuples,
dictionaries or objects that have one.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from types import SimpleNamespace
from typing import Any

from tokengym.agents.certify.source import in_words, plain_reward
from tokengym.agents.certify.sources import message_text
from tokengym.envs.core.display import shorten
from tokengym.envs.core.errors import OptionError

PROMPTS = ("prompt", "question", "problem", "query", "input", "instruction", "messages")
"""Names of columns and parameters for the prompt, the likeliest first."""
REFERENCES = (
    *("reference", "answer", "ground_truth", "solution", "target", "gold", "expected", "label"),
    *("expected_answer", "gold_answer", "correct_answer", "truth", "reference_outputs"),
)
"""Names of columns and parameters for the right answer."""
REPLIES = (
    *("reply", "completion", "response", "solution_str", "output", "model_output", "prediction"),
    *("pred", "predicted", "generation", "generated_text", "llm_output", "model_answer", "action"),
    "outputs",
)
"""Names of parameters for the reply."""
ROWS = ("row", "example", "item", "doc", "sample", "extra_info", "info", "metadata")
_NAMES = {"<prompt>": PROMPTS, "<reference>": REFERENCES, "<reply>": REPLIES, "<row>": ROWS}
_MEANT = {name: meant for meant, names in _NAMES.items() for name in names}
"""From the name of a parameter to what is passed."""
_LEFT_OUT = ("data_source", "task", "parser", "trainer_state", "completion_id", "turn")
"""Parameters that may be nothing where no column is called so."""
_METHODS = ("forward", "verify", "grade", "score", "compute_score")
"""Method names tried on graders that are not callable."""
_SCORES = ("score", "reward", "value", "total", "accuracy", "acc", "correct", "result")
"""Fields that hold the score in a result that is not a number, the likeliest first."""
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Scores that Inspect's scorers write as letters."""
_FORMS = (
    "(prompt, reply, row), (reply, reference), TRL's (completions, columns of the data), verl's "
    "(data_source, solution_str, ground_truth, extra_info), verifiers' (completion, answer, "
    "state), Inspect's (state, target), a rubric's (action, observation) or a class of NeMo Gym's "
    "resources servers"
)


@dataclass(frozen=True)
class GradedPrompt:
    """A row of a file of prompts.

    Attributes:
        prompt: what is asked, as text.
        asked: the same as the example has it, text or messages.
        reference: the right answer; `None` if the example has none.
        row: all of it.
    """

    prompt: str
    asked: Any
    reference: str | None
    row: Mapping[str, Any]

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> "GradedPrompt | None":
        """Read an example; `None` if it asks nothing in text or messages."""
        sent = row.get("responses_create_params")  # NeMo Gym's
        named = {**row, **sent} if isinstance(sent, Mapping) else row
        asked = next((named[name] for name in PROMPTS if named.get(name)), None)
        prompt = asked
        if isinstance(asked, list) and all(isinstance(one, Mapping) for one in asked):
            prompt = "\n\n".join(map(message_text, asked))
        if not isinstance(prompt, str):
            return None
        holders = (row, *(row.get(name) for name in ("reward_model", "extra_info")))
        told = (
            holder.get(name)
            for holder in holders
            if isinstance(holder, Mapping)
            for name in REFERENCES
        )
        truth = next((truth for truth in told if truth is not None), None)
        truth = truth[0] if isinstance(truth, list) and truth else truth
        return cls(prompt, asked, None if truth is None else str(truth), row)


class _Reply(str):
    """A reply as an action that has it by any usual name."""

    __slots__ = ()
    content = text = message = answer = property(str)


class _State(dict[str, Any]):
    """A row with the reply, as verifiers' state and as Inspect's."""

    @property
    def output(self) -> SimpleNamespace:
        """The reply, as Inspect's model says it."""
        return SimpleNamespace(completion=self["reply"])


class _Target(tuple[str, ...]):
    """The right answers, as Inspect's target has them: a sequence, with their text."""

    __slots__ = ()
    text = property("".join)


@dataclass(frozen=True)
class Grader:
    """A function, with how it is called.

    Attributes:
        run: the function.
        passed: by parameter, a column of the example or what stands in angle brackets for it.
        batched: whether it takes lists and returns one.
        messages: whether a reply is passed as messages, not as text.
    """

    run: Callable[..., Any]
    passed: Mapping[str, str]
    batched: bool
    messages: bool

    def arguments(self, *asked: tuple[GradedPrompt, str]) -> dict[str, Any]:
        """Return what is passed for replies, a single one unless it is batched, by parameter."""
        each = [self._values(*one) for one in asked]
        return {n: [one[n] for one in each] for n in self.passed} if self.batched else each[0]

    def _values(self, question: GradedPrompt, reply: str) -> dict[str, Any]:
        said: Any = _Reply(reply)
        if self.messages:
            said = [{"role": "assistant", "content": reply}]
        prompt = question.asked if self.messages or self.batched else question.prompt
        told = {"answer": question.reference, **question.row, "completion": said, "reply": reply}
        values: Mapping[str, Any] = {
            **question.row,
            "<prompt>": prompt,
            "<reply>": said,
            "<reference>": question.reference,
            "<row>": dict(question.row),
            "<state>": _State(told, prompt=question.asked),
            "<target>": _Target(() if question.reference is None else (question.reference,)),
        }
        return {name: values.get(value) for name, value in self.passed.items()}

    def __call__(self, question: GradedPrompt, reply: str) -> Any:
        """Return what a reply earns."""
        return read_score(self._called((question, reply)))

    def batch(self, asked: Sequence[tuple[GradedPrompt, str]]) -> Any:
        """Return the rewards of one call for several replies; what is no sequence, as it is."""
        result = self._called(*asked)
        if isinstance(result, Mapping):
            result = next((result[name] for name in _SCORES if name in result), result)
        result = result.tolist() if hasattr(result, "tolist") else result
        return [*map(read_score, result)] if isinstance(result, list | tuple) else result

    def _called(self, *asked: tuple[GradedPrompt, str]) -> Any:
        passed, kinds = self.arguments(*asked), inspect.signature(self.run).parameters
        first = [passed.pop(n) for n, p in kinds.items() if p.kind is p.POSITIONAL_ONLY]
        result = self.run(*first, **passed)
        return asyncio.run(_wait(result)) if inspect.isawaitable(result) else result


async def _wait(result: Any) -> Any:
    return await result


def read_score(result: Any) -> Any:
    """Return the number that a result is or has; what has none is returned as it is."""
    if isinstance(result, Mapping):
        numbers = [value for value in result.values() if isinstance(value, int | float)]
        named = [result[name] for name in _SCORES if name in result]
        found = named or (numbers if len(numbers) == 1 else [])
        return read_score(found[0]) if found else result
    if isinstance(result, list | tuple) and result:
        return read_score(result[0])
    if isinstance(result, str):
        return _LETTERS.get(result, result)
    if isinstance(plain_reward(result), float):
        return result
    held = [getattr(result, name) for name in _SCORES if hasattr(result, name)]
    return read_score(held[0]) if held else result


def find_grader(
    made: Any, name: str, questions: Sequence[GradedPrompt], form: Callable[[str], str]
) -> Grader:
    """Return how to call what somebody wrote.

    Args:
        made: a function, a class or an object that grades.
        name: how to name it in messages.
        questions: some examples, on which calls are tried.
        form: makes a reply of an answer.

    Raises:
        OptionError: if no call succeeds on any reply.
    """
    run = _function(made)
    ways = _ways(run, questions[0])
    first, failed = questions[0], ""
    known = [question for question in questions if question.reference is not None]
    right = [(question, form(str(question.reference))) for question in known]
    best: tuple[float, Grader] | None = None
    for grader in ways:
        earned: list[float] = []
        for question, reply in ((first, ""), (first, form("0")), *right):
            if earned and len(ways) == 1:
                break  # it can be called, and a reply that it hangs on is for a check to find
            try:
                value = plain_reward(grader(question, reply))
            except Exception as error:
                failed = failed or f"it raised {in_words(error)}"
                continue
            if isinstance(value, float):
                earned.append(value)
            failed = failed or f"it returned {value}"
        # Of two ways to pass a reply, the one that pays right answers more is meant.
        if earned and (best is None or sum(earned[2:]) > best[0]):
            best = sum(earned[2:]), grader
    if best is None:
        passed = shorten(repr(ways[0].arguments((first, form(first.reference or "0")))), 300)
        raise OptionError(
            f"certify cannot call {name}: {failed}. It passed {passed}; known are {_FORMS}, and a "
            f"result that is a number, or a list, a dictionary or an object that has one"
        )
    return best[1]


def _function(made: Any) -> Callable[..., Any]:
    """Return the function that grades; of a class, a factory or a rubric, what it makes or has."""
    if isinstance(made, type) and hasattr(made, "setup_webserver"):
        from tokengym.agents.certify.sources.nemo_gym import NemoGymReward

        return NemoGymReward(made)
    if isinstance(made, type):
        made = made()
    if hasattr(made, "funcs") and hasattr(made, "weights"):
        return _of_rubric(made)
    run = made if callable(made) else None
    run = run or next((getattr(made, one) for one in _METHODS if hasattr(made, one)), None)
    if run is None:
        raise OptionError(f"{made!r} is no function, and has none of {list(_METHODS)}")
    return _function(run()) if _is_factory(run) else run


def _of_rubric(rubric: Any) -> Callable[..., Any]:
    """Return what a rubric of verifiers' scores: its functions, weighed, told its parser."""

    async def score(completion: Any, answer: Any, state: Any, **row: Any) -> float:
        said = {"completion": completion, "answer": answer, "state": state, "parser": rubric.parser}
        told, total = {**row, "prompt": state["prompt"], **said}, 0.0
        for run, weight in zip(rubric.funcs, rubric.weights, strict=True):
            named = inspect.signature(run).parameters
            spread = any(one.kind is one.VAR_KEYWORD for one in named.values())
            result = run(**(told if spread else {name: told[name] for name in named}))
            total += weight * (await result if inspect.isawaitable(result) else result)
        return total

    return score


def _is_factory(run: Callable[..., Any]) -> bool:
    """Return whether a function takes settings alone, each with a default, and no reply."""
    settings = inspect.signature(run).parameters
    return all(
        one.default is not Parameter.empty and _MEANT.get(name) != "<reply>"
        for name, one in settings.items()
    )


def _ways(run: Callable[..., Any], question: GradedPrompt) -> list[Grader]:
    """Return the ways to call a function, the likeliest first."""
    names = inspect.signature(run).parameters
    # In openevals, `outputs` is one reply.
    batched = any(f"{one}s" in names for one in REPLIES) and "reference_outputs" not in names
    passed = _passed(run, question, batched=batched)
    chat = isinstance(question.asked, list)
    both = {"completion", "completions"} & set(names)
    ways = (chat, not chat) if both else (False,)
    return [Grader(run, passed, batched, messages) for messages in ways]


def _passed(run: Callable[..., Any], question: GradedPrompt, *, batched: bool) -> dict[str, str]:
    """Return what to pass for each parameter, by the names that people use."""
    parameters, columns = inspect.signature(run).parameters, question.row
    spread = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    own = {n: p for n, p in parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    passed = {}
    for name in own:
        one = name.removesuffix("s") if batched and name not in columns else name
        meant = _MEANT.get(one, "")
        known = meant == "<reply>" or (meant == "<prompt>") & isinstance(columns.get(one), list)
        passed[name] = meant if known or one not in columns else one
    if {"state", "target"} <= set(own):
        passed["target"] = "<target>"
    passed |= {name: "<state>" for name in ("state", "observation") if name in own}
    needed = [name for name, p in own.items() if p.default is Parameter.empty]
    if not {"<reply>", "<state>"} & set(passed.values()):
        passed |= _by_place(needed, passed)
    if unknown := [
        name for name in needed if not passed[name] and name.removesuffix("s") not in _LEFT_OUT
    ]:
        text = f"no column of the data is called {unknown[0]!r}. Known are {_FORMS}"
        raise OptionError(f"certify cannot call {run!r}: {text}")
    passed = {name: what for name, what in passed.items() if what or name in needed}
    rest = {n: n for n in columns if n not in (*own, *PROMPTS)} if spread else {}
    return passed | rest


def _by_place(needed: Sequence[str], passed: Mapping[str, str]) -> dict[str, str]:
    """Return what parameters mean whose names do not say which is the reply."""
    if len(needed) == 2 and passed[needed[1]] and _MEANT.get(needed[1]) == "<reference>":
        return {needed[0]: "<reply>"}
    order = ("<prompt>", "<reply>", "<row>") if len(needed) > 1 else ("<reply>",)
    return dict(zip(needed, order, strict=False))
