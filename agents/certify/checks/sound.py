"""Sound: equal seeds give equal episodes, rewards are what is declared, and no reply raises."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from statistics import fmean, median
from typing import Any

from tokengym.agents.certify.bench import (
    CANARIES,
    FIXED,
    TEXTS,
    Bench,
    Inapplicable,
    Untold,
    shown,
    unlikely,
)
from tokengym.agents.certify.finding import CheckVerdict, Severity, check
from tokengym.agents.certify.source import (
    Policy,
    Source,
    SourceFailure,
    TaskPlace,
    Trace,
    begin,
    in_words,
    plain_reward,
    play,
    say,
)
from tokengym.agents.certify.sources import MANY_TURNS
from tokengym.agents.certify.stopwatch import Stopwatch
from tokengym.envs.core.display import shorten
from tokengym.envs.core.odd_replies import HOSTILE, near_misses
from tokengym.rewards.estimates import share_estimate

PARTS = ("prompt", "rewards", "texts", "done", "error")
"""Of an episode, what equal replies must repeat."""
SLACK = 1e-6
"""Rounding by which returns may differ."""
_SLOW, _WORTH = 1.0, 0.05
"""Seconds within which any reply should be scored, and seconds that are timed three times."""
_SIZES = (16, 20, 24, 28, 32, 1000, 25_000, 100_000)
"""Characters of replies that are timed."""
_STEEP = {20: 4.0, 24: 4.0, 28: 4.0, 32: 4.0, 100_000: 8.0}
"""How many times as long as the length before it a length may take; the last is four times that."""
_LEAK, _LEAK_OF_A_REPLY = 8 << 20, 2 << 10
"""Bytes by which memory may grow altogether, and for each reply."""
_FILLED = 1500
"""Replies after which caches count as full."""
_PLAYING = 5.0
"""Seconds for which each half of the check of memory plays."""


@check("runtime.seed_control", "sound", Severity.DEFECT, "play")
def seed_control(bench: Bench) -> CheckVerdict:
    """The same split, seed and index give the same Task, and another seed gives others."""
    places = bench.places(10)
    first = [bench.view(place) for place in places]
    for place, view in reversed([*zip(places, first, strict=True)]):
        again = begin(bench.source, place)
        if (again.prompt, again.reference) != (view.prompt, view.reference):
            return CheckVerdict(False, f"{place} was drawn twice and differs")
    if bench.source.facts.seeded:
        others = [bench.view(replace(place, seed=place.seed + 1)).prompt for place in places]
        if others == [view.prompt for view in first]:
            return CheckVerdict(False, "another seed gives the same Tasks")
    return CheckVerdict(True, "equal places give equal Tasks")


def planned(bench: Bench) -> list[tuple[TaskPlace, Policy]]:
    """Return policies that differ in what they do: right, of another Task, and without sense."""
    said = {
        place: (bench.view(place).reference, bench.other(place), CANARIES[:1])
        for place in bench.chosen[:6]
    }
    return [(at, bench.say(*one)) for at, several in said.items() for one in several if one]


def repeated(bench: Bench) -> tuple[list[Trace], list[Trace]]:
    """Play right and wrong replies twice."""
    plans = planned(bench)
    first, second = ([bench.play(place, who) for place, who in plans] for _ in range(2))
    return first, second


def compare(
    traces: Iterable[Trace], others: Iterable[Trace], parts: Sequence[str] = PARTS
) -> CheckVerdict:
    """Compare parts of episodes that should be the same."""
    for trace, other in zip(traces, others, strict=False):
        for part in parts:
            first, second = repr(getattr(trace, part)), repr(getattr(other, part))
            if first != second:
                pairs = enumerate(zip(first, second, strict=False))
                at = max(next((i for i, (a, b) in pairs if a != b), 0) - 10, 0)
                found = f"{part} differ: {shorten(first[at:])} and then {shorten(second[at:])}"
                return CheckVerdict(False, found, example=shown(trace))
    return CheckVerdict(True, "all are the same")


@check("semantic.verifier_determinism", "sound", Severity.DEFECT, "play", "repeats")
def verifier_determinism(bench: Bench) -> CheckVerdict:
    """The same replies to the same Task earn the same rewards."""
    first, second = bench.once(repeated)
    return compare(first, second, ["rewards"])


@check("runtime.episode_determinism", "sound", Severity.DEFECT, "play", "repeats")
def episode_determinism(bench: Bench) -> CheckVerdict:
    """The same replies to the same Task are answered by the same texts and end at the same turn."""
    first, second = bench.once(repeated)
    return compare(first, second, ["texts", "done", "error"])


def steady(bench: Bench) -> list[Trace]:
    """Return episodes that repeat when they are played alone.

    Raises:
        Untold: if one does not.
    """
    first, second = bench.once(repeated)
    if not compare(first, second).passed:
        raise Untold("equal episodes differ already when they are played one after the other")
    return first


def hostile(bench: Bench) -> list[Trace]:
    """Play replies that a model may well give and nobody thought of; what hangs ends the play.

    Those that a model is likely to give come first: what hangs on others alone is fragile.
    """
    traces = []
    for place in bench.chosen[:2]:
        reference = bench.view(place).reference
        near = near_misses(reference[0]) if reference else ()
        cut = [f"<think>\nPerhaps it is {one}. Let me che" for one in reference[:1]]
        replies = sorted((*HOSTILE, *near, *cut, *FIXED), key=unlikely)
        traces += [bench.play(place, say(reply)) for reply in replies]
    return traces


@check("sound.scored_together", "sound", Severity.DEFECT, "play", "batches", "repeats")
def batches(bench: Bench) -> CheckVerdict:
    """Replies scored in one call, as trainers do, earn what each earns alone."""
    steady(bench)
    alone: list[tuple[TaskPlace, str, float]] = []
    for place in bench.chosen[:6]:
        said = [*bench.view(place).reference[:1], *bench.other(place)[:1], CANARIES[0], FIXED[0]]
        for text in map(bench.source.facts.form.format, said):
            trace = bench.play(place, say(text))
            alone += [] if trace.error else [(place, text, trace.total)]
    order = bench.rng("batches").permutation(len(alone)).tolist()
    if not alone:
        raise Untold("every reply raises")
    # The completions of a prompt stand together, or shuffled; a last batch is filled up; as a
    # good policy replies.
    best = [one for one in alone if one[2] == max(earned for *_, earned in alone)]
    for batch in (alone, [alone[at] for at in order], [*alone[:3], *alone[-1:] * 4], best):
        try:
            paid = bench.source.batch([(place, text) for place, text, _ in batch])
        except SourceFailure:
            raise
        except Exception as error:
            paid = f"an error, {in_words(error)}"
        if words := _misscored(paid, batch):
            return CheckVerdict(False, words, example=f"{batch[0][0]} to {batch[-1][0]}")
    return CheckVerdict(True, f"{len(alone)} replies earn the same alone")


def _misscored(paid: Any, batch: Sequence[tuple[TaskPlace, str, float]]) -> str:
    """Return how the rewards of a batch differ from those of its replies alone; empty if not."""
    size, alone = len(batch), [one[2] for one in batch]
    if not isinstance(paid, list):
        return f"a batch of {size} replies earns {shorten(str(paid), 200)}, not a reward for each"
    if len(paid) != size:
        return f"a batch of {size} replies earns {len(paid)} reward{'s' * (len(paid) != 1)}"
    apart = [at for at, one in enumerate(paid) if not _same(plain_reward(one), alone[at])]
    if not apart:
        return ""
    if len({*map(repr, paid)}) == 1:
        mean = ", their mean," * _same(plain_reward(paid[0]), fmean(alone))
        return f"in a batch of {size} all replies earn the same,{mean.lstrip(',')} {paid[0]}"
    place, text, earned = batch[apart[0]]
    beside = shorten(ascii(text))
    return (
        f"in a batch of {size} {len(apart)} replies earn something else than alone: {beside} to "
        f"{place} earns {paid[apart[0]]}, alone {earned:g}"
    )


def _same(paid: float | str, alone: float) -> bool:
    return isinstance(paid, float) and abs(paid - alone) <= SLACK


@check("sound.ends", "sound", Severity.DEFECT, "play", "turns")
def ends(bench: Bench) -> CheckVerdict:
    """Every episode ends: by the right replies, and by any within the turns that it names."""
    turns, places = bench.source.facts.turns, bench.chosen[:3]
    right = [bench.play(place, bench.reference(place)) for place in bench.known(places)]
    wrong = [bench.play(place, bench.say(*bench.other(place))) for place in places]
    open_ended = turns >= MANY_TURNS
    for traces, severity in ((right, None), (wrong, Severity.PROPERTY if open_ended else None)):
        if endless := [trace for trace in traces if not (trace.done or trace.error)]:
            advice = ", the most that certify plays" if open_ended else ": end them"
            found = f"{len(endless)} of {len(traces)} do not end in {turns} replies{advice}"
            return CheckVerdict(False, found, example=shown(endless[0]), severity=severity)
    return CheckVerdict(True, "all end")


@check("semantic.oracle_max", "sound", Severity.DEFECT, "play", "references", "claims")
def oracle_max(bench: Bench) -> CheckVerdict:
    """The right reply earns what is claimed for it."""
    slack = SLACK + bench.source.facts.turns / 65536
    claimed = {at: bench.view(at).claim for at in bench.known([*bench.chosen, *bench.scored])}
    claims = {place: claim for place, claim in claimed.items() if claim is not None}
    traces = [bench.play(place, bench.reference(place)) for place in claims]
    short = [trace for trace in traces if not abs(trace.total - claims[trace.place]) <= slack]
    rate = share_estimate(len(short), len(traces))
    found = f"{len(short)} of {len(traces)} earn something else than is claimed"
    example = f"{shown(short[0])}, where {claims[short[0].place]:g} is claimed" if short else ""
    return CheckVerdict(not short, found, rate, example)


@check("sound.reply_time", "sound", Severity.RISK, "play")
def reply_time(bench: Bench) -> CheckVerdict:
    """A reply of up to 100 kB is scored within a second of processor time, in linear time."""
    place, form = bench.chosen[0], bench.source.facts.form.format
    bench.play(place, say(CANARIES[0]))  # the first reply pays for what is loaded late
    usual = [bench.play(at, say(reply)) for at in bench.chosen[:8] for reply in FIXED]
    units = [*bench.other(place)[:1], *TEXTS["repeated"]]
    middle = median(trace.slowest for trace in usual)
    try:
        for unit in filter(None, units):
            slow, words = _grows(bench, place, lambda size, unit=unit: form(_almost(unit, size)))  # type: ignore[misc]
            if slow:
                found = f"median {1e3 * middle:.2g} ms, but {words}"
                return CheckVerdict(False, found, example=shown(slow))
    except SourceFailure as failure:
        return CheckVerdict(False, str(failure))
    return CheckVerdict(True, f"median {1e3 * middle:.2g} ms, none is slow")


def _almost(unit: str, size: int) -> str:
    """Return a text that looks like an answer up to its last character."""
    return unit * (size // len(unit)) + "x"


def _grows(bench: Bench, place: TaskPlace, text: Callable[[int], str]) -> tuple[Trace | None, str]:
    """Return the first of growing replies that is slow, and how slow; nothing if none is."""

    def timed(size: int) -> Trace:
        traces = [bench.play(place, say(text(size)))]
        # Other work on the machine may have slowed it: the fastest of three counts.
        if traces[0].slowest > _WORTH:
            traces += [bench.play(place, say(text(size))) for _ in range(2)]
        return min(traces, key=lambda trace: trace.slowest)

    def steep(size: int) -> float:
        return _STEEP.get(size, math.inf) * max(before, _WORTH / 2)

    before, last = 0.0, 0
    for size in _SIZES:
        trace = timed(size)
        if trace.slowest > steep(size):  # the one before again, under the same load
            before = max(before, timed(last).slowest)
        if trace.slowest > min(_SLOW, steep(size)):
            found = f"{size:,} characters that almost match take {trace.slowest:.2g} s"
            return trace, found + f", {last:,} take {before:.2g} s"
        before, last = trace.slowest, size
    return None, ""


@check("sound.memory", "sound", Severity.DEFECT, "play")
def memory(bench: Bench) -> CheckVerdict:
    """Memory does not grow with the number of replies.

    Caches may fill in the first half of them.
    """
    most, place = bench.settings.replies // 2, bench.chosen[0]
    warm = _replies(bench.source, place, most, 0)
    before = bench.source.memory()
    if before is None:
        raise Inapplicable("the source has no process of its own, or the system does not say")
    played = _replies(bench.source, place, most, warm)
    grown = (bench.source.memory() or 0) - before
    found = f"memory grew by {grown / 2**20:.1f} MB, {grown / max(played, 1):,.0f} bytes a reply"
    leaks = grown > _LEAK and grown > played * _LEAK_OF_A_REPLY
    if leaks and warm < _FILLED:
        raise Untold(f"{found}, and {warm} replies before may not have filled its caches")
    return CheckVerdict(not leaks, found)


def _replies(source: Source, place: TaskPlace, count: int, first: int) -> int:
    """Play episodes of one 10 kB reply each for a while; returns how many replies there were."""
    watch = Stopwatch(source)
    for number in range(first, first + count):
        long = f"{number} " * 1700
        play(source, place, lambda text, turn, long=long: None if turn else long)  # type: ignore[misc]
        if watch.elapsed() > _PLAYING:
            return number + 1 - first
    return count
