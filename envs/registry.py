"""The catalogue: one row a world. Strings only, so that nothing loads until a world is made."""

import difflib
import importlib
import inspect
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from tokengym.envs.core.errors import OptionError, UnknownWorldError
from tokengym.envs.core.rollout import Policy
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.world import World
from tokengym.rewards import debate
from tokengym.rewards.bounds import Range

_UNIT = Range(0.0, 1.0)

_ROWS = (
    WorldSpec(
        id="tokengym/Forecast-v0",
        summary="One question, one probability, scored by a strictly proper rule.",
        entry_point="tokengym.envs.forecasting.world:ForecastWorld",
        baselines="tokengym.envs.forecasting.baselines:BASELINES",
        roles=("forecaster",),
        turn_limits={"easy": 1, "medium": 1, "hard": 1, "update": 2},
        step_range={"forecaster": _UNIT},
        return_range={"forecaster": _UNIT},
    ),
    WorldSpec(
        id="tokengym/Warehouse-v0",
        summary="A shift lead batches orders, routes trips and reorders stock, exactly scored.",
        entry_point="tokengym.envs.warehouse.world:WarehouseWorld",
        baselines="tokengym.envs.warehouse.baselines:BASELINES",
        roles=("lead",),
        turn_limits={
            "pick_small": 6,
            "pick": 12,
            "pick_large": 24,
            "pick_online": 24,
            "stock_small": 8,
            "stock": 12,
            "stock_large": 12,
            "full": 18,
            "full_pickers": 28,
        },
        step_range={"lead": _UNIT},
        return_range={"lead": _UNIT},
    ),
    WorldSpec(
        id="tokengym/Energy-v0",
        summary="Run a battery or a heat pump at least cost above a graded safety floor.",
        entry_point="tokengym.envs.energy.world:EnergyWorld",
        baselines="tokengym.envs.energy.baselines:BASELINES",
        roles=("operator",),
        turn_limits={
            "small": 12,
            "day": 24,
            "two_days": 48,
            "soma": 96,
            "outages": 24,
            "genset": 24,
            "ev": 24,
            "comfort": 24,
        },
        step_range={"operator": _UNIT},
        return_range={"operator": _UNIT},
    ),
    WorldSpec(
        id="tokengym/Disruption-v0",
        summary="Predict whether a paper is disruptive, be challenged, and answer again.",
        entry_point="tokengym.envs.disruption.world:DisruptionWorld",
        baselines="tokengym.envs.disruption.baselines:BASELINES",
        roles=("predictor", "challenger"),
        turn_limits={"L2": 2, "L1": 2, "L0": 2},
        step_range={"predictor": debate.TOTAL, "challenger": debate.CHALLENGER_TOTAL},
        return_range={"predictor": debate.TOTAL, "challenger": debate.CHALLENGER_TOTAL},
    ),
)
_CATALOGUE: Mapping[str, WorldSpec] = MappingProxyType({row.id: row for row in _ROWS})


def specs() -> Mapping[str, WorldSpec]:
    """Return every world's declaration by id."""
    return _CATALOGUE


def spec(world_id: str) -> WorldSpec:
    """Return the declaration of one world.

    Args:
        world_id: an id such as `tokengym/Forecast-v0`, or its short name `forecast`.

    Raises:
        UnknownWorldError: if there is none, with the nearest id.
    """
    row = _CATALOGUE.get(world_id) or _by_short_name().get(world_id)
    if row is not None:
        return row
    near = difflib.get_close_matches(world_id, [*_CATALOGUE, *_by_short_name()], n=1, cutoff=0.4)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise UnknownWorldError(
        f"no world is called {world_id!r}{hint}; there are {sorted(_CATALOGUE)}"
    )


def make_world(world_id: str, level: str | None = None, **options: Any) -> World:
    """Make a world, ready for `.task(split, index)` and `.start(task)`.

    Args:
        world_id: an id of the catalogue, or its short name.
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


def baselines(world_id: str) -> Mapping[str, Policy]:
    """Return a world's scripted policies by name: at least `null`, `random` and `oracle`."""
    policies: Mapping[str, Policy] = load(spec(world_id).baselines)
    return policies


def policy(world_id: str, who: Policy | str) -> Policy:
    """Return a scripted policy given as itself or by the name of one of the world's baselines.

    Raises:
        OptionError: if the world has no baseline of that name.
    """
    if not isinstance(who, str):
        return who
    known = baselines(world_id)
    if who not in known:
        raise OptionError(f"{world_id} has the baselines {sorted(known)}, got {who!r}")
    return known[who]


@cache
def load(path: str) -> Any:
    """Return the object that `module:name` points to."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


@cache
def _by_short_name() -> Mapping[str, WorldSpec]:
    return {row.short_name: row for row in _ROWS}
