"""Three held-out Tasks of a run, with the replies before and after training and the oracle's."""

from collections.abc import Sequence

from tokengym.agents.analysis.report import Cell, Table
from tokengym.agents.analysis.role_report import RoleReport
from tokengym.agents.rollouts import RolloutRecord
from tokengym.envs.core.display import shorten

_LONGEST_QUESTION, _LONGEST_REPLY = 400, 200


def example_table(
    side: RoleReport, before: Sequence[RolloutRecord], after: Sequence[RolloutRecord]
) -> Table | None:
    """Lay out the Tasks with the largest gain, a typical change and the largest loss.

    Args:
        side: the trained role.
        before: its rollouts before training.
        after: its rollouts after training.

    Returns:
        the table; `None` where no Task is on record on both sides.
    """
    first, last = ({record.origin.group: record for record in of} for of in (before, after))
    changes = {group: last[group].earned - first[group].earned for group in first if group in last}
    if not changes:
        return None
    order = sorted(changes, key=lambda group: (-changes[group], group))
    chosen = dict.fromkeys(order[place] for place in (0, len(order) // 2, -1))
    rows: list[list[str | tuple[str, str]]] = [
        [
            (f"Task {first[group].index}: {changes[group]:+.3f}", _question(first[group])),
            *map(_reply, (first[group], last[group])),
            _oracle(side, group),
        ]
        for group in chosen
    ]
    return Table(
        ("Task and change", "before", "after", "oracle"),
        rows,
        side.heading("What it replies"),
        "The held-out Tasks with the largest gain, a typical change and the largest loss. Above "
        "each reply is what it earns, on average over outcomes where that is known.",
    )


def _oracle(side: RoleReport, group: int) -> Cell:
    replies = side.references.oracle_replies
    earned = side.references.yardstick.oracle_T[group]
    return f"{earned:.3f}", replies[group] if replies else ""


def _question(record: RolloutRecord) -> str:
    """Return the end of what the role read first: rules come before the question."""
    read = next((turn.read for turn in record.turns if turn.role == record.role), "")
    return read if len(read) <= _LONGEST_QUESTION else f"…{read[-_LONGEST_QUESTION:]}"


def _reply(record: RolloutRecord) -> Cell:
    said = " / ".join(turn.said or "" for turn in record.own_turns)
    return f"{record.earned:.3f}", shorten(said, _LONGEST_REPLY)
