"""A mixed-integer program in names, for planners that share nothing with the worlds they test."""

import math

import numpy as np
from scipy.optimize import Bounds, milp
from scipy.sparse import csr_array


class Program:
    """Least cost over variables by name, subject to rows of named terms."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.cost: list[float] = []
        self.bounds: list[tuple[float, float]] = []
        self.whole: list[int] = []
        self.rows: list[tuple[float, float, dict[str, float]]] = []

    def add(
        self, name: str, cost: float = 0.0, low: float = 0.0, high: float = math.inf, whole: int = 0
    ) -> None:
        """Add a variable; `whole` is 1 for an integer."""
        self.names[name] = len(self.cost)
        self.cost.append(cost)
        self.bounds.append((low, high))
        self.whole.append(whole)

    def row(self, low: float, high: float, **terms: float) -> None:
        """Require low <= the sum of coefficient times variable <= high."""
        self.rows.append((low, high, terms))

    def solve(self) -> dict[str, float]:
        """Return the best values by name."""
        matrix = csr_array(
            (
                [value for _, _, terms in self.rows for value in terms.values()],
                (
                    [number for number, row in enumerate(self.rows) for _ in row[2]],
                    [self.names[name] for _, _, terms in self.rows for name in terms],
                ),
            ),
            shape=(len(self.rows), len(self.cost)),
        )
        low, high = np.array([row[0] for row in self.rows]), np.array([row[1] for row in self.rows])
        found = milp(
            self.cost,
            integrality=np.array(self.whole),
            bounds=Bounds(*np.array(self.bounds).T),
            constraints=[(matrix, low, high)],
        )
        assert found.x is not None, found.message
        return {name: float(found.x[at]) for name, at in self.names.items()}
