"""Scripted policies of picking. All but the oracle use only what the Turns have shown."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from tokengym.envs.warehouse.games.picking import greedy, heuristics
from tokengym.envs.warehouse.games.picking.clauses import Clause
from tokengym.envs.warehouse.games.picking.oracle import best_command
from tokengym.envs.warehouse.games.picking.orders import needs
from tokengym.envs.warehouse.games.picking.rules import PickingState
from tokengym.envs.warehouse.games.picking.session import PickSession
from tokengym.envs.warehouse.grammar import EndShift, Trip, Wait, write_pick

Pick = Callable[[PickingState, np.random.Generator], str]
"""From the state of picking and randomness to a reply."""

_MOST_TOGETHER = 3
_LONGEST_WAIT = 9
_DUE_NOISE = 15.0
_ROUTE_NOISE = 0.5
_WAIT_NOISE = 0.5
_LONGEST_PAUSE = 3
_BATCHES = (1, 2, 3)


def replan(picking: PickingState) -> str:
    """Return the first reply of the best plan for the orders that are shown."""
    command = best_command(picking, list(picking.known().values()))
    nothing = EndShift() if picking.site.announced else heuristics.until_release(picking)
    return write_pick(command or nothing)


def _oracle(session: PickSession, _rng: np.random.Generator) -> str:
    """Follow the plan; where the session has left it, make a new one."""
    plan = session.compiled.problem.plan
    if session.on_plan:
        return write_pick(plan[session.turns] or EndShift())
    orders = list(session.picking.open.values())
    return write_pick(best_command(session.picking, orders, session.replies_left) or EndShift())


def _at_random(picking: PickingState, rng: np.random.Generator) -> str:
    orders = heuristics.available(picking)
    if not orders:
        return write_pick(Wait(int(rng.integers(1, _LONGEST_WAIT + 1))))
    most = min(len(orders), _MOST_TOGETHER, picking.site.capacity)
    count = int(rng.integers(1, most + 1))
    batch = [orders[i] for i in rng.permutation(len(orders))[:count]]
    stops = list(needs(batch))
    route = tuple(stops[i] for i in rng.permutation(len(stops)))
    return write_pick(Trip(tuple(order.id for order in batch), route))


def _misreading(picking: PickingState, rng: np.random.Generator) -> str:
    """Misread due dates, cut batches short, mix routes, and pause before.

    The pauses are the noise that shows in a small book: three orders can be shipped in few ways,
    and without pauses one pair of rollouts in twelve did the very same at the very same time.
    """
    orders = heuristics.available(picking)
    if not orders:
        return write_pick(heuristics.until_release(picking))
    if rng.random() < _WAIT_NOISE:
        return write_pick(Wait(int(rng.integers(1, _LONGEST_PAUSE + 1))))
    due = {order.id: order.due + _DUE_NOISE * float(rng.normal()) for order in orders}
    batch = heuristics.fill(picking, sorted(orders, key=lambda order: due[order.id]))
    trip = heuristics.exact_trip(picking, batch[: int(rng.integers(1, len(batch) + 1))])
    if rng.random() < _ROUTE_NOISE:
        trip = trip._replace(stops=tuple(rng.permutation(trip.stops).tolist()))
    return write_pick(trip)


def _worked(picking: PickingState, _rng: np.random.Generator) -> str:
    """Add up the units by due date, then name the orders that fit, as a small model can.

    A trip without slots walks the S-shape of `edd_sshape`.
    """
    ranked = heuristics.earliest_due(picking)
    if not ranked:
        return write_pick(heuristics.until_release(picking))
    batch = heuristics.fill(picking, ranked)
    steps, units = [], 0
    for order in ranked:
        if units == picking.site.capacity:
            break
        fits = order in batch
        steps.append(f"{order.id} due {order.due}: {units + order.units}{'' if fits else ' no'}")
        units += order.units * fits
    trip = Trip(tuple(order.id for order in batch), ())
    return f"{', '.join(steps)}\n{write_pick(trip)}"


def reading(picking: PickingState, clauses: Sequence[Clause]) -> PickingState:
    """Return a state as it looks to a lead who reads only some of its clauses."""
    twin = copy(picking)
    twin.site = replace(picking.site, clauses=tuple(clauses))
    return twin


def _unread(pick: Pick) -> Pick:
    return lambda picking, rng: pick(reading(picking, ()), rng)


def _rule(rule: heuristics.Rule) -> Pick:
    return lambda picking, _rng: write_pick(rule(picking))


def _value_per_time(picking: PickingState, _rng: np.random.Generator) -> str:
    return write_pick(greedy.value_per_time(picking))


_PICKS: Mapping[str, Pick] = MappingProxyType(
    {
        "null": lambda _picking, _rng: write_pick(EndShift()),
        "random": _at_random,
        "fcfs": _rule(heuristics.singles),
        "edd_sshape": _rule(heuristics.earliest_due_s_shape),
        "worked": _worked,
        "edd_exact": _rule(heuristics.earliest_due_exact),
        "newsvendor": _rule(heuristics.earliest_due_exact),
        "textbook": _value_per_time,
        "unread": _unread(_value_per_time),
        "unread_replan": _unread(lambda picking, _rng: replan(picking)),
        "restarts": lambda picking, rng: write_pick(greedy.randomized(picking, rng)),
        "replan": lambda picking, _rng: replan(picking),
        "noisy": _misreading,
    }
)


def _picking(pick: Pick) -> Callable[[PickSession, np.random.Generator], str]:
    return lambda session, rng: pick(session.picking, rng)


POLICIES: Mapping[str, Callable[[PickSession, np.random.Generator], str]] = MappingProxyType(
    {**{name: _picking(pick) for name, pick in _PICKS.items()}, "oracle": _oracle}
)


def _next_orders(batch: int) -> Callable[[int], str]:
    return lambda turns: f"TRIP {','.join(f'O{batch * turns + k + 1}' for k in range(batch))}"


def blind(_level: object) -> dict[str, Callable[[int], str]]:
    """Return policies that ship the next orders by number."""
    return {f"trips of {batch}": _next_orders(batch) for batch in _BATCHES}
