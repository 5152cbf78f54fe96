"""Drawing archives, and what their notes hold."""

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tokengym.envs.core.label_noise import OUTCOMES
from tokengym.envs.forecasting.desk.archive import Archive, model_of
from tokengym.envs.forecasting.levels import DeskKnobs

FAMILY = "desk"
"""Family name of desks in their instances."""

_ITEMS = 3
_PRIORS = (70, 89)
"""Per cent, from and below, where all items must come true; the opposite where one is enough."""
_PRICES: Mapping[str, tuple[float, float]] = {
    "style": (2.0, 8.0),
    "erratum": (1.0, 4.0),
    "report": (0.2, 1.0),
}
_WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
_EVENTS, _WIRES = _WORDS["events"], _WORDS["wires"]
_DAYS = 60


def draw_archive(rng: np.random.Generator, knobs: DeskKnobs) -> dict[str, Any]:
    """Draw an archive; see `tokengym.envs.forecasting.desk.archive`."""
    join = "all" if rng.random() < 0.5 else "any"
    priors = rng.integers(*_PRIORS, size=_ITEMS)
    events = rng.choice(len(_EVENTS), size=_ITEMS, replace=False)
    wires = rng.choice(len(_WIRES), size=2, replace=False)
    # Each wire has a report, and one of them several.
    printed = rng.permutation(
        [*range(len(wires)), *rng.integers(len(wires), size=knobs.reports - len(wires))]
    )
    notes: list[dict[str, Any]] = [
        {
            "kind": "report",
            "item": place % _ITEMS,
            "wire": int(wire),
            "right": int(rng.integers(*knobs.right)),
        }
        for place, wire in enumerate(printed)
    ]
    notes += [{"kind": "style", "wire": place} for place in range(len(wires))]
    corrected = rng.choice(knobs.reports, size=knobs.errata, replace=False)
    notes += [{"kind": "erratum", "report": int(place)} for place in corrected]
    for note in notes:
        low, high = map(math.log, _PRICES[note["kind"]])
        note["price"] = round(math.exp(rng.uniform(low, high)), 2)
    return {
        "join": join,
        "items": [
            {"event": _EVENTS[event], "prior": int(prior if join == "all" else 100 - prior)}
            for event, prior in zip(events, priors, strict=True)
        ],
        "wires": [_WIRES[wire] for wire in wires],
        "notes": _filed(rng, notes),
    }


def _filed(rng: np.random.Generator, notes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return notes in order of their dates; an erratum follows its report."""
    days = np.sort(rng.choice(_DAYS, size=len(notes), replace=False))
    order = [int(place) for place in rng.permutation(len(notes))]
    for at, place in enumerate(order):
        report = notes[place].get("report", place)
        later = order.index(report)
        if later > at:
            order[at], order[later] = report, place
    filed = [dict(notes[place], day=int(day)) for place, day in zip(order, days, strict=True)]
    for note in filed:
        if note["kind"] == "erratum":
            note["report"] = order.index(note["report"])
    return filed


def draw_contents(archive: Archive, rng: np.random.Generator) -> dict[str, Any]:
    """Draw what the notes say and what happens; return the answer of the Task.

    Each outcome is drawn on its own given all notes, with the probability `p_latent`.
    """
    model = model_of(archive)
    flat = model.contents.ravel()
    cell = int(rng.choice(flat.size, p=flat / flat.sum()))
    bits = tuple(int(index) for index in np.unravel_index(cell, model.contents.shape))
    chance = float(model.contents_yes[bits] / model.contents[bits])
    outcomes = (rng.random(OUTCOMES) < chance).astype(int)
    prior = float(model.yes[(0,) * len(bits)])
    return {
        "p_bayes": [1.0 - prior, prior],
        "p_latent": [1.0 - chance, chance],
        "notes": "".join(map(str, bits)),
        "outcomes": "".join(map(str, outcomes)),
    }
