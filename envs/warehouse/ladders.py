"""The ladders of the warehouse's levels; one line for a level."""

from collections.abc import Mapping
from types import MappingProxyType

from tokengym.envs.core.ladder import Ladder, Rung

_FIRST_COME = Rung("fcfs", "thumb", "first come, first served")
_PICK = (
    _FIRST_COME,
    Rung("edd_sshape", "thumb", "earliest due date, S-shape", "Jackson 1955"),
    Rung("edd_exact", "thumb", "earliest due date, shortest tour", "Jackson 1955"),
    Rung("textbook", "textbook", "value per time", "Smith 1956"),
    Rung("restarts", "planner", "greedy with restarts", "Feo & Resende 1995"),
)
_SEARCH = Rung("replan", "optimum", "exact search", "Held & Karp 1962")
_REPLAN = Rung("replan", "planner", "replanned search", "Psaraftis 1980")
_FORESIGHT = Rung("oracle", "bound", "perfect foresight")
_CLAUSES = (
    *_PICK[:3],
    Rung("unread_replan", "planner", "exact search, no clause read", "Held & Karp 1962"),
    Rung("unread", "textbook", "value per time, no clause read", "Smith 1956"),
    Rung("textbook", "textbook", "value per time, clauses read", "Smith 1956"),
    *_PICK[4:],
)
_STOCK = (
    Rung("fcfs", "thumb", "lean base stock"),
    Rung("newsvendor", "textbook", "newsvendor", "Arrow, Harris & Marschak 1951"),
    Rung("textbook", "textbook", "Silver-Meal", "Silver & Meal 1973"),
    Rung("replan", "optimum", "dynamic program", "Karlin & Scarf 1958"),
)
_JOINT = (
    *_STOCK[:2],
    Rung("textbook", "textbook", "Silver-Meal, can-order", "Balintfy 1964"),
    Rung("replan", "optimum", "joint dynamic program", "Karlin & Scarf 1958"),
)
_LEASE = (
    Rung("fcfs", "thumb", "lowest price"),
    Rung("newsvendor", "textbook", "myopic price"),
    Rung("textbook", "textbook", "fluid bid price", "Talluri & van Ryzin 2004"),
    Rung("replan", "optimum", "dynamic program", "Gallego & van Ryzin 1994"),
)


def _dollars(*rungs: Rung) -> Ladder:
    return Ladder(rungs, "null", "$", {"objective": 1.0})


LADDERS: Mapping[str, Ladder] = MappingProxyType(
    {
        **dict.fromkeys(("pick", "aisle"), _dollars(*_PICK, _SEARCH)),
        "pick_clauses": _dollars(*_CLAUSES, _SEARCH),
        "pick_online": _dollars(*_PICK, _REPLAN, _FORESIGHT),
        "stock": _dollars(*_STOCK),
        "stock_large": _dollars(*_JOINT),
        "lease": _dollars(*_LEASE),
    }
)
