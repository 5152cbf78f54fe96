"""Looking worlds up by name: their declaration, the world itself, its policies."""

import difflib
import importlib
import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

from tokengym.envs.core.errors import OptionError, UnknownWorldError
from tokengym.envs.core.rollout import Policy
from tokengym.envs.core.spec import WorldSpec, WorldTable
from tokengym.envs.core.world import World
from tokengym.envs.registration import BY_ID, BY_SHORT_NAME, FAILURES, load_entry_points


def specs() -> Mapping[str, WorldSpec]:
    """Return the declarations of all worlds by id: our own, then those of other packages."""
    load_entry_points()
    return WorldTable(BY_ID)


def spec(world_id: str | WorldSpec) -> WorldSpec:
    """Return the declaration of one world.

    Args:
        world_id: an id such as `tokengym/Forecast-v0`, or a short name such as `forecast`, which
            is the newest version registered; or the declaration itself.

    Raises:
        UnknownWorldError: if there is none, with the nearest id.
    """
    if isinstance(world_id, WorldSpec):
        return world_id
    row = BY_ID.get(world_id) or BY_SHORT_NAME.get(world_id)
    if row is None:
        load_entry_points()
        row = BY_ID.get(world_id) or BY_SHORT_NAME.get(world_id)
    if row is not None:
        return row
    near = difflib.get_close_matches(world_id, [*BY_ID, *BY_SHORT_NAME], n=1, cutoff=0.4)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    message = f"no world is called {world_id!r}{hint}; there are {sorted(BY_ID)}"
    raise UnknownWorldError("; ".join([message, *FAILURES]))


def make_world(world_id: str | WorldSpec, level: str | None = None, **options: Any) -> World:
    """Make a world, ready for `.task(split, index)` and `.start(task)`.

    Args:
        world_id: an id, its short name, or the world's declaration.
        level: one of the spec's levels; the first one if `None`.
        **options: what this world takes; its class documents them.

    Raises:
        UnknownWorldError: if there is no such world.
        OptionError: if the level, an option or its value is not the world's.
    """
    row = spec(world_id)
    world_class = load(row.entry_point)
    known = [
        name
        for name, parameter in inspect.signature(world_class).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise OptionError(f"{row.id} takes the options {known}, got {unknown}")
    world = world_class(row, level, **options)
    if not isinstance(world, World):
        raise TypeError(f"{row.entry_point} is no World")
    return world


def baselines(world_id: str | WorldSpec) -> Mapping[str, Policy]:
    """Return a world's scripted policies by name: at least `null`, `random` and `oracle`."""
    policies: Mapping[str, Policy] = load(spec(world_id).baselines)
    return policies


def policy(world_id: str, who: Policy | str) -> Policy:
    """Return a scripted policy given as an object or by the name of one of the world's baselines.

    Raises:
        OptionError: if the world has no baseline of that name.
    """
    if not isinstance(who, str):
        return who
    known = baselines(world_id)
    if who not in known:
        raise OptionError(f"{world_id} has the baselines {sorted(known)}, got {who!r}")
    return known[who]


def scripted_opponent(world_id: str | WorldSpec, role: str) -> str:
    """Return the baseline that plays `role` by default; see `WorldSpec`."""
    row = spec(world_id)
    known = baselines(row)
    usual = (row.opponents.get(role, ""), "scripted", "random")
    return next((name for name in usual if name in known), "null")


@cache
def load(path: str) -> Any:
    """Return the object that `module:name` points to."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
