"""Sources: anybody's environments behind one interface; each imports its package when opened."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokengym.agents.certify.source import Source
from tokengym.envs.core.errors import OptionError, UnknownWorldError
from tokengym.envs.registry import import_object, spec
from tokengym.installed import installed_version

_MODULES = "tokengym.agents.certify.sources"
KINDS: Mapping[str, str] = {
    "cookbook": f"{_MODULES}.cookbook:Cookbook",
    "gymnasium": f"{_MODULES}.gymnasium_text:GymnasiumText",
    "openenv": f"{_MODULES}.openenv:OpenEnv",
    "reasoning-gym": f"{_MODULES}.reasoning_gym:ReasoningGym",
    "textarena": f"{_MODULES}.textarena:TextArena",
    "verifiers": f"{_MODULES}.verifiers:Verifiers",
}
"""Sources by what stands before the colon of a target."""
MANY_TURNS = 64
"""Most replies of an episode where the environment names no limit."""
_INTEGER, _LONG = re.compile(r"-?[0-9]+"), 19
_RECORDS = (".jsonl", ".parquet")


def open_source(target: str, options: Mapping[str, Any]) -> Source:
    """Open a source.

    Args:
        target: `KIND:NAME` of `KINDS`, `FILE.py:NAME` of a reward function or a `Source`, a file or
            folder of recorded rollouts, or a world, `forecast` or `energy:day`.
        options: of the source. Options of all are `declared`, lowest and highest return,
            `reply_template`, the form of a reply that gives an answer, and `tolerance`, by how much
            an answer may be wrong, relative to it.

    Raises:
        OptionError: if there is no such target, or its package is not installed.
    """
    taken = dict(options)
    declared, form = taken.pop("declared", None), taken.pop("reply_template", "")
    tolerance = float(taken.pop("tolerance", 0.0))
    graded = target.rpartition(":")[0].endswith(".py") or "prompts" in taken
    source = _open(target, taken | ({"form": form} if form and graded else {}))
    changed = {"form": form or source.facts.form, "tolerance": tolerance}
    source.facts = replace(source.facts, **changed)  # type: ignore[arg-type]
    if declared is not None:
        source.facts = replace(source.facts, declared=(float(declared[0]), float(declared[1])))
    return source


def is_recorded(target: str) -> bool:
    """Return whether a target is a file or folder of recorded rollouts.

    A word that names a world is the world, also where a folder of that name lies, as the package
    that `tokengym new-world` writes: `./urn` is the folder.
    """
    return target.endswith(_RECORDS) or (Path(target).is_dir() and not _names_world(target))


def _names_world(target: str) -> bool:
    try:
        spec(target)
    except UnknownWorldError:
        return False
    return True


def _open(target: str, options: Mapping[str, Any]) -> Source:
    kind, _, name = target.partition(":")
    if is_recorded(target):
        from tokengym.agents.certify.sources.records import RecordedRollouts

        if options:
            raise OptionError(f"recorded rollouts take no options, got {list(options)}")
        return RecordedRollouts(Path(target))
    if target.endswith(".py"):
        raise OptionError(f"{target} is a file: name its function too, as in {target}:reward")
    if target.rpartition(":")[0].endswith(".py") or "prompts" in options:
        from tokengym.agents.certify.sources.python import open_python

        return open_python(target, **options)
    if kind in KINDS:
        try:
            opened: Source = import_object(KINDS[kind])(name, **options)
        except ModuleNotFoundError as error:
            advice = f"pip install 'tokengym[{kind}]'"
            raise OptionError(
                f"{target} needs {error.name}, which is not installed: {advice}"
            ) from error
        return opened
    from tokengym.agents.certify.sources.worlds import TokengymWorld

    try:
        return TokengymWorld.open(target, **options)
    except UnknownWorldError as error:
        raise OptionError(
            f"a target is KIND:NAME with one of {list(KINDS)}, FILE.py:NAME, recorded rollouts or "
            f"a world; {error}"
        ) from error


def package(name: str) -> str:
    """Return a distribution and its version."""
    return f"{name} {installed_version(name) or ''}".strip()


def message_text(said: Any) -> str:
    """Return the text of messages, of the parts of one, or of what is text already."""
    if isinstance(said, Mapping):
        said = said.get("text", said.get("content"))
    if isinstance(said, list):
        return "\n".join(filter(None, map(message_text, said)))
    return "" if said is None else str(said)


def last_integer(text: str) -> int | None:
    """Return the last integer of a reply that names a choice; `None` if there is none."""
    found = _INTEGER.findall(text)[-1:]
    return int(found[0]) if found and len(found[0]) < _LONG else None
