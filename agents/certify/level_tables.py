"""Certificates and ladders as tables of a page: a row for every level or rung."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tokengym.agents.reports.markdown import markdown_table
from tokengym.agents.scale.ladder import LevelLadder
from tokengym.envs.registry import spec
from tokengym.rewards.estimates import Estimate

Found = Mapping[str, Any]
"""A certificate as `Certificate.to_dict` gives it."""

SIZES = (4, 8, 16)
_DEAD = f"dead groups of {'/'.join(map(str, SIZES))}"

_FIRST = ("world", "level", "declared", "observed", "null", "random", "oracle")
LEVELS_HEADER = (*_FIRST, "tied pairs", _DEAD, "random bytes refused", "bytes")
LIMITS_HEADER = ("returns", "best blind", "best policy known to us", "optimum")
RUNGS_HEADER = ("kind", "rung", "source", "lines", "ms per Task", "gain", "solved", "gap / SD")
LADDERS_HEADER = ("world", "level", "rungs, each with its share of the top rung's gain")


def table(header: Sequence[str], certificates: Sequence[Found]) -> str:
    """Return a table with a row of each certificate; the text around it explains the columns."""
    rows = [[CELLS[column](found) for column in header] for found in certificates]
    return markdown_table(header, rows)


def rung_rows(ladder: LevelLadder) -> list[list[str]]:
    """Return a row of `RUNGS_HEADER` for each rung."""
    return [
        [
            rung.kind,
            rung.name,
            rung.source,
            f"{rung.lines}" if rung.lines else "",
            f"{1000.0 * rung.seconds:.3g}" if rung.lines else "",
            f"{rung.share.value:z.3f}",
            f"{rung.solved:.0%}",
            "" if rung.effect is None else f"{rung.effect:.2f}",
        ]
        for rung in ladder.rungs
    ]


def ladders_of_world(world: str, ladders: Mapping[str, LevelLadder]) -> str:
    """Return a table of the rungs of a world's levels by name of the level, for its page."""
    rows = [[f"`{level}`", *row] for level, one in ladders.items() for row in rung_rows(one)]
    gains = [f"`{level}` {amount(one)}" for level, one in ladders.items()]
    first, tasks = next(iter(ladders.values())), {one.tasks for one in ladders.values()}
    return (
        f"{markdown_table(('level', *RUNGS_HEADER), rows)}\n\n"
        f"Gain of the top rung over `{first.zero}` per Task, a mean over "
        f"{' or '.join(map(str, sorted(tasks)))} validation Tasks: {', '.join(gains)}."
    )


def amount(ladder: LevelLadder) -> str:
    """Return a ladder's gain to three digits with its unit; a score has none."""
    gain = f"{float(f'{ladder.gain:.3g}'):,g}"
    return {"$": f"${gain}", "score": gain}.get(ladder.unit, f"{gain} {ladder.unit}")


def first_ladders(ladders: Mapping[str, Mapping[str, LevelLadder]]) -> str:
    """Return a row for the ladder of each world's first level, by name of world and level."""
    rows = []
    for world, by_level in ladders.items():
        level, ladder = next(iter(by_level.items()))
        rungs = [f"{rung.name} {rung.share.value:z.2f}" for rung in ladder.rungs]
        rows.append([world, f"`{level}`", "; ".join(rungs)])
    return markdown_table(LADDERS_HEADER, rows)


BLOCKS: Mapping[str, Callable[[Sequence[Found]], str]] = {
    "tokengym check, by level": partial(table, LEVELS_HEADER),
}
"""Blocks of pages that are made of certificates, by name."""


def _best_known(found: Found) -> str:
    """Show the policy that the level declares, how it was found, and what it earns."""
    if (best := found["reached_by"]) is None:
        return "not declared"
    proved = "proved optimal" if best["proved"] else "not proved"
    return f"{_mean(found['reachable'])} `{best['policy']}` ({best['method']}, {proved})"


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
    "best policy known to us": _best_known,
    "optimum": lambda found: _mean(found["optimum"]) + " (bound)" * (not found["exact"]),
    "tied pairs": lambda found: _mean(found["ties"]["reward_tie_pair_rate"]),
    _DEAD: lambda found: " / ".join(
        _mean(found["ties"][f"zero_advantage_probability_{size}"]) for size in SIZES
    ),
    "random bytes refused": lambda found: (
        "" if found["malformed"] is None else f"{found['malformed']:.0%}"
    ),
    "bytes": lambda found: f"{found['episode_bytes']['value']:,.0f}",
}
"""How each column shows a certificate."""
