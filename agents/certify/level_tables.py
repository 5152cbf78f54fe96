"""Certificates as tables of a page: a row for every level, or for the first of each world."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tokengym.agents.analysis.markdown import markdown_table
from tokengym.envs.registry import spec
from tokengym.rewards.estimates import Estimate

Found = Mapping[str, Any]
"""A certificate as `Certificate.to_dict` gives it."""

SIZES = (4, 8, 16)
_DEAD = f"dead groups of {'/'.join(map(str, SIZES))}"

_FIRST = ("world", "level", "declared", "observed", "null", "random", "oracle")
LEVELS_HEADER = (*_FIRST, "tied pairs", _DEAD, "malformed", "bytes")
_KNOWN = ("our best simple policy", "best policy known to us", "optimum")
POLICIES_HEADER = ("world", "level", "Tasks", "returns", "best blind", *_KNOWN)
WORLDS_HEADER = ("world", "level", "random replies", *_KNOWN)


def table(header: Sequence[str], certificates: Sequence[Found]) -> str:
    """Return a table with a row of each certificate; the text around it explains the columns."""
    rows = [[CELLS[column](found) for column in header] for found in certificates]
    return markdown_table(header, rows)


def _by_world(certificates: Sequence[Found]) -> str:
    """Return a row for the first level of each world."""
    first = {found["world"]: found for found in reversed(certificates)}
    return table(WORLDS_HEADER, list(first.values())[::-1])


BLOCKS: Mapping[str, Callable[[Sequence[Found]], str]] = {
    "tokengym check, by level": partial(table, LEVELS_HEADER),
    "tokengym check, by world": _by_world,
    "tokengym check, policies": partial(table, POLICIES_HEADER),
}
"""Blocks of pages that are made of certificates, by name."""


def _best_known(found: Found) -> str:
    """Show the policy that the level declares, how it was found, and what it earns."""
    if (best := found["reached_by"]) is None:
        return "not declared"
    proved = "proved optimal" if best["proved"] else "not proved"
    return f"{_mean(found['reachable'])} `{best['policy']}` ({best['method']}, {proved})"


def _earned(found: Found, policy: str) -> str:
    return _mean(found["returns"][policy])


def _interval(value: Mapping[str, float]) -> str:
    return str(Estimate(**value))  # type: ignore[arg-type]


def _mean(value: Mapping[str, float]) -> str:
    return f"{value['value']:.3f}"


CELLS: Mapping[str, Callable[[Found], str]] = {
    "world": lambda found: spec(found["world"]).short_name,
    "level": lambda found: f"`{found['level']}`",
    "Tasks": lambda found: str(found["tasks"]),
    "returns": lambda found: found["unit"],
    "declared": lambda found: "{:g} to {:g}".format(*found["declared"]),
    "observed": lambda found: "{:.2f} to {:.2f}".format(*found["observed"]),
    "null": lambda found: _interval(found["returns"]["null"]),
    "random": lambda found: _interval(found["returns"]["random"]),
    "oracle": lambda found: _interval(found["returns"]["oracle"]),
    "best blind": lambda found: _mean(found["blind"]),
    "our best simple policy": lambda found: (
        f"{_earned(found, found['simple'])} `{found['simple']}`"
    ),
    "best policy known to us": _best_known,
    "optimum": lambda found: _mean(found["optimum"]) + " (bound)" * (not found["exact"]),
    "random replies": lambda found: _earned(found, "random"),
    "tied pairs": lambda found: _mean(found["ties"]["reward_tie_pair_rate"]),
    _DEAD: lambda found: " / ".join(
        _mean(found["ties"][f"zero_advantage_probability_{size}"]) for size in SIZES
    ),
    "malformed": lambda found: "" if found["malformed"] is None else f"{found['malformed']:.0%}",
    "bytes": lambda found: f"{found['episode_bytes']['value']:,.0f}",
}
"""How each column shows a certificate."""
