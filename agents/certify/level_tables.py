"""Certificates as tables of a page: a row per level, or for each world its first and hardest."""

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
_BEST = ("best blind", "best simple", "best found by search", "reachable (how)", "optimum")
HEADROOM_HEADER = ("world", "level", "Tasks", "returns", *_BEST, "headroom")
_SCALED = ("random replies", "best simple policy", "best known policy")
WORLDS_HEADER = ("world", "level", *_SCALED, "left to learn")
"""On one scale: the best blind policy is at 0, what can be reached at 1."""


def table(header: Sequence[str], certificates: Sequence[Found]) -> str:
    """Return a table with a row of each certificate; the text around it explains the columns."""
    rows = [[CELLS[column](found) for column in header] for found in certificates]
    return markdown_table(header, rows)


def _by_world(certificates: Sequence[Found]) -> str:
    """Return a row for the first level of each world and for one whose headroom is surely large."""
    rows = []
    for world in dict.fromkeys(found["world"] for found in certificates):
        levels = [found for found in certificates if found["world"] == world]
        hardest = max(levels, key=lambda found: found["headroom"]["low"])
        rows += [levels[0], hardest] if hardest is not levels[0] else [hardest]
    return table(WORLDS_HEADER, rows)


BLOCKS: Mapping[str, Callable[[Sequence[Found]], str]] = {
    "tokengym check, by level": partial(table, LEVELS_HEADER),
    "tokengym check, by world": _by_world,
    "tokengym check, headroom": partial(table, HEADROOM_HEADER),
}
"""Blocks of pages that are made of certificates, by name."""


def _searched(found: Found) -> str:
    """Show what a search found, and how far it is above the best honest rule."""
    if found["search"] is None:
        return "not searched"
    hunt = found["search"]
    lead = Estimate(**hunt["lead"])
    lost = ", which loses its name" if hunt["loses_name"] else ""
    return f"{_mean(hunt['scored'])} ({lead.value:+.3f} {lead.around} to `{hunt['rule']}`{lost})"


def _reachable(found: Found) -> str:
    best = found["reached_by"]
    return "not declared" if best is None else f"{_mean(found['reachable'])} {_by(found)}"


def _by(found: Found) -> str:
    best = found["reached_by"]
    proved = "proved" if best["proved"] else "best known"
    return f"`{best['policy']}` ({best['method']}, {proved})"


def _scaled(found: Found, policy: str) -> str:
    """Show what a policy earns where the best blind one is at 0 and what can be reached at 1."""
    blind, top = found["blind"]["value"], found["reachable"]["value"]
    return f"{(found['returns'][policy]['value'] - blind) / (top - blind):.2f}"


def _headroom(found: Found) -> str:
    warm_up = " (warm-up)" * (found["level"] in spec(found["world"]).warm_up)
    return "" if found["headroom"] is None else _interval(found["headroom"]) + warm_up


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
    "best simple": lambda found: f"{_mean(found['returns'][found['simple']])} `{found['simple']}`",
    "best found by search": _searched,
    "reachable (how)": _reachable,
    "optimum": lambda found: _mean(found["optimum"]) + " (bound)" * (not found["exact"]),
    "headroom": _headroom,
    "random replies": lambda found: _scaled(found, "random"),
    "best simple policy": lambda found: f"{_scaled(found, found['simple'])} `{found['simple']}`",
    "best known policy": lambda found: f"1 {_by(found)}",
    "left to learn": _headroom,
    "tied pairs": lambda found: _mean(found["ties"]["reward_tie_pair_rate"]),
    _DEAD: lambda found: " / ".join(
        _mean(found["ties"][f"zero_advantage_probability_{size}"]) for size in SIZES
    ),
    "malformed": lambda found: "" if found["malformed"] is None else f"{found['malformed']:.0%}",
    "bytes": lambda found: f"{found['episode_bytes']['value']:,.0f}",
}
"""How each column shows a certificate."""
