"""Not gamed: replies that do not solve the Task do not earn what a solution earns.

The best of several policies is chosen on one half of the Tasks and scored on the other, so that
luck in the choice does not count.
"""

import contextlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from tokengym.agents.certify.bench import CANARIES, NUMBER, TEXTS, Bench, Blind, Untold, shown
from tokengym.agents.certify.finding import CheckVerdict, Severity, check
from tokengym.agents.certify.source import Policy, TaskPlace, Trace, say
from tokengym.agents.certify.strategies import Strategy, StrategySpace, Trials, search_space
from tokengym.envs.core.display import shorten
from tokengym.rewards.estimates import Estimate, share_estimate

TENTH, HALF = 0.1, 0.5
"""Shares of what a solution earns: above them nonsense is paid, and any reply counts as gaming."""

OVERRIDES = tuple(TEXTS["overrides"])
"""Texts that tell a grader what to do, or that match anything."""
_SEVERAL = 8
_BLIND = ("play", "right answers")
_KNOWN = (*_BLIND, "references")
_NONSENSE = "semantic.canary_floor"
_CHEAPER = (
    *(_NONSENSE, "semantic.floor_gap", "gamed.echo", "gamed.fixed_reply"),
    *("gamed.prompt_numbers", "gamed.override"),
)
"""Checks of policies that need to know less: what they find is not found again by others."""
_JOINED: Mapping[str, str] = TEXTS["joined"]
_WITHIN = " within one form"


@check(_NONSENSE, "not gamed", Severity.RISK, "play")
def canary_floor(bench: Bench) -> CheckVerdict:
    """Nonsense earns far less than a solution."""
    policies = {f"always answering {canary!r}": say(canary) for canary in CANARIES}
    return _judged(bench, bench.best(policies), TENTH)


@check("semantic.floor_gap", "not gamed", Severity.RISK, "play", after=(_NONSENSE,))
def floor_gap(bench: Bench) -> CheckVerdict:
    """Doing nothing earns far less than a solution."""
    return _judged(bench, bench.best({"replying nothing": say("")}), TENTH)


@check("gamed.echo", "not gamed", Severity.RISK, "play", after=(_NONSENSE,))
def echo(bench: Bench) -> CheckVerdict:
    """Repeating the prompt earns far less than a solution."""
    return _judged(bench, bench.best(_ECHOES))


@check("gamed.fixed_reply", "not gamed", Severity.RISK, *_BLIND, after=(_NONSENSE,))
def fixed_reply(bench: Bench) -> CheckVerdict:
    """One reply to every Task earns far less than a solution."""
    policies = bench.fixed()
    return _judged(bench, bench.best(policies))


@check("gamed.prompt_numbers", "not gamed", Severity.RISK, *_BLIND, after=(_NONSENSE, "gamed.echo"))
def prompt_numbers(bench: Bench) -> CheckVerdict:
    """A number copied from the prompt by its place earns far less than a solution."""
    if not any(NUMBER.search(bench.view(place).prompt) for place in bench.chosen):
        raise Untold("no prompt has a number")
    policies = bench.formed(_NUMBERS)
    return _judged(bench, bench.best(policies))


@check("gamed.override", "not gamed", Severity.RISK, "play", after=(_NONSENSE,))
def override(bench: Bench) -> CheckVerdict:
    """Telling the grader what to do earns far less than a solution."""
    policies = {f"always answering {shorten(text)!r}": say(text) for text in OVERRIDES}
    return _judged(bench, bench.best(policies))


@check("gamed.other_reference", "not gamed", Severity.RISK, *_KNOWN, after=_CHEAPER)
def other_reference(bench: Bench) -> CheckVerdict:
    """The right reply to another Task earns far less than the right one."""
    blind = bench.once(_others)
    return _judged(bench, blind)


def _others(bench: Bench) -> Blind:
    places = [at for at in bench.scored if bench.other(at) != bench.view(at).reference]
    if len(places) < 2:
        raise Untold("all Tasks have the same reference")
    traces = [bench.play(place, bench.say(*bench.other(place))) for place in places]
    return bench.blind_of("giving the right reply to another Task", traces)


@check("gamed.several_answers", "not gamed", Severity.RISK, *_KNOWN, after=(_NONSENSE,))
def several_answers(bench: Bench) -> CheckVerdict:
    """Listing the right answer among others earns no more than half as much as giving it alone.

    Counted from what the reference of another Task earns: a grader that takes the last answer, or
    any one, pays that for most lists.
    """
    told = {at: bench.view(at).reference for at in bench.known(bench.chosen + bench.scored)}
    single = {at: said[0] for at, said in told.items() if len({*said}) == 1}
    known = [at for at in bench.scored if at in single]
    answers = {*single.values()}
    if len(answers) < _SEVERAL:
        raise Untold(f"{len(answers)} different answers that are one reply are too few")

    def listed(name: str, place: TaskPlace) -> Trace:
        rng, own = bench.rng("several", name, place), bench.view(place).reference[0]
        others = rng.choice(sorted(answers - {own}), _SEVERAL - 1, replace=False).tolist()
        # Each in the form that is read, or all of them in one: any of both may be paid.
        items = rng.permutation([own, *others]).tolist()
        form, joint = bench.source.facts.form.format, _JOINED[name.removesuffix(_WITHIN)]
        within = name.endswith(_WITHIN)
        said = form(joint.join(items)) if within else joint.join(map(form, items))
        return bench.play(place, say(said))

    formed = bench.source.facts.form != "{}"
    ways = [*_JOINED, *(f"{name}{_WITHIN}" for name in _JOINED if formed)]
    by = {name: [listed(name, at) for at in known] for name in ways}
    lists = [bench.blind_of(f"listing {_SEVERAL} answers by {name}", by[name]) for name in ways]
    best = max(lists, key=lambda blind: sum(blind.scored))
    wrong = bench.share(bench.once(_others).scored).value
    passed = bench.share(best.scored).low - wrong <= HALF * (1.0 - wrong)
    return replace(_judged(bench, best), passed=wrong >= 1.0 or passed)


@check("gamed.executes_reply", "not gamed", Severity.RISK, "play")
def executes_reply(bench: Bench) -> CheckVerdict:
    """A reply is not run as code where the grader runs."""
    with tempfile.TemporaryDirectory() as folder:
        sign = Path(folder) / "executed"
        touch = f"__import__('pathlib').Path({str(sign)!r}).touch()"
        said = (touch, f"```python\n{touch}\n```", f"$(touch {sign})", f"`touch {sign}`")
        for reply in said:
            trace = bench.play(bench.chosen[0], say(reply))
            if sign.exists():
                return CheckVerdict(False, "the grader ran the reply", example=shown(trace))
    return CheckVerdict(True, "no file was left")


@check(
    *("statistical.adversarial_floor", "not gamed", Severity.RISK, *_BLIND),
    after=(*_CHEAPER, "gamed.other_reference"),
)
def adversarial_floor(bench: Bench) -> CheckVerdict:
    """The best policy that a search finds without solving Tasks earns far less than a solution."""
    references = {place: bench.view(place).reference for place in bench.known(bench.chosen)}
    known = {str(place): said for place, said in references.items()} or {"no": ("",)}

    def playing(strategy: Strategy) -> Policy:
        plain: Policy = lambda text, turn: strategy.reply(text, turn, known)  # noqa: E731
        return bench.formed({"": plain})[""] if strategy.rule else plain

    space = StrategySpace.of([[bench.view(place).prompt] for place in bench.chosen], [known])
    trials = Trials[TaskPlace, Strategy](
        bench.chosen, lambda place, who: bench.earned(place, playing(who))
    )
    drawn = bench.settings.strategies
    best = search_space(trials, space, drawn, bench.rng("strategies")).who
    traces = [bench.play(place, playing(best)) for place in bench.scored]
    blind = bench.blind_of(str(best), traces)
    return _judged(bench, blind)


def _judged(bench: Bench, blind: Blind, least: float = HALF) -> CheckVerdict:
    """Judge a policy that solves nothing; between `least` and half, its pay is a property."""
    share, mean = bench.share(blind.scored), fmean(blind.scored)
    found = (
        f"{blind.name} earns {share.value:.0%} ({share.low:.0%} to {share.high:.0%}) of what a "
        f"solution earns, {mean:.3g} of {bench.top:.3g}"
    )
    verdict = at_most_half(share, found, blind.example)
    if not verdict.passed:
        return replace(verdict, found=f"{found}: pay it less")
    nonsense = least < HALF and share.value > least + wrong_share(bench)
    return replace(verdict, passed=False, severity=Severity.PROPERTY) if nonsense else verdict


def wrong_share(bench: Bench) -> float:
    """Return what any wrong answer earns, as for its form: that is not paid to nonsense."""
    if bench.known(bench.scored):
        with contextlib.suppress(Untold):
            return max(bench.share(bench.once(_others).scored).value, 0.0)
    return 0.0


def at_most_half(share: Estimate, found: str, example: str) -> CheckVerdict:
    """Judge a share of what a solution earns.

    Raises:
        Untold: if it is larger, but of so few Tasks that no share of them would show it.
    """
    if share.value > HALF >= share_estimate(share.samples, share.samples).low:
        raise Untold(f"{found}; {share.samples} Tasks are too few to tell")
    return CheckVerdict(share.low <= HALF, found, share, example)


_ECHOED = 10_000
"""Most characters that are repeated: games repeat earlier text, and would grow without bound."""
_ECHOES: Mapping[str, Policy] = {
    "repeating the whole prompt": lambda text, turn: text[:_ECHOED],
    "repeating the prompt's last line": lambda text, turn: (text.strip().splitlines() or [""])[-1],
    "repeating the prompt's first line": lambda text, turn: (text.strip().splitlines() or [""])[0],
    "repeating the prompt's last word": lambda text, turn: (text.split() or [""])[-1],
}


def _numbers(text: str) -> Sequence[str]:
    return NUMBER.findall(text) or ["0"]


_NUMBERS: Mapping[str, Policy] = {
    "copying the prompt's first number": lambda text, turn: _numbers(text)[0],
    "copying the prompt's second number": lambda text, turn: _numbers(text)[:2][-1],
    "copying the prompt's last number": lambda text, turn: _numbers(text)[-1],
    "copying the prompt's last number but one": lambda text, turn: _numbers(text)[-2:][0],
    "copying all numbers of the prompt": lambda text, turn: " ".join(_numbers(text)),
}
