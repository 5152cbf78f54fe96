"""The plants: a home microgrid or an off-grid site, immutable and with their whole future."""

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tokengym.envs.core.errors import TaskError
from tokengym.envs.energy.house import House
from tokengym.envs.energy.microgrid import Car, Microgrid
from tokengym.envs.energy.site import OffGridSite

_FORESEEN_KEPT = 512

Plant = Microgrid | OffGridSite
"""All are a `StoragePlant` with `required`, the scale of a step's safety cost; `advance` applies
commands, which physics clips and safety never does; `foreseen` is the plant as a Turn shows it. A
`Microgrid` has `expected`, the plant if all comes as the first one says, by which a Task is scaled.
"""


def plant_from(instance: Mapping[str, Any]) -> Plant:
    """Build the plant that an instance describes.

    Raises:
        TaskError: if its series differ in length or a parameter is no number.
        KeyError, TypeError: if a field is missing or unknown.
    """
    kind = OffGridSite if "generators" in instance else Microgrid
    fields = {name: _frozen(value) for name, value in instance.items() if name != "source"}
    lengths = {name: len(fields[name]) for name in kind.SERIES}
    lengths |= {name: len(fields[name]) for name in kind.OPTIONAL_SERIES if name in fields}
    if "car" in fields:
        fields["car"] = Car(*fields["car"]) if fields["car"] else None
    if "house" in fields:
        fields["house"] = House(*fields["house"])
    if len(set(lengths.values())) != 1:
        raise TaskError(f"damaged plant: its series must have equal lengths, got {lengths}")
    plant = kind(**fields)
    for parameter in dataclasses.fields(kind):
        value = getattr(plant, parameter.name)
        if parameter.type in (int, float) and not isinstance(value, int | float):
            raise TaskError(f"damaged plant: {parameter.name} must be a number, got {value!r}")
    return plant


@lru_cache(maxsize=_FORESEEN_KEPT)
def foreseen(plant: Plant, step: int) -> Plant:
    """Return the plant as shown at `step`, computed once for all policies compared on a Task."""
    return plant.foreseen(step)


def _frozen(value: Any) -> Any:
    """Turn lists, nested ones too, into tuples."""
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
