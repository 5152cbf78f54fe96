"""A Python file of the user's own: a reward function with a file of prompts, or a `Source`."""

import importlib.util
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

from tokengym.agents.certify.source import (
    Facts,
    Source,
    SourceEpisode,
    SourceFailure,
    SourceStep,
    TaskPlace,
)
from tokengym.agents.certify.sources import package
from tokengym.agents.certify.sources.graders import PROMPTS, GradedPrompt, find_grader
from tokengym.envs.core.errors import DataError, OptionError, did_you_mean
from tokengym.envs.intake.rows import rows_of
from tokengym.envs.registry import import_object

_TRIED = 5
"""Rows on which a grader is tried when it is opened."""


def load(target: str) -> Any:
    """Return what a file or a module calls a name, `FILE.py:NAME` or `package.module:NAME`.

    Raises:
        OptionError: if there is no such file or name.
    """
    path, _, name = target.rpartition(":")
    file = Path(path)
    if file.suffix != ".py":
        return import_object(target)
    spec = importlib.util.spec_from_file_location(f"certified_{file.stem}", file)
    if not file.is_file() or spec is None or spec.loader is None:
        raise OptionError(f"{path} is no file of Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look themselves up
    spec.loader.exec_module(module)
    if (found := getattr(module, name, None)) is None:
        near = did_you_mean(name, vars(module))
        raise OptionError(f"{file} has no function or Source called {name!r}{near}")
    return found


def open_python(target: str, form: str = "{}", **options: Any) -> Source:
    """Open what a file or a module calls a name: a grader, or a class that is a `Source`.

    Raises:
        OptionError: if there is none.
    """
    made = load(target)
    if isinstance(made, type) and issubclass(made, Source):
        return made(**options)
    if "prompts" not in options:
        raise OptionError(f"the reward function {target} needs a file of prompts: --prompts FILE")
    return RewardFunction(made, Path(options.pop("prompts")), form=form, name=target, **options)


def _package(target: str) -> str:
    """Return the distribution and version that a module's grader is of; empty if it is of none."""
    module = target.partition(":")[0]
    known = {} if module.endswith(".py") else packages_distributions()
    return "".join(map(package, known.get(module.partition(".")[0], ())[:1]))


def _questions(prompts: Path) -> dict[str, list[GradedPrompt]]:
    """Return the examples of a file, by split."""
    rows: dict[str, list[GradedPrompt]] = defaultdict(list)
    for where, row in rows_of(prompts):
        if (question := GradedPrompt.read(row)) is None:
            rule = f"an object with a prompt that is text or messages, in one of {list(PROMPTS)}"
            raise DataError(f"{where}: expected {rule}")
        rows[str(row.get("split", ""))].append(question)
    if not rows:
        raise DataError(f"{prompts} has no prompts")
    return rows


def _facts(rows: Mapping[str, Sequence[GradedPrompt]], **more: Any) -> Facts:
    """Return what rows say of a source, by split, and more about it."""
    splits = tuple(rows) if len(rows) > 1 else ()
    return Facts(splits=splits, size=min(map(len, rows.values())), **more)


class RewardFunction(Source):
    """A grader of replies, see `graders`; one reply ends an episode.

    Args:
        reward: what grades, called as its parameters are named.
        prompts: examples with a prompt, text or messages, and, if they are known, a right answer,
            such as `reference`, and `split`.
        best: the return that is claimed for a reference; `None` without a claim.
        form: makes a reply of an answer.
        name: of the grader, for messages.

    Raises:
        DataError: if an example has no prompt, or there are no examples.
        OptionError: if the grader cannot be called.
    """

    def __init__(
        self,
        reward: Any,
        prompts: Path,
        best: float | None = None,
        *,
        form: str = "{}",
        name: str = "the grader",
    ) -> None:
        self._best, self._rows = best, _questions(prompts)
        some = next(iter(self._rows.values()))[:_TRIED]
        self._reward: Any = find_grader(reward, name, some, form.format)
        of = _package(name) or getattr(reward, "__qualname__", name)
        self.facts = _facts(self._rows, package=of, form=form, batched=self._reward.batched)

    def batch(self, asked: Sequence[tuple[TaskPlace, str]]) -> Any:
        """Call the grader once."""
        return self._reward.batch([(self._question(place), reply) for place, reply in asked])

    def _question(self, place: TaskPlace) -> GradedPrompt:
        return self._rows[place.split or next(iter(self._rows))][place.index]

    def start(self, place: TaskPlace) -> SourceEpisode:
        """Read an example."""
        question = self._question(place)
        known = () if question.reference is None else (question.reference,)
        claim = self._best if known else None
        graded = lambda text: SourceStep(self._reward(question, text), True)  # noqa: E731
        return SourceEpisode(question.prompt, graded, known, claim)


class Unopened(RewardFunction):
    """A grader that hung while it was opened: it keeps its prompts, and every reply fails.

    Args:
        target: as the user named it.
        prompts: its examples.
        words: how it failed.
    """

    def __init__(self, target: str, prompts: Path, words: str) -> None:
        def fail(*_: Any) -> None:
            raise SourceFailure(words)

        self._best, self._rows, self._reward = None, _questions(prompts), fail
        self.facts = _facts(self._rows, package=target)
