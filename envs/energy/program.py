"""A linear or mixed-integer program, built row by row and solved by HiGHS through scipy."""

import itertools
import math

import numpy as np

from tokengym.rewards.arrays import Flags, Floats

Term = tuple[int, float]
"""A variable and its coefficient."""
_SCALE = 1e4
"""Factor on costs where there are integer variables: HiGHS stops 1e-6 from the least."""
_TIE = 1e-8
"""Most that a unit of a variable costs in addition there, so that no two plans cost the same."""
_GOLDEN = (5.0**0.5 - 1.0) / 2.0


class Program:
    """Variables, rows and the solve. Minimises cost."""

    def __init__(self) -> None:
        self._variables: list[tuple[float, float, float, bool]] = []
        self._rows: list[tuple[float, float, tuple[Term, ...]]] = []

    def variable(
        self, cost: float = 0.0, low: float = 0.0, high: float = math.inf, whole: bool = False
    ) -> int:
        """Add a variable and return its number."""
        self._variables.append((cost, low, high, whole))
        return len(self._variables) - 1

    def row(self, low: float, high: float, *terms: Term) -> None:
        """Add `low <= sum of coefficient times variable <= high`."""
        self._rows.append((low, high, terms))

    def solve(self) -> tuple[Floats, float] | None:
        """Return the variables and the least cost, or `None` if nothing is feasible.

        Whole variables are rounded and fixed and the rest solved again, so that the answer is a
        vertex of a linear program, exact to rounding. Of answers that cost the same it is one that
        does not depend on the version of the solver: each variable has a tiny cost of its own.
        """
        variables = zip(*self._variables, strict=True)
        cost, low, high, binary = (np.array(column, dtype=np.float64) for column in variables)
        whole = binary > 0.0
        if not whole.any():
            values = self._solve(cost, low, high)
        else:
            number = np.arange(1.0, len(cost) + 1.0)
            tied = _SCALE * (cost + _TIE * (number * _GOLDEN % 1.0))
            values = self._solve(tied, low, high, whole)
            if values is not None:
                low[whole] = high[whole] = np.round(values[whole])
                values = self._solve(tied, low, high)
        return None if values is None else (values, math.fsum(values * cost))

    def _solve(
        self, cost: Floats, low: Floats, high: Floats, whole: Flags | None = None
    ) -> Floats | None:
        from scipy.optimize import Bounds, milp
        from scipy.sparse import csc_array

        row_low, row_high, terms = zip(*self._rows, strict=True)
        columns, values = zip(*itertools.chain.from_iterable(terms), strict=True)
        rows = np.repeat(np.arange(len(terms)), [len(row) for row in terms])
        matrix = csc_array((values, (rows, columns)), shape=(len(terms), len(low)))
        result = milp(
            cost,
            integrality=None if whole is None else whole.astype(np.int64),
            bounds=Bounds(low, high),
            constraints=[(matrix, row_low, row_high)],
            options={"mip_rel_gap": 0.0},
        )
        return None if result.x is None else np.asarray(result.x)
