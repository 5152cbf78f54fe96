"""The ladders of the warehouse's levels; a level adds its rungs in a line here."""

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
_BATCH = (
    _FIRST_COME,
    Rung("seed", "textbook", "seed batching", "Gibson & Sharp 1992"),
    Rung("savings", "textbook", "savings", "Clarke & Wright 1964"),
    Rung("replan", "planner", "local search", "Henn et al. 2010"),
    Rung("oracle", "planner", "column generation", "Gademann & van de Velde 2005"),
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
_BUYING = (
    Rung("fcfs", "thumb", "usual demand"),
    Rung("newsvendor", "textbook", "capped base stock", "Xin 2021"),
    Rung("textbook", "textbook", "proportional order-up-to", "Dejonckheere et al. 2003"),
    Rung("replan", "planner", "adaptive base stock"),
    _FORESIGHT,
)
_LEASE = (
    Rung("fcfs", "thumb", "lowest price"),
    Rung("newsvendor", "textbook", "myopic price"),
    Rung("textbook", "textbook", "fluid bid price", "Talluri & van Ryzin 2004"),
    Rung("replan", "optimum", "dynamic program", "Gallego & van Ryzin 1994"),
)
_SHOP = (
    Rung("fcfs", "thumb", "first come, lean base stock"),
    Rung("newsvendor", "textbook", "earliest due date, newsvendor", "Jackson 1955"),
    Rung("textbook", "textbook", "value per time, Silver-Meal", "Smith 1956"),
    _REPLAN,
    _FORESIGHT,
)


def _dollars(*rungs: Rung) -> Ladder:
    return Ladder(rungs, "null", "$", {"objective": 1.0})


LADDERS: Mapping[str, Ladder] = MappingProxyType(
    {
        "pick": _dollars(*_PICK, _SEARCH),
        "pick_clauses": _dollars(*_CLAUSES, _SEARCH),
        "pick_online": _dollars(*_PICK, _REPLAN, _FORESIGHT),
        "batch": Ladder(_BATCH, "null", "units walked", {"walked": -1.0}),
        "stock": _dollars(*_STOCK),
        "stock_large": _dollars(*_JOINT),
        "inventory_4": _dollars(*_BUYING),
        "inventory_lost": _dollars(*_BUYING),
        "lease": _dollars(*_LEASE),
        "full": _dollars(*_SHOP),
        "full_volatile": _dollars(*_SHOP),
    }
)
