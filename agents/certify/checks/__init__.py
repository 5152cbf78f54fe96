"""The checks; importing this package registers them."""

from tokengym.agents.certify.checks import fair, gamed, leaked, sound, table, teaches
from tokengym.agents.certify.finding import CHECKS, GROUPS, Check


def in_order() -> list[Check]:
    """Return all checks, group by group."""
    return sorted(CHECKS.values(), key=lambda check: GROUPS.index(check.group))


__all__ = ["CHECKS", "fair", "gamed", "in_order", "leaked", "sound", "table", "teaches"]
