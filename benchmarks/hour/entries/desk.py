"""forecast:desk, 2026-11-27, 2 minutes: exact dynamic program over beliefs.

Written from prompts and 60 train Tasks alone.

Method: exact Bayesian value of information, that is optimal sequential information acquisition
with a stopping choice, a small POMDP solved by dynamic programming over its belief states. The
hidden world is the truth of every item times the style of every wire (32 worlds); a belief is
told by which notes are open and what they said (3^6 beliefs at most). By backward recursion every
belief gets the least expected cost: the smaller of answering now (100 points times the posterior
variance of the answer) and of paying for one more note and going on. The prompt states every
chance and price, and the score is linear in points, so nothing is fitted to the train Tasks.
"""

import re
from dataclasses import dataclass, field
from itertools import product

import numpy as np

Belief = tuple[int, ...]  # by note: -1 unopened, else 0 or 1, what the note said

MAX_REPLIES = 12
POINTS = 100.0
COLOURS = {"GREEN": 1, "AMBER": 0}

ITEM = re.compile(r"^\((\d+)\).*Chance by what is known so far: ([\d.]+)%", re.M)
REPORT = re.compile(r"^note (\d+),[^:\n]*: (\w+) on item (\d+), right in ([\d.]+)%; price ([\d.]+)")
STYLE = re.compile(r"^note (\d+),[^:\n]*: style book of (\w+); price ([\d.]+)")
SAID = re.compile(r"^Note (\d+), [^:\n]*: (GREEN|AMBER)\b", re.M)


@dataclass
class Desk:
    """One Task: its worlds with their chances, and what each note says in each of them."""

    weights: np.ndarray  # chance of each world
    yes: np.ndarray  # 1.0 where the answer to the question is yes
    numbers: list[int]  # the notes' numbers as printed
    prices: list[float]
    says_one: list[np.ndarray]  # by note: chance in each world that it says 1
    memo: dict[Belief, tuple[float, int]] = field(default_factory=dict)

    def solve(self, belief: Belief, mass: np.ndarray) -> tuple[float, int]:
        """Least expected cost times the belief's chance, and the note to open (-1: answer)."""
        if belief in self.memo:
            return self.memo[belief]
        total = float(mass.sum())
        yes = float(mass @ self.yes)
        best, choice = POINTS * yes * (total - yes) / total, -1
        for note, said in enumerate(belief):
            paid = self.prices[note] * total
            if said >= 0 or paid >= best:
                continue
            cost = paid
            for outcome in (0, 1):
                after = (*belief[:note], outcome, *belief[note + 1 :])
                cost += self.solve(after, self.update(mass, note, outcome))[0]
            if cost < best - 1e-12:
                best, choice = cost, note
        self.memo[belief] = best, choice
        return best, choice

    def update(self, mass: np.ndarray, note: int, outcome: int) -> np.ndarray:
        """The worlds' masses after a note has said its outcome (not normalised)."""
        chance = self.says_one[note]
        return np.asarray(mass * (chance if outcome else 1.0 - chance))


def read_desk(prompt: str) -> Desk:
    """The Task a prompt describes."""
    chances = {int(item): float(percent) / 100 for item, percent in ITEM.findall(prompt)}
    items = sorted(chances)
    lines = prompt.splitlines()
    reports = [match for line in lines if (match := REPORT.match(line))]
    styles = [match for line in lines if (match := STYLE.match(line))]
    wires = sorted({match[2] for match in reports + styles})

    worlds = np.array(list(product((0, 1), repeat=len(items) + len(wires))))
    truth = {item: worlds[:, i] for i, item in enumerate(items)}
    green = {wire: worlds[:, len(items) + i] for i, wire in enumerate(wires)}

    weights = np.full(len(worlds), 0.5 ** len(wires))
    for item, chance in chances.items():
        weights *= np.where(truth[item] == 1, chance, 1.0 - chance)

    notes: dict[int, tuple[float, np.ndarray]] = {}
    for match in reports:
        right = float(match[4]) / 100
        shows_green = truth[int(match[3])] == green[match[2]]
        notes[int(match[1])] = float(match[5]), np.where(shows_green, right, 1.0 - right)
    for match in styles:
        notes[int(match[1])] = float(match[3]), green[match[2]].astype(float)

    every = np.all if re.search(r"Will all\b", prompt) else np.any
    numbers = sorted(notes)
    return Desk(
        weights=weights,
        yes=every(worlds[:, : len(items)] == 1, axis=1).astype(float),
        numbers=numbers,
        prices=[notes[number][0] for number in numbers],
        says_one=[notes[number][1] for number in numbers],
    )


DESKS: dict[str, Desk] = {}


def reply(texts: list[str], replies: list[str]) -> str:
    """Open the note that is worth most, or answer with the posterior probability."""
    if texts[0] not in DESKS:
        DESKS[texts[0]] = read_desk(texts[0])
    desk = DESKS[texts[0]]

    belief, mass = [-1] * len(desk.numbers), desk.weights
    for text in texts[1:]:
        for number, colour in SAID.findall(text):
            note = desk.numbers.index(int(number))
            if belief[note] < 0:
                belief[note] = COLOURS[colour]
                mass = desk.update(mass, note, belief[note])

    choice = desk.solve(tuple(belief), mass)[1]
    if choice >= 0 and len(replies) < MAX_REPLIES - 1:
        return f"open(note={desk.numbers[choice]})"
    return f"answer(probability={mass @ desk.yes / mass.sum():.3f})"
