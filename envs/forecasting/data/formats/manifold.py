"""Manifold markets: binary ones resolved YES or NO; times are milliseconds since 1970.

`closeTime` is the earlier of the date its creator chose and the moment it was resolved, so it leaks
the answer and is not read. `probability` of a resolved market is its last price, after the answer
was out, so it is not read either. A market resolved to MKT has no outcome, only a soft label.
"""

from tokengym.envs.forecasting.data import fields
from tokengym.envs.forecasting.data.formats.standalone import question
from tokengym.envs.forecasting.data.record import Parsed, Row, RowError
from tokengym.envs.intake.quoting import quoted

_OUTCOMES = {"YES": 1, "NO": 0}


recognises = frozenset({"outcomeType", "createdTime", "question"}).issubset
"""Whether a row is in this format: it has these fields."""


def records(row: Row) -> list[Parsed]:
    """Return the question of a market.

    Raises:
        RowError: if it is not binary, not resolved to yes or no, or a field is unusable.
    """
    if row["outcomeType"] != "BINARY":
        raise RowError(f"'outcomeType' must be 'BINARY', got {quoted(row['outcomeType'])}")
    resolution = row.get("resolution")
    if not isinstance(resolution, str) or resolution not in _OUTCOMES:
        raise RowError(f"'resolution' must be 'YES' or 'NO', got {quoted(resolution)}")
    closed = fields.moment(row, "resolutionTime")
    return [
        question(
            row, _OUTCOMES[resolution], closed, background="textDescription", asked="createdTime"
        )
    ]
