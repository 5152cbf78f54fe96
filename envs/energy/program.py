"""A linear or mixed-integer program, built row by row and solved by HiGHS through scipy."""

import math

import numpy as np
import numpy.typing as npt

Term = tuple[int, float]
"""A variable and its coefficient."""
_SCALE = 1e4
"""What costs are multiplied by where there are whole variables: HiGHS stops 1e-6 from the least."""
_TIE = 1e-8
"""Most that a unit of a variable costs in addition there, so that no two plans cost the same."""
_GOLDEN = (5.0**0.5 - 1.0) / 2.0


class Program:
    """Variables, rows and the solve. Minimises cost."""

    def __init__(self) -> None:
        self._cost: list[float] = []
        self._low: list[float] = []
        self._high: list[float] = []
        self._whole: list[int] = []
        self._row_low: list[float] = []
        self._row_high: list[float] = []
        self._entries: list[tuple[int, int, float]] = []

    def variable(
        self, cost: float = 0.0, low: float = 0.0, high: float = math.inf, whole: bool = False
    ) -> int:
        """Add a variable and return its number."""
        self._cost.append(cost)
        self._low.append(low)
        self._high.append(high)
        self._whole.append(int(whole))
        return len(self._cost) - 1

    def row(self, low: float, high: float, *terms: Term) -> None:
        """Add `low <= sum of coefficient times variable <= high`."""
        number = len(self._row_low)
        self._row_low.append(low)
        self._row_high.append(high)
        self._entries.extend((number, variable, coefficient) for variable, coefficient in terms)

    def solve(self) -> tuple[npt.NDArray[np.float64], float] | None:
        """Return the variables and the least cost, or `None` if nothing is feasible.

        Whole variables are rounded and fixed and the rest solved again, so that the answer is a
        vertex of a linear program, exact to rounding. Of answers that cost the same it is one that
        does not depend on the version of the solver: each variable has a tiny cost of its own.
        """
        low, high, cost = np.array(self._low), np.array(self._high), np.array(self._cost)
        whole = np.array(self._whole, dtype=bool)
        if not whole.any():
            found = self._solve(cost, low, high)
        else:
            number = np.arange(1.0, len(cost) + 1.0)
            tied = _SCALE * (cost + _TIE * (number * _GOLDEN % 1.0))
            found = self._solve(tied, low, high, whole)
            if found is not None:
                low[whole] = high[whole] = np.round(found[whole])
                found = self._solve(tied, low, high)
        return None if found is None else (found, math.fsum(found * cost))

    def _solve(
        self,
        cost: npt.NDArray[np.float64],
        low: npt.NDArray[np.float64],
        high: npt.NDArray[np.float64],
        whole: npt.NDArray[np.bool_] | None = None,
    ) -> npt.NDArray[np.float64] | None:
        from scipy.optimize import Bounds, milp
        from scipy.sparse import csc_array

        rows, columns, values = zip(*self._entries, strict=True)
        matrix = csc_array((values, (rows, columns)), shape=(len(self._row_low), len(low)))
        result = milp(
            cost,
            integrality=None if whole is None else whole.astype(np.int64),
            bounds=Bounds(low, high),
            constraints=[(matrix, self._row_low, self._row_high)],
            options={"mip_rel_gap": 0.0},
        )
        return None if result.x is None else np.asarray(result.x)
