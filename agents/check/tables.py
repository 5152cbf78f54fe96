"""Checks and ladders as tables."""

from typing import TYPE_CHECKING

from tokengym.agents.reports.report import Table
from tokengym.agents.scale.ladder import LevelLadder
from tokengym.rewards.skill import describe_skill

if TYPE_CHECKING:  # its laws need the extra `testing`, ladders do not
    from tokengym.agents.check.level_check import LevelCheck

RUNGS_HEADER = ("type", "policy", "source", "ms per Task", "gain", "solved", "breaks", "gap / SD")


def check_table(found: "LevelCheck") -> Table:
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
        note += (
            f" Best baseline that reads only the Turns: {best.policy} ({best.method}, {proved})."
        )
    return Table(
        ("policy", "return", "skill"),
        [*rows, (limit, f"{scale.optimum:.3f}", "")],
        f"{title}, {len(scale.limits_T)} test Tasks",
        note,
    )


def ladder_table(title: str, ladder: LevelLadder) -> Table:
    """Lay out the reference policies of a level."""
    merged = "; ".join(f"{name} with {other}" for name, other in ladder.merged.items())
    note = (
        f"gain: over {ladder.zero}, as a share of the best reference policy's {amount(ladder)} "
        "per Task; solved: Tasks on which a policy gains as much as the best one; breaks: Tasks on "
        "which it breaks a rule; gap / SD: the next policy's lead over its standard deviation. "
        f"Merged, as 400 Tasks cannot distinguish them: {merged or 'none'}"
    )
    # Names and sources share a column, or 80 columns would cut them off.
    rows = [(kind, f"{n} ({s})" if s else n, *more) for kind, n, s, *more in rung_rows(ladder)]
    header = (RUNGS_HEADER[0], "policy (source)", *RUNGS_HEADER[3:])
    # Nor is there room for a column of a world that has no rule to break.
    told = [n for n, name in enumerate(header) if name != "breaks" or any(row[n] for row in rows)]
    shown = [tuple(row[n] for n in told) for row in rows]
    names = tuple(header[n] for n in told)
    return Table(names, shown, f"{title}, {ladder.tasks} validation Tasks", note)


def rung_rows(ladder: LevelLadder) -> list[list[str]]:
    """Return a row of `RUNGS_HEADER` for each reference policy."""
    return [
        [
            rung.kind,
            rung.name,
            rung.source,
            f"{1000.0 * rung.seconds:.3g}" if rung.seconds else "",
            f"{rung.share.value:z.3f}",
            f"{rung.solved:.0%}",
            "" if rung.broken is None else f"{100.0 * rung.broken:.3g}%",
            "" if rung.effect is None else f"{rung.effect:.2f}",
        ]
        for rung in ladder.rungs
    ]


def amount(ladder: LevelLadder) -> str:
    """Return a ladder's gain to three digits with its unit; a score has none."""
    gain = f"{float(f'{ladder.gain:.3g}'):,g}"
    return {"$": f"${gain}", "score": gain}.get(ladder.unit, f"{gain} {ladder.unit}")
