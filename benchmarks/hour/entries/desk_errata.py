"""forecast:desk_errata, 2026-11-27, 2 minutes: exact dynamic program over beliefs.

Written from prompts and 60 train Tasks alone.

Method: exact Bayesian value of information (a finite-horizon dynamic programme over belief
states, i.e. a POMDP solved exactly). The joint distribution of the items, the wires' style
books, the swaps of the errata and the printed colours is laid out as a table with one binary
axis for each; a third index on every note's axis, "not opened", makes the table of all
belief states. Backward induction gives each state the better of answering with the posterior
probability (its Brier score) and opening a note at its price; the same table is read off at
every turn. A report without an erratum is taken as not swapped, as the train Tasks' values say.
"""

import re
from dataclasses import dataclass, field

import numpy as np

ITEM = re.compile(r"^\((\d+)\) .*known so far: ([\d.]+)%", re.M)
REPORT = re.compile(
    r"^note (\d+), [^:]*: (\S.*?) on item (\d+), right in ([\d.]+)%; price ([\d.]+)", re.M
)
ERRATUM = re.compile(r"^note (\d+), [^:]*: erratum to note (\d+); price ([\d.]+)", re.M)
STYLE = re.compile(r"^note (\d+), [^:]*: style book of (\S.*?); price ([\d.]+)", re.M)
REPLIES = re.compile(r"You have (\d+) replies")
OPENED = re.compile(r"Note (\d+), ([^:]*): (.*)")

UNKNOWN = 2  # the third index of a note's axis: not opened
SMALL = 1e-15


@dataclass
class Desk:
    """What the first text says. Notes are known by their numbers."""

    every: bool
    replies: int
    chances: dict[int, float]
    prices: dict[int, float] = field(default_factory=dict)
    reports: dict[int, tuple[str, int, float]] = field(default_factory=dict)
    errata: dict[int, int] = field(default_factory=dict)
    styles: dict[int, str] = field(default_factory=dict)


def read_desk(text: str) -> Desk:
    """Read the question, the items and the archive."""
    question = re.search(r"Question: (.*)", text)
    limit = REPLIES.search(text)
    desk = Desk(
        every=question is not None and "at least one" not in question.group(1),
        replies=int(limit.group(1)) if limit else 12,
        chances={int(number): float(chance) / 100 for number, chance in ITEM.findall(text)},
    )
    for number, wire, item, right, price in REPORT.findall(text):
        desk.reports[int(number)] = (wire, int(item), float(right) / 100)
        desk.prices[int(number)] = float(price)
    for number, report, price in ERRATUM.findall(text):
        desk.errata[int(number)] = int(report)
        desk.prices[int(number)] = float(price)
    for number, wire, price in STYLE.findall(text):
        desk.styles[int(number)] = wire
        desk.prices[int(number)] = float(price)
    return desk


def name_axes(desk: Desk) -> list[tuple[str, int | str]]:
    """Name the binary variables: first one for each note, then those that no note shows."""
    axes: list[tuple[str, int | str]] = []
    for note in sorted(desk.prices):
        if note in desk.reports:
            axes.append(("colour", note))
        elif note in desk.errata:
            axes.append(("swap", desk.errata[note]))
        else:
            axes.append(("style", desk.styles[note]))
    hidden = {wire for wire, _, _ in desk.reports.values()} - set(desk.styles.values())
    axes += [("style", wire) for wire in sorted(hidden)]
    return axes + [("item", item) for item in sorted(desk.chances)]


def joint_table(desk: Desk) -> tuple[np.ndarray, np.ndarray]:
    """Chance of every joint reading of all notes: in all, and together with the answer yes."""
    axes = name_axes(desk)
    size = len(axes)
    grid = dict(zip(axes, np.indices((2,) * size, sparse=True), strict=True))
    table = np.ones((2,) * size)
    for kind, name in axes:
        if kind == "item":
            chance = desk.chances[int(name)]
            table = table * np.where(grid[kind, name] == 1, chance, 1 - chance)
        elif kind != "colour":
            table = table * 0.5
    for note, (wire, item, right) in desk.reports.items():
        # colour 1 is GREEN; style 1 means that GREEN stands for "will come true"
        told = grid["colour", note] ^ grid["style", wire] ^ 1
        if ("swap", note) in grid:
            told = told ^ grid["swap", note]
        table = table * np.where(told == grid["item", item], right, 1 - right)
    count = sum(grid["item", item] for item in desk.chances)
    yes = count == len(desk.chances) if desk.every else count >= 1
    unseen = tuple(range(len(desk.prices), size))
    return table.sum(axis=unseen), (table * yes).sum(axis=unseen)


def with_unknown(table: np.ndarray) -> np.ndarray:
    """Add to every axis the index of a note that is not open."""
    for axis in range(table.ndim):
        table = np.concatenate([table, table.sum(axis=axis, keepdims=True)], axis=axis)
    return table


class Planner:
    """The belief states of one Task, with the best gain from each (times its chance)."""

    def __init__(self, desk: Desk, replies_left: int) -> None:
        self.notes = sorted(desk.prices)
        self.prices = [desk.prices[note] for note in self.notes]
        every, yes = joint_table(desk)
        self.mass = with_unknown(every)
        self.yes = with_unknown(yes)
        self.stop = 100 * (self.mass - self.yes * (1 - self.yes / (self.mass + SMALL)))
        self.values = [self.stop]
        for _ in range(min(len(self.notes), replies_left - 1)):
            self.values.append(self._sweep(self.values[-1]))

    def _sweep(self, later: np.ndarray) -> np.ndarray:
        """One step of backward induction: answer now, or open one more note."""
        best = self.stop.copy()
        for axis, price in enumerate(self.prices):
            value = np.moveaxis(later, axis, 0)
            mass = np.moveaxis(self.mass, axis, 0)
            target = np.moveaxis(best, axis, 0)
            opened = value[0] + value[1] - price * mass[UNKNOWN]
            np.maximum(target[UNKNOWN], opened, out=target[UNKNOWN, ...])
        return best

    def choose(self, state: tuple[int, ...], replies_left: int) -> str:
        """The best call in a state."""
        later = self.values[max(0, min(replies_left - 2, len(self.values) - 1))]
        best, call = self.stop[state] + 1e-9 * self.mass[state], 0
        for axis, price in enumerate(self.prices):
            if state[axis] != UNKNOWN or replies_left < 2:
                continue
            low, high = ((*state[:axis], bit, *state[axis + 1 :]) for bit in (0, 1))
            value = later[low] + later[high] - price * self.mass[state]
            if value > best:
                best, call = value, self.notes[axis]
        if call:
            return f"open(note={call})"
        return f"answer(probability={self.yes[state] / (self.mass[state] + SMALL):.3f})"


def read_state(notes: list[int], texts: list[str]) -> tuple[int, ...]:
    """What the opened notes showed, in the order of the notes."""
    state = dict.fromkeys(notes, UNKNOWN)
    for text in texts:
        for number, title, said in OPENED.findall(text):
            if int(number) not in state:
                continue
            if title.startswith("erratum"):
                state[int(number)] = int("not swapped" not in said)
            else:
                state[int(number)] = int(said.startswith("GREEN"))
    return tuple(state[note] for note in notes)


PLANNERS: dict[str, tuple[Desk, Planner]] = {}


def reply(texts: list[str], replies: list[str]) -> str:
    """Open the note that is worth most beyond its price, or answer."""
    if texts[0] not in PLANNERS:
        desk = read_desk(texts[0])
        PLANNERS[texts[0]] = desk, Planner(desk, desk.replies)
    desk, planner = PLANNERS[texts[0]]
    state = read_state(planner.notes, texts[1:])
    return planner.choose(state, desk.replies - len(replies))
