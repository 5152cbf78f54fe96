"""Rules of looking. All read only what the Turns say, and answer with the exact posterior."""

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache, partial
from itertools import combinations
from types import MappingProxyType

from tokengym.envs.core.tools import Call, call_line
from tokengym.envs.forecasting.desk.archive import LookValues, State
from tokengym.envs.forecasting.desk_world import DeskWorld

_MOST, _SURE = 4, 0.8
"""How many notes `per_price` reads, and how sure `threshold` must be."""


def write_look(note: int) -> str:
    """Return the call that opens a note, which counts from 0 here and from 1 in the call."""
    return call_line(Call("open", {"note": note + 1}))


def write_answer(share: float, decimals: int) -> str:
    """Return the call that states a probability."""
    return call_line(Call("answer", {"probability": round(share, decimals)}))


def best_note(world: DeskWorld) -> int | None:
    """Return the note that is best to open; `None` if it is best to answer."""
    return world.desk.plan.best_look(world.state, world.looks_left)


def _next_of(notes: Collection[int], world: DeskWorld) -> int | None:
    """Return the first of some notes that is unread, while a look is left."""
    unread = [note for note in notes if not world.state[note]] if world.looks_left > 0 else []
    return unread[0] if unread else None


def _read_all(world: DeskWorld) -> int | None:
    return _next_of(range(len(world.state)), world)


def _per_price(world: DeskWorld) -> int | None:
    """Read the notes that are worth most for their price beside all others."""
    return _next_of(_ranked(world.desk.plan)[:_MOST], world)


def _threshold(world: DeskWorld) -> int | None:
    """Read in the same order until one answer is likely enough."""
    if max(world.best_forecast) >= _SURE:
        return None
    return _next_of(_ranked(world.desk.plan), world)


def _report_and_keys(world: DeskWorld) -> int | None:
    """Open a report with all keys to it, the dearest note first, while the best pays for itself."""
    if world.looks_left < 1:
        return None
    state, notes, plan = world.state, world.desk.archive["notes"], world.desk.plan
    best, most = None, _worth(plan, state, ())
    for place, report in enumerate(notes):
        if report["kind"] != "report":
            continue
        bundle = [
            other
            for other, note in enumerate(notes)
            if not state[other]
            and (
                other == place
                or (note["kind"] == "style" and note["wire"] == report["wire"])
                or (note["kind"] == "erratum" and note["report"] == place)
            )
        ]
        value = _worth(plan, state, bundle)
        if bundle and value > most:
            best, most = max(bundle, key=lambda note: plan.prices[note]), value
    return best


def _fixed_set(world: DeskWorld) -> int | None:
    """Read the best set of notes, whatever they show."""
    return _next_of(_best_set(world.desk.plan), world)


def _ahead(steps: int, world: DeskWorld) -> int | None:
    """Open what is best if at most `steps` looks were left, and plan again."""
    return world.desk.plan.best_look(world.state, min(steps, world.looks_left))


@lru_cache(maxsize=256)
def _ranked(plan: LookValues) -> tuple[int, ...]:
    """Return the notes by what each adds to all others, for its price."""
    notes = range(len(plan.prices))
    start = (0,) * len(notes)
    every = _worth(plan, start, notes)

    def rate(note: int) -> float:
        others = [other for other in notes if other != note]
        return (_worth(plan, start, others) - every) / plan.prices[note]

    return tuple(sorted(notes, key=rate))


@lru_cache(maxsize=256)
def _best_set(plan: LookValues) -> tuple[int, ...]:
    notes = range(len(plan.prices))
    start = (0,) * len(notes)
    sets = (chosen for count in range(len(notes) + 1) for chosen in combinations(notes, count))
    return max(sets, key=lambda chosen: _worth(plan, start, chosen))


def _worth(plan: LookValues, state: State, notes: Collection[int]) -> float:
    """Return the value of opening some unread notes, whatever they show, and answering."""
    cells = tuple(slice(1, 3) if note in notes else seen for note, seen in enumerate(state))
    earned = float(plan.answers[cells].sum() / plan.model.chances[state])
    return earned - sum(plan.prices[note] for note in notes)


RULES: Mapping[str, Callable[[DeskWorld], int | None]] = MappingProxyType(
    {
        "read_all": _read_all,
        "per_price": _per_price,
        "threshold": _threshold,
        "report_and_keys": _report_and_keys,
        "fixed_set": _fixed_set,
        "two_steps": partial(_ahead, 2),
        "three_steps": partial(_ahead, 3),
    }
)
