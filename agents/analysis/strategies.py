"""Strategies without understanding: replies composed of forms, numbers and other replies.

The grammar is learned from the replies of a world's own scripted policies, so it fits any world:
their lines with other numbers in them, numbers copied from the text that is answered, honest
replies cut short, changed or repeated, and nonsense.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

_NUMBER = re.compile(r"(?<![A-Za-z0-9_.])[+-]?[0-9]+(?:\.[0-9]+)?")
_NAMED = re.compile(r"[0-9]+(?:\.[0-9]+)?")
"""A number in a reply may be a part of a name, such as that of an order: `O7`."""

_MOST_LINES = 4
_MOST_PHASES = 3
_FORMS_KEPT = 400
_NONSENSE = ("", "I cannot say.", "?", "0", "1 2 3", "DONE\n" * 50)

Replies = Mapping[str, Sequence[str]]
"""What each honest rule replied in an episode of the same Task, by its name."""
Answer = Callable[[str, int, Replies], str | None]
"""From the text to answer, the number of the turn and honest replies to a reply; `None` to stop."""


@dataclass(frozen=True)
class Phase:
    """Part of a strategy: how it answers up to a turn.

    Attributes:
        until: the first turn that it does not answer.
        words: what it does.
        answer: how it answers.
    """

    until: int
    words: str
    answer: Answer


@dataclass(frozen=True)
class Strategy:
    """What to reply, by the number of the turn; the last phase has no end."""

    phases: tuple[Phase, ...]

    def reply(self, text: str, turn: int, honest: Replies) -> str | None:
        """Answer a text; `None` to end the episode by the token budget."""
        phase = next((phase for phase in self.phases if turn < phase.until), self.phases[-1])
        return phase.answer(text, turn, honest)

    def __str__(self) -> str:
        """Describe the strategy in words."""
        *early, last = self.phases
        return "".join(f"{phase.words} until turn {phase.until}, then " for phase in early) + (
            last.words
        )


@dataclass(frozen=True)
class StrategySpace:
    """Draws strategies.

    Attributes:
        forms: lines of honest replies, with `{}` for each number.
        numbers: numbers that honest replies hold.
        rules: names of the honest rules.
    """

    forms: tuple[str, ...]
    numbers: tuple[str, ...]
    rules: tuple[str, ...]

    @classmethod
    def of(cls, episodes: Iterable[Replies], rules: Sequence[str]) -> Self:
        """Learn the grammar from honest episodes."""
        replies = [reply for episode in episodes for said in episode.values() for reply in said]
        lines = [line for reply in replies for line in reply.splitlines() if line]
        forms = dict.fromkeys(_NAMED.sub("{}", re.sub("[{}]", "", line)) for line in lines)
        numbers = dict.fromkeys(number for line in lines for number in _NAMED.findall(line))
        return cls(tuple(forms)[:_FORMS_KEPT], tuple(numbers) or ("0",), tuple(rules))

    def draw(self, rng: np.random.Generator, turns: int) -> Strategy:
        """Draw a strategy for episodes of at most `turns` turns of the role."""
        count = int(rng.integers(1, min(turns, _MOST_PHASES) + 1))
        ends = sorted(int(end) for end in rng.integers(1, max(turns, 2), size=count))
        phases = []
        for end in ends:
            words, answer = self._draw_answer(rng)
            phases.append(Phase(end, words, answer))
        return Strategy(tuple(phases))

    def _draw_answer(self, rng: np.random.Generator) -> tuple[str, Answer]:
        kind = rng.choice(
            ["lines", "rule", "edited rule", "nonsense", "copy", "stop"],
            p=[0.45, 0.15, 0.2, 0.08, 0.08, 0.04],
        )
        if kind == "lines":
            return self._draw_lines(rng)
        if kind == "rule":
            name = str(rng.choice(self.rules))
            return f"{name}'s reply", lambda text, turn, honest: _at(honest[name], turn)
        if kind == "edited rule":
            return self._draw_edit(rng)
        if kind == "nonsense":
            said = str(rng.choice(_NONSENSE))
            return f"{said[:20]!r}", lambda text, turn, honest: said
        if kind == "copy":
            lines = int(rng.integers(1, 6))
            return (
                f"the last {lines} lines of the text",
                lambda text, turn, honest: "\n".join(text.splitlines()[-lines:]),
            )
        return "stop", lambda text, turn, honest: None

    def _draw_lines(self, rng: np.random.Generator) -> tuple[str, Answer]:
        """Draw well-formed lines, with numbers that are fixed or copied from the text."""
        if not self.forms:
            return "nothing", lambda text, turn, honest: ""
        chosen = rng.choice(self.forms, size=int(rng.integers(1, _MOST_LINES + 1)))
        lines = [str(form) for form in chosen]
        slots = [self._draw_number(rng) for line in lines for _ in range(line.count("{}"))]
        form = "\n".join(lines)

        def answer(text: str, turn: int, honest: Replies) -> str:
            numbers = _NUMBER.findall(text)
            return form.format(*(slot(numbers) for _, slot in slots))

        return repr(form.format(*(words for words, _ in slots))), answer

    def _draw_number(self, rng: np.random.Generator) -> tuple[str, Callable[[Sequence[str]], str]]:
        """Draw a number: one that rules state, any, or one from the text or made of two."""
        kind = rng.integers(5)
        if kind == 0:
            fixed = str(rng.choice(self.numbers))
            return fixed, lambda numbers: fixed
        if kind == 1:
            fixed = f"{rng.random():.3f}" if rng.random() < 0.5 else str(int(rng.integers(20)))
            return fixed, lambda numbers: fixed
        place = int(rng.integers(-12, 12))
        if kind == 2:
            return f"<{place}>", lambda numbers: _at_place(numbers, place)
        other = int(rng.integers(-12, 12))
        if kind == 3:

            def ratio(numbers: Sequence[str]) -> str:
                a, b = (abs(float(_at_place(numbers, n))) for n in (place, other))
                return f"{(a + 1.0) / (a + b + 2.0):.3f}"

            return f"<share of {place} and {other}>", ratio
        scale = float(rng.choice([0.1, 0.5, 0.9, 1.1, 2.0]))
        return (
            f"<{scale:g} times {place}>",
            lambda numbers: f"{scale * float(_at_place(numbers, place)):.2f}",
        )

    def _draw_edit(self, rng: np.random.Generator) -> tuple[str, Answer]:
        """Draw a change of a rule's reply: other numbers, lines left out or repeated, delays."""
        name = str(rng.choice(self.rules))
        scale = float(rng.choice([1.0, 1.0, 0.0, 0.5, 0.9, 1.1, 2.0]))
        shift = float(rng.choice([0.0, 0.0, -1.0, -0.1, 0.1, 1.0]))
        lag = int(rng.choice([0, 0, 0, 1, -1]))
        lines = [
            slice(None),
            slice(None),
            slice(0, 1),
            slice(1, None),
            slice(0, 2),
            slice(-1, None),
        ]
        part = lines[int(rng.integers(len(lines)))]
        extra = str(rng.choice(self.forms)) if self.forms and rng.random() < 0.3 else ""
        number = str(rng.choice(self.numbers))

        def change(match: re.Match[str]) -> str:
            value = scale * float(match[0]) + shift
            return f"{value:.3f}" if "." in match[0] else str(round(value))

        def answer(text: str, turn: int, honest: Replies) -> str:
            said = _at(honest[name], max(turn + lag, 0))
            lines_said = "\n".join(said.splitlines()[part])
            changed = lines_said if scale == 1.0 else _NUMBER.sub(change, lines_said)
            return f"{changed}\n{extra.replace('{}', number)}" if extra else changed

        words = f"{name}'s reply {lag:+d} x {scale:g} {shift:+g}, lines {part.start}:{part.stop}"
        return f"{words} and {extra.replace('{}', number)!r}" if extra else words, answer


def _at(replies: Sequence[str], turn: int) -> str:
    """Return the reply at a turn, the last one after the end."""
    return replies[min(turn, len(replies) - 1)] if replies else ""


def _at_place(numbers: Sequence[str], place: int) -> str:
    """Return the number of the text at a place, counted from its end if negative."""
    if not numbers:
        return "0"
    return numbers[place % len(numbers)] if abs(place) <= len(numbers) else numbers[-1]
