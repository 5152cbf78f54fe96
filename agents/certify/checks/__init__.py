"""The checks; importing this package registers them."""

from collections.abc import Iterable

from tokengym.agents.certify.bench import Bench, CertifySettings
from tokengym.agents.certify.checks import fair, gamed, leaked, sound, table, teaches
from tokengym.agents.certify.finding import CHECKS, GROUPS, Check
from tokengym.agents.certify.source import Source


def in_order() -> list[Check]:
    """Return all checks, group by group."""
    return sorted(CHECKS.values(), key=lambda check: GROUPS.index(check.group))


FEW_TASKS = 6
"""Tasks on which our own worlds are checked: as many to choose on as to score on."""


def broken(source: Source, checks: Iterable[str]) -> dict[str, str]:
    """Return what a few Tasks show that breaks some checks, by their ids."""
    bench = Bench(source, settings=CertifySettings(tasks=FEW_TASKS))
    found = [CHECKS[name].find(bench) for name in checks]
    return {one.check: f"{one.found}; {one.example}" for one in found if one.counts}


__all__ = ["CHECKS", "broken", "fair", "gamed", "in_order", "leaked", "sound", "table", "teaches"]
