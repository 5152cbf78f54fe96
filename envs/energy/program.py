"""A linear or mixed-integer program, built row by row and solved by HiGHS through scipy."""

import math

import numpy as np
import numpy.typing as npt

Term = tuple[int, float]
"""A variable and its coefficient."""


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
        vertex of a linear program, exact to rounding.
        """
        solved = self._solve(np.array(self._low), np.array(self._high), np.array(self._whole))
        whole = np.array(self._whole, dtype=bool)
        if solved is None or not whole.any():
            return solved
        low, high = np.array(self._low), np.array(self._high)
        low[whole] = high[whole] = np.round(solved[0][whole])
        return self._solve(low, high, np.zeros(len(whole), dtype=np.int64))

    def _solve(
        self,
        low: npt.NDArray[np.float64],
        high: npt.NDArray[np.float64],
        whole: npt.NDArray[np.int64],
    ) -> tuple[npt.NDArray[np.float64], float] | None:
        from scipy.optimize import Bounds, milp
        from scipy.sparse import csc_array

        rows, columns, values = zip(*self._entries, strict=True)
        matrix = csc_array((values, (rows, columns)), shape=(len(self._row_low), len(low)))
        result = milp(
            self._cost,
            integrality=whole,
            bounds=Bounds(low, high),
            constraints=[(matrix, self._row_low, self._row_high)],
            options={"mip_rel_gap": 1e-9},
        )
        return None if result.x is None else (np.asarray(result.x), float(result.fun))
