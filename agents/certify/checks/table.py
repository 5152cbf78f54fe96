"""Judged over the table of every reply that was played: ranges, claims, and pay for no answer."""

import contextlib
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean

from tokengym.agents.certify import variations
from tokengym.agents.certify.bench import (
    FIXED,
    NUMBER,
    TEXTS,
    Bench,
    Inapplicable,
    PlayedReply,
    Untold,
    shown,
    unlikely,
)
from tokengym.agents.certify.checks.fair import MATTERS
from tokengym.agents.certify.checks.gamed import HALF, TENTH, wrong_share
from tokengym.agents.certify.checks.sound import SLACK, compare, hostile, planned, repeated, steady
from tokengym.agents.certify.finding import CheckVerdict, Severity, check
from tokengym.agents.certify.source import (
    Policy,
    SourceFailure,
    TaskPlace,
    Trace,
    play,
    play_together,
    playing,
    say,
)
from tokengym.envs.core.display import shorten
from tokengym.envs.core.odd_replies import HOSTILE
from tokengym.rewards.estimates import share_estimate

_PLACES, _FEW_PLACES = 6, 2
"""Tasks on which each odd reply is played, and each that is long."""
_LONG = 4000
_EXPRESSION = re.compile(r"[\d(][\d\s().]*(?:[-+*/^\u00d7\u00f7][\d\s().]*)+[\d)]", re.ASCII)
_WORD = re.compile(r"[^\W_]+(?:[.'][^\W_]+)*")
_LIST = "a list of many answers"

_LONG_TEXTS = {
    "one letter 100,000 times": "a" * 100_000,
    "a digit 10,000 times": "7" * 10_000,
    "a word 2,000 times": "well " * 2000,
    "a sentence 200 times": "Let me think about this once more, step by step. " * 200,
    "10,000 empty lines": "\n" * 10_000,
    _LIST: " ".join(map(str, range(1, 1001))),
    "many choices": "A, B, C, D, E, yes, no, true, false",
}
ODD: Mapping[str, str] = {
    **{f"the text {shorten(ascii(text))}": text for text in (*TEXTS["odd"], *TEXTS["overrides"])},
    **{f"the text {shorten(ascii(text))}": text for text in HOSTILE if len(text) < _LONG},
    **_LONG_TEXTS,
}
"""Replies that answer nothing, by what they are."""
_MADE: Mapping[str, Callable[[str], str]] = {
    "the prompt's own expression": lambda prompt: "".join(_EXPRESSION.findall(prompt)[-1:]),
    "the prompt's first words": lambda prompt: " ".join(prompt.split()[:6]),
    "the prompt twice": lambda prompt: f"{prompt}\n{prompt}"[:_LONG],
}
"""Replies made of the prompt."""


def _odd(bench: Bench) -> dict[str, list[Trace]]:
    """Play replies that answer nothing, several of each; as `hostile`, likely ones first."""
    played = defaultdict(list)
    form = bench.source.facts.form.format
    for number, place in enumerate(bench.chosen[:_PLACES]):
        prompt = bench.view(place).prompt
        made = {name: form(said) for name, make in _MADE.items() if (said := make(prompt))}
        for name, text in sorted({**ODD, **made}.items(), key=lambda pair: unlikely(pair[1])):
            if len(text) < _LONG or number < _FEW_PLACES:
                played[name].append(bench.play(place, say(text)))
    return played


_PAID = ("semantic.canary_floor", "gamed.override", "gamed.echo", "gamed.other_reference")
"""Checks whose failure leaves nothing to say of single replies, and of wrong answers."""


@check("gamed.odd_replies", "not gamed", Severity.RISK, "play", after=_PAID[:3])
def odd_replies(bench: Bench) -> CheckVerdict:
    """No reply without an answer earns a tenth of what a solution does more than nonsense."""
    texts, places = ("", *TEXTS["canaries"]), bench.chosen[:_PLACES]
    base = {place: min(bench.earned(place, say(text)) for text in texts) for place in places}
    odd, usual = bench.once(_odd), TENTH + wrong_share(bench)
    paid: dict[str, list[float]] = {}
    best: dict[str, Trace] = {}
    for name, traces in odd.items():
        more = ((trace, bench.paid(trace) - max(base[trace.place], bench.low)) for trace in traces)
        leads = {trace: lead / bench.reach for trace, lead in more}
        over = {trace: lead for trace, lead in leads.items() if lead > usual}
        told = {trace for trace in over if _is_answer(bench, trace, over[trace])}
        paid[name] = [0.0 if trace in told else lead for trace, lead in leads.items()]
        if mine := [trace for trace in over if trace not in told]:
            best[name] = max(mine, key=lambda trace: over[trace])
    found = {name: fmean(leads) for name, leads in paid.items() if name in best}
    most = sorted((name for name in found if found[name] > usual), key=lambda n: -found[n])
    if not most:
        return CheckVerdict(True, "none is paid")
    also = f", and {len(most) - 1} more" if len(most) > 1 else ""
    words = f"{most[0]} earns {found[most[0]]:.0%} of what a solution does{also}: pay it nothing"
    return CheckVerdict(False, words, example=shown(best[most[0]]))


def _is_answer(bench: Bench, trace: Trace, lead: float) -> bool:
    """Return whether an answer that a text begins or ends with, or names, earns as much alone."""
    text = trace.replies[0]
    ends = [NUMBER.findall(text[:_LONG]), _WORD.findall(text[:_LONG])]
    named = {one for found in ends for one in (*found[:1], *found[-1:])}
    if len(_WORD.findall(text[:_LONG])) < 30:  # not so a list of many
        named |= {one for one in FIXED if one in _WORD.findall(text)}
    if bench.kind == "proper_score" and any(map(str.isdigit, text)):
        named |= {"0", "0.5", "1"}  # whatever number is read in it: cautious ones are paid
    base = bench.low + (lead - TENTH) * bench.reach
    return any(bench.earned(trace.place, bench.say(one)) >= base for one in sorted(named))


@check(
    *("gamed.wrong_accepted", "not gamed", Severity.RISK, "play", "references", "right answers"),
    after=(_PAID[0], _PAID[3]),
)
def wrong_accepted(bench: Bench) -> CheckVerdict:
    """Answers that are nearly right do not earn what the right one does."""

    def accepted(answer: str, text: str, short: float) -> bool:
        # A graded score may be near the best near the answer, or for most parts of it.
        graded = short > 1e-9 and (_near(answer, text) or not NUMBER.fullmatch(answer))
        return short < MATTERS and not graded

    tolerance = bench.source.facts.tolerance
    verdict, kinds, trace = _varied(bench, partial(variations.wrong, tolerance=tolerance), accepted)
    found = f"{verdict.found} earn what the right one does"
    if trace:
        known = bench.view(trace.place).reference[-1]
        found += f": {', '.join(kinds)}; {shorten(ascii(trace.replies[0]))} is paid for {known!r}"
    severity = Severity.PROPERTY if kinds == [variations.SWAPPED] else None
    return replace(verdict, found=found, severity=severity)


@check("fair.right_refused", "fair", Severity.PROPERTY, "play", "references")
def right_refused(bench: Bench) -> CheckVerdict:
    """A right answer earns the same however it is written."""
    verdict, kinds, _ = _varied(bench, variations.same, lambda *said: said[2] > MATTERS)
    found = f"{verdict.found} lose reward" + f": {', '.join(kinds)}" * bool(kinds)
    return replace(verdict, found=found)


def _varied(
    bench: Bench,
    ways: Callable[[str], Mapping[str, str]],
    fails: Callable[[str, str, float], bool],
) -> tuple[CheckVerdict, list[str], Trace | None]:
    """Play answers made of right ones; `fails` gets both, and what is lost as a share of the range.

    Returns:
        a verdict on how many fail, the ways that often do, and the shortest example.

    Raises:
        Untold: if nothing could be made of them.
    """
    failed: dict[str, list[Trace]] = defaultdict(list)
    tried: dict[str, int] = defaultdict(int)
    for place, answer, right in _answers(bench):
        for how, text in ways(answer).items():
            said = [text] * len(bench.view(place).reference)
            trace = bench.play(place, bench.say(*said))
            tried[how] += 1
            if fails(answer, text, (right - bench.paid(trace)) / bench.reach):
                failed[how].append(trace)
    kinds = [how for how, traces in failed.items() if len(traces) > TENTH * tried[how]]
    count, total = sum(map(len, failed.values())), sum(tried.values())
    if not total:
        raise Untold("of no right answer another one can be made")
    short = min(failed[kinds[0]], key=lambda one: len(one.replies[0])) if kinds else None
    rate, example = share_estimate(count, total), shown(short) if short else ""
    return CheckVerdict(not kinds, f"{count} of {total}", rate, example), kinds, short


def _answers(bench: Bench) -> Iterator[tuple[TaskPlace, str, float]]:
    """Yield Tasks whose right answer is paid, with it and what it earns.

    Raises:
        Untold: if there is none.
    """
    places = [at for at in bench.known(bench.chosen) if len({*bench.view(at).reference}) == 1]
    paid = {place: bench.earned(place, bench.reference(place)) for place in places}
    least = bench.low + MATTERS * bench.reach
    right = [place for place in places if paid[place] > least]
    if not right:
        raise Untold("no Task has one right answer in all turns that is paid")
    for place in right:
        yield place, bench.view(place).reference[-1], paid[place]


def _near(answer: str, text: str) -> bool:
    try:
        right, other = float(answer.replace(",", "")), float(text)
    except ValueError:
        return False
    return abs(other - right) <= 0.1 * max(abs(right), 10.0)


def _everything(bench: Bench) -> SourceFailure | None:
    """Play what is judged below where no other check has; returns how the environment failed."""
    try:
        for play_all in (_odd, hostile, repeated):
            bench.once(play_all)
    except SourceFailure as failure:
        return failure
    return None


@check("sound.no_reply_raises", "sound", Severity.DEFECT, "play", last=True)
def no_reply_raises(bench: Bench) -> CheckVerdict:
    """No reply raises an error: a model's bad reply is data."""
    return _judge(bench, _raised) or CheckVerdict(True, "none raised")


def _raised(row: PlayedReply) -> str:
    trace = row.trace
    return f"it raised {trace.error}" if len(trace.rewards) < len(trace.replies) else ""


_REPLAYED = 150
"""Episodes that are replayed in another process, of all that were played."""
_AHEAD = (7 * 3600.0, 15 * 3600.0, (400 * 24 + 11) * 3600.0)
"""Seconds by which its clock goes ahead: other hours, another weekday, month and year."""


def _quick(bench: Bench) -> Iterator[Trace]:
    """Yield episodes that no time limit of a grader's own can have cut, and that were scored."""
    traces = (row.trace for row in bench.table if not row.unlikely)
    return (trace for trace in traces if not trace.error and trace.slowest <= HALF)


def _again(trace: Trace) -> Policy:
    """Return the policy that repeats what was replied, and then ends the episode."""
    said = trace.replies
    return lambda text, turn: said[turn] if turn < len(said) else None


@check("runtime.episode_isolation", "sound", Severity.DEFECT, "play", "repeats", last=True)
def episode_isolation(bench: Bench) -> CheckVerdict:
    """An episode is the same whatever was played before it or is under way beside it."""
    alone, plans = steady(bench), planned(bench)
    _everything(bench)
    backwards = [bench.play(place, who) for place, who in reversed(plans)][::-1]
    seen: dict[tuple[object, ...], Trace] = {}
    for trace in _quick(bench):
        first = seen.setdefault((trace.place, trace.replies, trace.done), trace)
        if repr(first.rewards) != repr(trace.rewards):
            bench.broken.append("runtime.episode_isolation")
            example = shown(first)
            why = f"{example}, and then {trace.total:g}{_depends(bench, first)}"
            return CheckVerdict(False, why, example=example)
    beside = [playing(bench.source, *plan) for plan in plans[: bench.source.facts.sessions]]
    together = play_together(beside)
    verdict = compare(alone, backwards)
    return compare(alone, together) if verdict.passed else verdict


@check("semantic.replayability", "sound", Severity.DEFECT, "play", "repeats", last=True)
def replayability(bench: Bench) -> CheckVerdict:
    """Recorded replies earn the same in another process, at another time."""
    alone = steady(bench)
    _everything(bench)
    try:
        other = bench.source.fresh(ahead=0.0)
    except SourceFailure as failure:  # it opened before, as on a machine that is busy by now
        raise Untold(str(failure)) from failure
    if other is None:
        raise Inapplicable("the source has no process of its own")
    apt = [*{(trace.place, trace.replies): trace for trace in _quick(bench)}.values()]
    drawn = bench.rng("replayed").permutation(len(apt))[:_REPLAYED].tolist()
    try:
        verdict = compare(alone, [play(other, *plan) for plan in planned(bench)])
        for number, trace in enumerate(apt[at] for at in drawn) if verdict.passed else ():
            bench.require_time()
            other.ahead = _AHEAD[number % len(_AHEAD)]
            again = play(other, trace.place, _again(trace))
            differs = compare([trace], [again], ["rewards"])
            if not (again.error or differs.passed):
                return replace(differs, found=differs.found + _depends(bench, trace))
        return verdict
    finally:
        other.close()


def _depends(bench: Bench, trace: Trace) -> str:
    """Return on what the reward of a reply depends, as processes of their own show."""

    def paid(hashes: int, *clocks: float) -> set[str]:
        other = bench.source.fresh(hashes=hashes, ahead=0.0)
        if other is None:
            raise Inapplicable
        try:
            earned = set()
            for other.ahead in clocks:
                earned.add(repr(play(other, trace.place, _again(trace)).rewards))
            return earned
        finally:
            other.close()

    with contextlib.suppress(SourceFailure, Inapplicable):
        first = paid(0, 0.0)
        if paid(0, 0.0) != first:
            return ": it depends on chance, or on the second"
        if paid(0, *_AHEAD) != first:
            return ": it depends on the clock"
        if any(paid(seed, 0.0) != first for seed in range(1, 5)):
            return ": it depends on PYTHONHASHSEED"
        return ": it depends on what was replied before"
    return ""


@check("runtime.reward_well_formed", "sound", Severity.DEFECT, last=True)
def reward_well_formed(bench: Bench) -> CheckVerdict:
    """Every reward is a finite number, and returns lie in the range that is declared."""
    low, high = bench.source.facts.declared or (-math.inf, math.inf)
    if rollouts := bench.source.rollouts:
        for one in rollouts:
            if words := _misshapen([one.reward], low, high):
                example = f"group {one.group}: {shorten(ascii(one.reply))}"
                return CheckVerdict(False, words, example=example)
        return CheckVerdict(True, f"all {len(rollouts)} are finite")
    found = _judge(bench, lambda row: _bad_reward(row.trace, low, high))
    if found:
        return found
    totals = [row.trace.total for row in bench.table if not row.trace.error]
    if not totals:
        raise Untold("no reply was scored")
    words = f"all {len(totals)} returns are finite, from {min(totals):g} to {max(totals):g}"
    declared = "" if bench.source.facts.declared else "; no range is declared"
    return CheckVerdict(True, words + declared)


def _bad_reward(trace: Trace, low: float, high: float) -> str:
    total = [trace.total] if trace.done and not trace.error else []
    # A step may earn less than any return, such as the price of a look.
    return _misshapen(trace.rewards, -math.inf, math.inf) or _misshapen(total, low, high)


def _misshapen(rewards: Sequence[object], low: float, high: float) -> str:
    for value in rewards:
        if not isinstance(value, int | float) or not math.isfinite(value):
            return f"a reward is {value}"
        if not low - SLACK <= value <= high + SLACK:
            return f"{value:g} is outside of the declared {low:g} to {high:g}"
    return ""


@check("sound.claim_unbeaten", "sound", Severity.DEFECT, "play", "claims", last=True)
def claim_unbeaten(bench: Bench) -> CheckVerdict:
    """No reply earns more than what is claimed to be the most."""
    claims = {place: bench.view(place).claim for place in (*bench.chosen, *bench.scored)}
    turns = bench.source.facts.turns

    def beaten(row: PlayedReply) -> str:
        trace, claim = row.trace, claims.get(row.trace.place)
        if claim is None or not trace.total > claim + SLACK + len(trace.replies) / 65536:
            return ""
        # Where each step costs, whoever stops before the end has paid less than who arrives.
        if not trace.done and len(trace.replies) < turns:
            return ""
        return f"a reply earns {trace.total:g} where {claim:g} is claimed to be the most"

    found = _judge(bench, beaten)
    return found or CheckVerdict(True, "none earns more")


@check("sound.global_random", "sound", Severity.RISK, "play")
def global_random(bench: Bench) -> CheckVerdict:
    """Scoring a reply does not seed the global generators of random numbers."""
    traces, seen = [], dict[int, TaskPlace]()
    for place in bench.chosen[:4]:
        for answers in (bench.view(place).reference, bench.other(place)):
            bench.source.draw_random()
            traces.append(bench.play(place, bench.say(*answers)))
    for trace in traces:
        if any(seen.setdefault(state, trace.place) != trace.place for state in trace.states):
            found = "they are in the same state after replies to different Tasks"
            found += ": use a generator of your own"
            return CheckVerdict(False, found, example=shown(trace))
    return CheckVerdict(True, "none is seeded")


def _judge(bench: Bench, broken: Callable[[PlayedReply], str]) -> CheckVerdict | None:
    """Return the first failure in the table, one that a model's reply is likely to bring first.

    Raises:
        SourceFailure: if the environment failed while it was filled, and nothing else is found.
    """
    failure = _everything(bench)
    bad = [(row, words) for row in bench.table if (words := broken(row))]
    if not bad:
        if failure:
            raise failure
        return None
    row, words = min(bad, key=lambda pair: pair[0].unlikely)
    own = ("gamed.odd_replies", "sound.no_reply_raises", "semantic.verifier_determinism")
    severity = Severity.FRAGILE if row.unlikely else None
    by = "" if row.check in own else row.check
    example = shown(row.trace)
    return CheckVerdict(False, words, example=example, severity=severity, played_by=by)
