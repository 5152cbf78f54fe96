"""Worlds by name: those of this package, of `register`, and of other installed packages.

A package declares its worlds as entry points of the group `tokengym.worlds`. An entry point names a
`WorldSpec`, an iterable of them, or a function without arguments that returns either:

    [project.entry-points."tokengym.worlds"]
    "acme/Change-v0" = "acme_change:SPEC"

Named by the id of its world it is loaded when a world is looked up that is not known yet; by any
other name already when `tokengym` is imported, since Gymnasium must know the ids by then. Such a
look-up also finds what has been installed since.
"""

import importlib
import inspect
import sys
import warnings
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from threading import RLock
from typing import Any, TypeVar

import gymnasium

from tokengym.envs import disruption, energy, forecasting, warehouse
from tokengym.envs.core.errors import OptionError, UnknownWorldError, did_you_mean
from tokengym.envs.core.play import Policy
from tokengym.envs.core.spec import WORLD_ID, WorldSpec, WorldTable
from tokengym.envs.core.world import World

P = TypeVar("P")

GROUP = "tokengym.worlds"
"""The group of entry points by which a package declares its worlds."""

BY_ID: dict[str, WorldSpec] = {}
"""Every world registered so far."""
BY_SHORT_NAME: dict[str, WorldSpec] = {}
"""The newest version of each, by short name."""
FAILURES: list[str] = []
"""Errors that kept worlds of other packages from being registered."""

_found: set[EntryPoint] = set()
_waiting: list[EntryPoint] = []
_lock = RLock()


def register(spec: WorldSpec) -> None:
    """Register a world by its id and short name, here and in Gymnasium.

    Registering an equal spec again changes nothing. Other processes know the world only if they
    register it too, or if its package declares it as an entry point of the group `tokengym.worlds`.

    Args:
        spec: the world's declaration.

    Raises:
        OptionError: if the spec names no class or baselines, if its id is registered with another
            declaration, or if another world has its short name.
    """
    for field, path in (("entry_point", spec.entry_point), ("baselines", spec.baselines)):
        module, _, name = path.partition(":")
        if not module or not name:
            raise OptionError(f"{spec.id}: {field} reads module:name, got {path!r}")
    with _lock:
        registered = BY_ID.get(spec.id)
        if registered == spec:
            return
        if registered is not None:
            raise OptionError(f"{spec.id} is already registered with another declaration")
        rival = BY_SHORT_NAME.get(spec.short_name)
        if rival is not None and rival.unversioned != spec.unversioned:
            raise OptionError(
                f"{spec.id} has the short name {spec.short_name!r}, which is that of {rival.id}"
            )
        BY_ID[spec.id] = spec
        if rival is None or rival.version < spec.version:
            BY_SHORT_NAME[spec.short_name] = spec
        _register_with_gymnasium(spec.id)


def load_entry_points(*, named_by_id: bool = True) -> None:
    """Register the worlds of entry points, each once; one that fails gives a warning.

    An entry point whose module is being imported at this moment waits for the next call.

    Args:
        named_by_id: load those too that are named by the id of their world; else only Gymnasium
            learns of them.
    """
    with _lock:
        new = [point for point in entry_points(group=GROUP) if point not in _found]
        _found.update(new)
        _waiting.extend(new)
        for point in tuple(_waiting):
            is_id = WORLD_ID.fullmatch(point.name) is not None
            if is_id:
                _register_with_gymnasium(point.name)
            if is_id and not named_by_id:
                continue
            if point in _waiting and not _being_imported(point.module):
                _waiting.remove(point)
                _load(point)


def _load(point: EntryPoint) -> None:
    try:
        declared: Any = point.load()
        if callable(declared):
            declared = declared()
        for spec in (declared,) if isinstance(declared, WorldSpec) else tuple(declared):
            if not isinstance(spec, WorldSpec):
                raise TypeError(f"{point.value} must give a WorldSpec, got {type(spec).__name__}")
            register(spec)
        if WORLD_ID.fullmatch(point.name) and point.name not in BY_ID:
            raise LookupError(f"{point.value} does not declare {point.name}")
    except Exception as error:
        package = point.dist.name if point.dist is not None else point.module
        why = f"{type(error).__name__}: {error}"
        FAILURES.append(f"the package {package} failed to declare {point.name!r} ({why})")
        warnings.warn(FAILURES[-1], RuntimeWarning, stacklevel=2)


def _being_imported(module: str) -> bool:
    """Return whether the import of a module, or of a package around it, has begun and not ended."""
    parts = module.split(".")
    around = (sys.modules.get(".".join(parts[:count])) for count in range(1, len(parts) + 1))
    specs = (getattr(package, "__spec__", None) for package in around)
    return any(getattr(spec, "_initializing", False) for spec in specs)


def _register_with_gymnasium(world_id: str) -> None:
    if world_id not in gymnasium.registry:
        gymnasium.register(
            id=world_id,
            entry_point="tokengym.envs.gymnasium.env:TextEnv",
            vector_entry_point="tokengym.envs.gymnasium.vector_env:TextVectorEnv",
            kwargs={"world": world_id},
        )


def specs() -> Mapping[str, WorldSpec]:
    """Return the declarations of all worlds by id: our own, then those of other packages."""
    load_entry_points()
    return WorldTable(BY_ID)


def spec(world_id: str | WorldSpec) -> WorldSpec:
    """Return the declaration of one world.

    Args:
        world_id: an id such as `tokengym/Forecast-v1`, or a short name such as `forecast`, which
            is the newest version registered; or the declaration itself.

    Raises:
        UnknownWorldError: if there is none, with the nearest id.
    """
    if isinstance(world_id, WorldSpec):
        return world_id
    world_spec = BY_ID.get(world_id) or BY_SHORT_NAME.get(world_id)
    if world_spec is None:
        load_entry_points()
        world_spec = BY_ID.get(world_id) or BY_SHORT_NAME.get(world_id)
    if world_spec is not None:
        return world_spec
    near = did_you_mean(world_id, [*BY_SHORT_NAME, *BY_ID])
    message = f"no world is called {world_id!r}{near}; there are {sorted(BY_ID)}"
    raise UnknownWorldError("; ".join([message, *FAILURES]))


def spec_and_level(name: str | WorldSpec, level: str | None = None) -> tuple[WorldSpec, str]:
    """Read `energy` or `energy:small`; without a level it is the world's first.

    Args:
        name: an id, its short name or the declaration, the first two also with a level.
        level: the level, if the name has none.

    Raises:
        UnknownWorldError: if there is no such world.
        OptionError: if two levels are named. Whether it has such a level is for `World` to say.
    """
    world_id, colon, named = (name, "", "") if isinstance(name, WorldSpec) else name.partition(":")
    found = spec(world_id)
    if colon and level not in (None, named):
        raise OptionError(f"{name!r} names a level already, got level={level!r}")
    return found, named if colon else found.levels[0] if level is None else level


def make_world(world_id: str | WorldSpec, level: str | None = None, **options: Any) -> World:
    """Make a world, ready for `.task(split, index)` and `.start(task)`.

    Args:
        world_id: an id or its short name, also with a level: `energy:small`; or the world's
            declaration.
        level: one of the spec's levels, if the name has none; the first one if `None`.
        **options: what this world takes; its class documents them.

    Raises:
        UnknownWorldError: if there is no such world.
        OptionError: if the level, an option or its value is not the world's.
    """
    world_spec, level = spec_and_level(world_id, level)
    world_class = import_object(world_spec.class_path(level))
    taken = [
        name
        for name, parameter in inspect.signature(world_class).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    refused = sorted(set(options) - set(taken))
    if refused:
        near = did_you_mean(refused[0], taken)
        raise OptionError(f"{world_spec.id} takes the options {taken}, got {refused}{near}")
    world = world_class(world_spec, level, **options)
    if not isinstance(world, World):
        raise TypeError(f"{world_spec.entry_point} is no World")
    world.made_with = options
    return world


def baselines(world_id: str | WorldSpec) -> Mapping[str, Policy]:
    """Return a world's scripted policies by name: at least `null`, `random` and `oracle`."""
    policies: Mapping[str, Policy] = import_object(spec(world_id).baselines)
    return policies


def baselines_at(world: World) -> Mapping[str, Policy]:
    """Return the scripted policies that are for the world's level; see `WorldSpec.only_at`."""
    only_at, level = world.spec.only_at, world.level
    every = baselines(world.spec).items()
    return {name: one for name, one in every if level in only_at.get(name, (level,))}


def policy(world_id: str | WorldSpec, who: Policy | str) -> Policy:
    """Return a scripted policy given as an object or by the name of one of the world's baselines.

    Raises:
        OptionError: if the world has no baseline of that name.
    """
    if not isinstance(who, str):
        return who
    policies = baselines(world_id)
    if who not in policies:
        near = did_you_mean(who, policies)
        message = f"{spec(world_id).id} has the baselines {sorted(policies)}, got {who!r}{near}"
        raise OptionError(message)
    return policies[who]


def scripted_opponent(world_id: str | WorldSpec, role: str) -> str:
    """Return the baseline that plays `role` by default; see `WorldSpec`."""
    world_spec = spec(world_id)
    policies = baselines(world_spec)
    usual = (world_spec.opponents.get(role, ""), "scripted", "random")
    return next((name for name in usual if name in policies), "null")


def opponents_of_one(
    world: str | WorldSpec, opponents: Mapping[str, P | str] | None, played: str | None = None
) -> dict[str, P | str]:
    """Return opponents that leave one role to play: `opponents` and, for the others, the defaults.

    A world without scripted policies has no defaults.

    Args:
        world: id or short name of the world, or its declaration.
        opponents: by role a policy or a baseline's name.
        played: the role to play; the first that `opponents` does not name if `None`.
    """
    named = dict(opponents or {})
    left = [role for role in spec(world).roles if role not in named]
    others = left[1:] if played is None else [role for role in left if role != played]
    others = others if spec(world).baselines else []
    return {**named, **{role: scripted_opponent(world, role) for role in others}}


@cache
def import_object(path: str) -> Any:
    """Return the object that `module:name` points to."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


for _spec in (forecasting.SPEC, warehouse.SPEC, energy.SPEC, disruption.SPEC):
    register(_spec)
