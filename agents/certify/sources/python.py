"""A Python file of the user's own: a reward function with a file of prompts, or a `Source`."""

import importlib.util
import inspect
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokengym.agents.certify.source import Episode, Facts, Place, Source, Step
from tokengym.agents.certify.sources import rows_of
from tokengym.envs.core.errors import DataError, OptionError


def load(target: str) -> Any:
    """Return what a file calls a name, given as `FILE.py:NAME`.

    Raises:
        OptionError: if there is no such file or name.
    """
    path, _, name = target.rpartition(":")
    file = Path(path)
    spec = importlib.util.spec_from_file_location(f"certified_{file.stem}", file)
    if not file.is_file() or spec is None or spec.loader is None:
        raise OptionError(f"{path} is no file of Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look themselves up
    spec.loader.exec_module(module)
    if not callable(found := getattr(module, name, None)):
        raise OptionError(f"{file} has no function or Source called {name!r}")
    return found


def open_python(target: str, **options: Any) -> Source:
    """Open what a file calls a name: a reward function, or a class that is a `Source`.

    Raises:
        OptionError: if there is none.
    """
    made = load(target)
    if isinstance(made, type) and issubclass(made, Source):
        return made(**options)
    if "prompts" not in options:
        raise OptionError(f"the reward function {target} needs a file of prompts: --prompts FILE")
    return RewardFunction(made, Path(options.pop("prompts")), **options)


class RewardFunction(Source):
    """A function from prompt and reply to a reward; one reply ends an episode.

    Args:
        reward: takes the prompt and the reply, and as a third argument, if it has one, the row.
        prompts: JSON lines with `prompt` and, if they are known, `reference`, a right reply, and
            `split`.
        best: what a reference is said to earn; if `None`, nothing is said.

    Raises:
        DataError: if a row has no prompt that is text, or there are no rows.
    """

    def __init__(
        self, reward: Callable[..., Any], prompts: Path, best: float | None = None
    ) -> None:
        self._reward, self._best = reward, best
        self._with_row = len(inspect.signature(reward).parameters) > 2
        self._rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for where, row in rows_of(prompts):
            if not isinstance(row.get("prompt"), str):
                raise DataError(f"{where}: expected an object with a prompt that is text")
            self._rows[str(row.get("split", ""))].append(row)
        if not self._rows:
            raise DataError(f"{prompts} has no prompts")
        self.facts = Facts(
            package=getattr(reward, "__qualname__", repr(reward)),
            splits=tuple(self._rows) if len(self._rows) > 1 else (),
            size=min(map(len, self._rows.values())),
        )

    def start(self, place: Place) -> Episode:
        """Read a row."""
        split = place.split or next(iter(self._rows))
        row = self._rows[split][place.index]

        def reply(text: str) -> Step:
            extra = (row,) if self._with_row else ()
            return Step(self._reward(row["prompt"], text, *extra), True)

        reference = row.get("reference")
        known = () if reference is None else (str(reference),)
        return Episode(row["prompt"], reply, known, self._best if known else None)
