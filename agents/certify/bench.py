"""A source under test: its Tasks in two halves, scripted policies, the scale of its rewards."""

import json
import math
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from tokengym.agents.certify import variations
from tokengym.agents.certify.source import (
    Policy,
    Source,
    SourceEpisode,
    SourceStep,
    TaskPlace,
    Trace,
    begin,
    play,
    say,
)
from tokengym.agents.certify.stopwatch import Stopwatch
from tokengym.agents.certify.strategies import Trials
from tokengym.agents.settings import Settings, option, typed_words
from tokengym.envs.core.display import shorten
from tokengym.envs.core.seeding import generator
from tokengym.rewards.estimates import Estimate, mean_estimate

T = TypeVar("T")

TEXTS = tomllib.loads(Path(__file__).with_name("replies.toml").read_text(encoding="utf-8"))
"""Replies that solve no Task, by what they are for."""
CANARIES, FIXED = tuple(TEXTS["canaries"]), tuple(TEXTS["fixed"])
NUMBER = re.compile(r"(?<![\w.])[+-]?\d+(?:\.\d+)?(?!\w)", re.ASCII)
_LONG = 2000
_NO_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]|[0-9]{100}")
_SHARES = 4.0
"""How many times its share of the time that is left a check may take."""
_COMMON = 10
"""Most references that are tried as fixed replies."""


KINDS = ("proper_score", "partial_credit", "pass_fail")
"""How graders pay, see `CertifySettings.kind`."""
_CHANCES = ("0.1", "0.3", "0.5", "0.7", "0.9")


class Inapplicable(Exception):
    """The check makes no sense for this source; the message says why."""


class Untold(Exception):
    """The check makes sense but cannot be decided; the message says why."""


@dataclass(frozen=True)
class CertifySettings(Settings):
    """Thoroughness.

    Attributes:
        tasks: Tasks of each of the two halves: policies are chosen on one and scored on the other.
        strategies: replies drawn from the grammar in the search for exploits.
        replies: replies played in the check of memory.
        drawn: prompts drawn in the checks of repetition.
        patience: seconds of processor time for all checks of a source; each check may take
            some times its share; what is only waited for counts a quarter.
        ties: largest share of groups of eight in which all returns may be equal.
        policy: whose rollouts make the groups that are counted, see `players.player`.
        kind: `proper_score` of a probability, `partial_credit` for answers that are nearly right,
            or `pass_fail`; it says what checks are apt. Guessed from rewards if empty.
        seed: of everything that is drawn.
    """

    tasks: int = option(20, "Tasks to choose policies on, and as many to score them", least=4)
    strategies: int = option(200, "replies that the search for exploits tries", least=1)
    replies: int = option(10_000, "replies played in the check for memory leaks", least=10)
    drawn: int = option(200, "prompts compared in the checks for repeated Tasks", least=10)
    patience: float = option(1800.0, "seconds of processor time for all checks", above=0)
    ties: float = option(0.5, "largest share of groups of eight that may tie", least=0, most=1)
    policy: str = option(
        "noisy",
        "policy whose rollouts are judged for ties: noisy, others (right replies to other Tasks), "
        "openai:MODEL@URL, or FILE.py:NAME of a function from text and turn to a reply",
    )
    kind: str = option("", "how replies are paid, if recognised wrongly", choices=("", *KINDS))
    seed: int = option(0, "seed of all random draws", least=0)


def unlikely(reply: str) -> bool:
    """Return whether no model is likely to reply so: very long, or with characters of no text."""
    return len(reply) > _LONG or _NO_TEXT.search(reply) is not None


class PlayedReply(NamedTuple):
    """An episode in the table: which check played it, and what came of it."""

    check: str
    trace: Trace

    @property
    def unlikely(self) -> bool:
        """Whether no model is likely to reply so."""
        return any(map(unlikely, self.trace.replies))


class Blind(NamedTuple):
    """The best of several policies.

    Attributes:
        name: which one.
        scored: its returns on the Tasks that it was not chosen on.
        example: one of them, in words.
    """

    name: str
    scored: tuple[float, ...]
    example: str


@dataclass
class Bench:
    """A source under test; what checks share is played once.

    Attributes:
        source: the environment.
        target: how the user named it.
        settings: how thoroughly to look.
        options: of the source.
        limits: options of the command that bound the environment's process.
        harder: a setting of the source that is claimed to be harder, if there is one.
        table: every episode that was played.
        failures: how the environment's process failed so far.
        broken: failed checks, and those that show that rewards do not repeat.
        guessed: what `kind` took the grader for; empty if nobody asked.
    """

    source: Source
    target: str = ""
    settings: CertifySettings = field(default_factory=CertifySettings)
    options: Mapping[str, Any] = field(default_factory=dict)
    limits: Sequence[str] = ()
    harder: "Bench | None" = None
    table: list[PlayedReply] = field(default_factory=list)
    failures: set[str] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)
    guessed: str = ""
    _views: dict[TaskPlace, SourceEpisode] = field(default_factory=dict)
    _shared: dict[Callable[["Bench"], Any], Any] = field(default_factory=dict)
    _check: str = ""
    _left: int = 1
    _end: float = math.inf
    _until: float = math.inf
    _begun: tuple[int, float, float] = (0, 0.0, 0.0)

    @cached_property
    def _watch(self) -> Stopwatch:
        return Stopwatch(self.source)

    def expect(self, checks: int) -> None:
        """Begin as many checks: the patience of all of them starts."""
        self._left, self._end = checks, self._watch.elapsed() + self.settings.patience

    def begin(self, check: str) -> None:
        """Begin a check; a few times its share of the time that is left is its own."""
        self._check, now = check, self._watch.elapsed()
        self._begun = (len(self.table), *self._watch.read())
        share = _SHARES / (_SHARES - 1 + max(self._left, 1))
        self._until = now + max(self._end - now, 0.0) * share
        self._left -= 1

    def taken(self) -> tuple[float, float]:
        """Return the seconds of work and of waiting since the check began."""
        work, waited = self._watch.read()
        return round(work - self._begun[1], 3), round(max(waited - self._begun[2], 0.0), 3)

    @property
    def played(self) -> int:
        """Episodes played since the check began."""
        return len(self.table) - self._begun[0]

    def require_time(self) -> None:
        """Check that the patience for the check has not ended.

        Raises:
            Untold: if it has; the message says how far the check came.
        """
        if self._watch.elapsed() > self._until:
            work, waited = self.taken()
            raise Untold(
                f"it was not finished in its share of {self.settings.patience:g} s of processor "
                f"time (--patience): it played {self.played} episodes in "
                f"{work:.1f} s of work and {waited:.1f} s of waiting"
            )

    def once(self, made: Callable[["Bench"], T]) -> T:
        """Return what a function makes of the bench, which several checks use."""
        if made not in self._shared:
            self._shared[made] = made(self)
        return cast("T", self._shared[made])

    def command(self, *checks: str) -> str:
        """Return the command that runs some checks as here."""
        said = ["tokengym", "certify", self.target]
        said += [word for check in checks if check for word in ("--only", check)]
        harder = self.harder.options if self.harder else {}
        flagged = [("--option", pair) for pair in self.options.items()]
        for flag, (name, value) in flagged + [("--harder", pair) for pair in harder.items()]:
            said += [flag, f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
        return shlex.join([*said, *typed_words(self.settings), *self.limits])

    def lacks(self, what: str) -> str:
        """Return why there is no such thing here; empty if there is."""
        if what not in _NEEDS:
            return ""
        lacks, words = _NEEDS[what]
        return words * lacks(self)

    @cached_property
    def kind(self) -> str:
        """How a reply is paid, as it was named or as rewards look: see `CertifySettings`."""
        if self.settings.kind or self.source.facts.turns > 1:
            return self.settings.kind
        self.guessed = _guess(self)
        return self.guessed

    def rng(self, *key: object) -> np.random.Generator:
        """Return a generator of its own for a purpose."""
        return generator("certify", self.settings.seed, *key)

    def places(
        self, count: int, split: str | None = None, seed: int | None = None
    ) -> list[TaskPlace]:
        """Return the first places of a split, fewer if it has fewer Tasks."""
        facts = self.source.facts
        splits = facts.splits or ("",)
        size = count if facts.size is None else min(count, facts.size)
        split = splits[0] if split is None else split
        seed = self.settings.seed if seed is None else seed
        return [TaskPlace(split, seed, index) for index in range(size)]

    @cached_property
    def chosen(self) -> list[TaskPlace]:
        """The Tasks on which policies are chosen."""
        return self.places(2 * self.settings.tasks)[::2]

    @cached_property
    def scored(self) -> list[TaskPlace]:
        """The Tasks on which chosen policies are scored."""
        return self.places(2 * self.settings.tasks)[1::2]

    def view(self, place: TaskPlace) -> SourceEpisode:
        """Return an episode of the Task at a place, for what it shows; it is not played."""
        if place not in self._views:
            self.require_time()
            # The example it shows is kept, but nothing that a source holds to play it.
            begun = begin(self.source, place)
            self._views[place] = replace(begun, reply=lambda _: SourceStep(0.0, True))
        return self._views[place]

    def play(self, place: TaskPlace, policy: Policy) -> Trace:
        """Play an episode.

        Raises:
            Untold: if the check has taken too long.
        """
        self.require_time()
        return self.note(play(self.source, place, policy))

    def note(self, trace: Trace) -> Trace:
        """Keep an episode in the table."""
        # The example it shows is not judged again, and may be large.
        self.table.append(PlayedReply(self._check, replace(trace, prompt="", texts=())))
        return trace

    def earned(self, place: TaskPlace, policy: Policy) -> float:
        """Return what a policy earns, see `paid`."""
        return self.paid(self.play(place, policy))

    def paid(self, trace: Trace) -> float:
        """Return what an episode earned; one that cannot be scored earns the least."""
        return trace.total if math.isfinite(trace.total) else self.least

    def known(self, places: Iterable[TaskPlace]) -> list[TaskPlace]:
        """Return those of some places whose Task has a reference."""
        return [place for place in places if self.view(place).reference]

    def reference(self, place: TaskPlace) -> Policy:
        """Return the policy that gives the Task's reference."""
        return self.say(*self.view(place).reference)

    def say(self, *answers: str) -> Policy:
        """Return the policy that gives answers, in the form that the source reads."""
        return say(*map(self.source.facts.form.format, answers))

    def formed(self, policies: Mapping[str, Policy]) -> dict[str, Policy]:
        """Return policies whose replies are answers, in the form that the source reads."""
        form = self.source.facts.form.format
        return {name: partial(_formed, form, policy) for name, policy in policies.items()}

    def other(self, place: TaskPlace, distance: int = 1) -> tuple[str, ...]:
        """Return the reference of another Task of the same half, fixed text where none is known."""
        half = self.chosen if place in self.chosen else self.scored
        at = half.index(place) + distance
        return self.view(half[at % len(half)]).reference or (FIXED[at % len(FIXED)],)

    @cached_property
    def low(self) -> float:
        """The lowest return, or 0 where that lies between it and what a solution earns.

        To earn nothing is no gaming, though replies that are not allowed may cost something.
        """
        return 0.0 if self.least < 0.0 < self.top else self.least

    @cached_property
    def least(self) -> float:
        """The lowest return: declared, or else the lowest that replies without sense earn."""
        if self.source.facts.declared is not None:
            return self.source.facts.declared[0]
        tried = ((place, say(said)) for place in self.chosen[:4] for said in ("", *CANARIES))
        totals = (play(self.source, *one).total for one in tried)
        return min(filter(math.isfinite, totals), default=0.0)

    @cached_property
    def top(self) -> float:
        """Mean return of solving a Task: claimed, or else the mean of the references.

        Without references it is the highest return that is declared.
        """
        views = {place: self.view(place) for place in self.known(self.scored)}
        if views:
            return fmean(
                self.earned(place, self.reference(place)) if view.claim is None else view.claim
                for place, view in views.items()
            )
        if self.source.facts.declared is None:
            raise Untold("neither a right reply nor a range of returns is known (--declared)")
        return self.source.facts.declared[1]

    @cached_property
    def reach(self) -> float:
        """How much a solution earns above the lowest return."""
        if self.top <= self.low:
            raise Untold(f"a solution earns {self.top:g}, no more than the least, {self.low:g}")
        return self.top - self.low

    def share(self, returns: Sequence[float]) -> Estimate:
        """Return the mean as a share of the range from the lowest return to a solution's."""
        return mean_estimate([(value - self.low) / self.reach for value in returns], (0.0, 1.0))

    def best(self, policies: Mapping[str, Policy]) -> Blind:
        """Choose the policy that earns most on one half of the Tasks, and score it on the other."""
        earn = lambda place, name: self.earned(place, policies[name])  # noqa: E731
        trials = Trials[TaskPlace, str](self.chosen, earn)
        name = trials.halved(policies)[0].who
        return self.blind_of(name, [self.play(place, policies[name]) for place in self.scored])

    def blind_of(self, name: str, traces: Sequence[Trace]) -> Blind:
        """Return what a policy earned in some episodes, with the best of them."""
        returns = tuple(map(self.paid, traces))
        return Blind(name, returns, shown(traces[returns.index(max(returns))]))

    def fixed(self) -> dict[str, Policy]:
        """Return fixed replies: usual ones, and the commonest references of the chosen half."""
        references = Counter(self.view(place).reference for place in self.known(self.chosen))
        known = [reply for reply, _ in references.most_common(_COMMON)]
        replies = [*((reply,) for reply in FIXED), *known]
        return {f"always answering {_first(said)}": self.say(*said) for said in replies}


_NEEDS: Mapping[str, tuple[Callable[[Bench], bool], str]] = {
    "play": (lambda bench: bool(bench.source.rollouts), "recorded rollouts cannot be played"),
    "references": (lambda bench: not bench.known(bench.chosen), "no right reply is known"),
    "claims": (
        lambda bench: all(bench.view(place).claim is None for place in bench.chosen),
        "the return of the right reply is unknown (--option best=…)",
    ),
    "splits": (lambda bench: not bench.source.facts.splits, "the source has no splits"),
    "seeds": (lambda bench: not bench.source.facts.seeded, "no seed sets Tasks apart"),
    "harder": (lambda bench: not bench.harder, "no harder setting is named (--harder)"),
    "turns": (lambda bench: bench.source.facts.turns < 2, "an episode has one reply"),
    "batches": (lambda bench: not bench.source.facts.batched, "it scores one reply at a time"),
    "right answers": (
        lambda bench: bench.kind == "proper_score",
        "a proper score pays cautious answers (--kind)",
    ),
    "grades": (
        lambda bench: bench.kind == "pass_fail",
        "a grader of right and wrong pays all wrong answers alike (--kind)",
    ),
}
"""Needs of checks: whether a source lacks one, and how reports name it."""


def _guess(bench: Bench) -> str:
    """Return how a grader looks to pay: probabilities, right and wrong, or more than that."""
    seen, probable = set[float](), True
    for place in bench.known(bench.chosen)[:6]:
        chances = [bench.earned(place, bench.say(chance)) for chance in _CHANCES]
        rising = sorted(set(chances)) in (chances, chances[::-1])
        probable &= rising and abs(chances[0] - chances[-1]) > 0.1 * bench.reach
        near = variations.wrong(bench.view(place).reference[-1]).values()
        said = (*bench.view(place).reference, *bench.other(place), *near)
        seen |= {*chances, *(bench.earned(place, bench.say(one)) for one in said)}
    if not seen:
        return ""
    if probable:
        return "proper_score"
    return "pass_fail" if len({round(value, 9) for value in seen}) <= 2 else "partial_credit"


def _formed(form: Callable[[str], str], policy: Policy, text: str, turn: int) -> str | None:
    said = policy(text, turn)
    return said if said is None else form(said)


def shown(trace: Trace) -> str:
    """Return an episode in words: where, what was replied first, and what it earned."""
    earned = trace.error or f"{trace.total:g}"
    return f"{trace.place}: {_first(trace.replies, 120)} -> {earned}"


def _first(replies: Sequence[str], most: int = 60) -> str:
    """Return the first of an episode's replies, and how many come after it."""
    more = f" and {len(replies) - 1} more" if len(replies) > 1 else ""
    return shorten(ascii(replies[0]) if replies else "nothing", most) + more
