"""Checks and ladders as tables: of a terminal, and of pages, where a row is a level or a rung."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tokengym.agents.check.level_check import LevelCheck
from tokengym.agents.reports.markdown import markdown_table
from tokengym.agents.reports.report import Table
from tokengym.agents.scale.ladder import LevelLadder
from tokengym.envs.core.spec import short_name
from tokengym.rewards.skill import describe_skill

_SHOWN = ("null", "random", "oracle")
LEVELS_HEADER = ("world", "level", "declared", *_SHOWN)
RUNGS_HEADER = ("kind", "rung", "source", "lines", "ms per Task", "gain", "solved", "gap / SD")
LADDERS_HEADER = ("world", "level", "rungs, each with its share of the top rung's gain")
_LADDER = "tokengym check --ladder"


def check_table(found: LevelCheck) -> Table:
    """Lay out what the policies of a level earn, the best last, and its laws."""
    title = f"{found.world} {found.level}"
    if (scale := found.scale) is None:
        return Table(("broken law", "observed"), [*found.broken.items()], title)
    returns, skills = found.returns, found.skills
    rows = [
        (scale.label if name == scale.blind else name, str(mean), describe_skill(skills[name]))
        for name, mean in sorted(returns.items(), key=lambda item: item[1].value)
    ]
    limit = "optimum" if scale.exact else "bound of the optimum"
    note = f"{scale.unit} returns; skill: 0 is {scale.label}, 1 the oracle. Every law is kept."
    if (best := found.reached_by) is not None and best.policy in returns:
        proved = "proved optimal" if best.proved else "not proved"
        note += f" Best known that reads only the Turns: {best.policy} ({best.method}, {proved})."
    return Table(
        ("policy", "return", "skill"),
        [*rows, (limit, f"{scale.optimum:.3f}", "")],
        f"{title}, {len(scale.limits_T)} test Tasks",
        note,
    )


def ladder_table(title: str, ladder: LevelLadder) -> Table:
    """Lay out the rungs of a level."""
    merged = "; ".join(f"{name} with {other}" for name, other in ladder.merged.items())
    note = (
        f"gain: over {ladder.zero}, as a share of the top rung's {amount(ladder)} "
        "per Task; solved: Tasks on which a rung gains as much as the top one; gap / SD: the "
        "next rung's lead over its standard deviation. Not told apart, and merged: "
        f"{merged or 'none'}"
    )
    # Names and sources share a column, or 80 columns would cut them off.
    rows = [(kind, f"{n} ({s})" if s else n, *more) for kind, n, s, *more in rung_rows(ladder)]
    header = (RUNGS_HEADER[0], "rung (source)", *RUNGS_HEADER[3:])
    return Table(header, rows, f"{title}, {ladder.tasks} validation Tasks", note)


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


def amount(ladder: LevelLadder) -> str:
    """Return a ladder's gain to three digits with its unit; a score has none."""
    gain = f"{float(f'{ladder.gain:.3g}'):,g}"
    return {"$": f"${gain}", "score": gain}.get(ladder.unit, f"{gain} {ladder.unit}")


def page_blocks(
    checks: Sequence[LevelCheck], ladders: Mapping[str, Mapping[str, LevelLadder]]
) -> dict[str, Callable[[], str]]:
    """Return what makes each block of a page, by the block's name.

    Args:
        checks: of every level, all with a scale; no table of levels without any.
        ladders: by short name of the world and level.
    """
    blocks: dict[str, Callable[[], str]] = {
        f"{_LADDER}, {world}": partial(_ladders_of_world, by_level)
        for world, by_level in ladders.items()
    }
    blocks[f"{_LADDER}, by world"] = partial(_first_ladders, ladders)
    if checks:
        blocks["tokengym check, by level"] = partial(_levels, checks)
    return blocks


def _levels(checks: Sequence[LevelCheck]) -> str:
    rows = [
        [
            short_name(one.world),
            f"`{one.level}`",
            f"{one.declared.low:g} to {one.declared.high:g}",
            *(str(one.returns[name]) for name in _SHOWN),
        ]
        for one in checks
    ]
    return markdown_table(LEVELS_HEADER, rows)


def _ladders_of_world(ladders: Mapping[str, LevelLadder]) -> str:
    """Return a table of the rungs of a world's levels by name of the level, for its page."""
    rows = [[f"`{level}`", *row] for level, one in ladders.items() for row in rung_rows(one)]
    gains = [f"`{level}` {amount(one)}" for level, one in ladders.items()]
    first, tasks = next(iter(ladders.values())), {one.tasks for one in ladders.values()}
    return (
        f"{markdown_table(('level', *RUNGS_HEADER), rows)}\n\n"
        f"Gain of the top rung over `{first.zero}` per Task, a mean over "
        f"{' or '.join(map(str, sorted(tasks)))} validation Tasks: {', '.join(gains)}."
    )


def _first_ladders(ladders: Mapping[str, Mapping[str, LevelLadder]]) -> str:
    """Return a row for the ladder of each world's first level."""
    rows = []
    for world, by_level in ladders.items():
        level, ladder = next(iter(by_level.items()))
        rungs = [f"{rung.name} {rung.share.value:z.2f}" for rung in ladder.rungs]
        rows.append([world, f"`{level}`", "; ".join(rungs)])
    return markdown_table(LADDERS_HEADER, rows)
