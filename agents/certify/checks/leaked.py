"""Not leaked: prompts do not show the answer, and held-out Tasks are not those of training."""

import base64
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import log, sqrt
from statistics import fmean

from tokengym.agents.certify.bench import Bench, Untold
from tokengym.agents.certify.checks.gamed import at_most_half
from tokengym.agents.certify.finding import CheckVerdict, Severity, check
from tokengym.agents.certify.source import Policy, say
from tokengym.rewards.estimates import mean_estimate, share_estimate

_CONTEXTS = (12, 4)
"""Characters before the answer by which a rule finds it."""
_RULES = 20
"""Most rules that are tried."""
_FEW = 0.01
"""Share of repeated prompts that does not matter."""
_MANY = 0.1
_WRONG = "?"
_PROBES = 3
"""Most wrong replies after which hints are looked for."""
_ALIKE = 0.8
"""Likeness from which two prompts with the same answer ask the same in other words."""


def _from_base64(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except ValueError:
        return _WRONG


def _backwards(text: str) -> str:
    return text[::-1]


_CODES: Mapping[str, tuple[Callable[[str], str], Callable[[str], str]]] = {
    "": (str, str),
    ", read backwards": (_backwards, _backwards),
    ", read as base64": (lambda text: base64.b64encode(text.encode()).decode(), _from_base64),
}
"""How an answer may be hidden, and how it is read again."""
_WORDS = re.compile(r"\w+")


@check("semantic.no_solution_leakage", "not leaked", Severity.RISK, "play", "references")
def no_solution_leakage(bench: Bench) -> CheckVerdict:
    """No rule finds the answer in the prompt by the characters around it."""
    texts = [(bench.view(at).prompt, bench.view(at).reference[:1]) for at in bench.chosen]
    return _leak(bench, texts, first=0, where="prompts")


@check("leaked.observation", "not leaked", Severity.RISK, "play", "references", "turns")
def observation(bench: Bench) -> CheckVerdict:
    """No rule finds the answer in the turns that follow wrong first replies."""
    another = bench.source.facts.form.format(bench.other(bench.scored[0])[0])
    verdict = CheckVerdict(True, "")
    # A hint may follow any reply, one that could be right, or several.
    for wrong, first in product((_WRONG, another), range(1, bench.source.facts.turns)[:_PROBES]):
        texts = []
        for place in bench.chosen:
            trace = bench.play(place, _always(wrong, first))
            shown = "".join(trace.texts[-1:]) * (not trace.done)
            texts.append((shown, bench.view(place).reference))
        where = f"answers to {first} wrong repl{'ies' if first > 1 else 'y'}"
        verdict = _leak(bench, texts, first=first, where=where, wrong=wrong)
        if not verdict.passed:
            break
    return verdict


def _always(reply: str, turns: int) -> Policy:
    return lambda text, turn: reply if turn < turns else None


def _leak(
    bench: Bench,
    texts: Sequence[tuple[str, Sequence[str]]],
    *,
    first: int,
    where: str,
    wrong: str = _WRONG,
) -> CheckVerdict:
    """Learn rules that extract references from texts on one half, and score them on the other."""
    rules: Counter[tuple[str, str, str]] = Counter()
    for text, answers in texts:
        hidden = {
            (code, encode(one))
            for one in map(str.strip, answers)
            for code, (encode, _) in _CODES.items()
            if one and (not code or encode(one) != one)
        }
        seen = set[tuple[str, str, str]]()
        for code, words in hidden:
            for at in re.finditer(rf"(?<![^\W_]){re.escape(words)}(?![^\W_])", text):
                before, after = text[: at.start()], text[at.end() :][:1]
                seen |= {(before[-context:], after, code) for context in _CONTEXTS}
        rules.update(seen)
    usual = [rule for rule, times in rules.most_common(_RULES) if times > 1]
    if not usual:
        return CheckVerdict(True, "they stand there, if at all, in no place twice")
    policies = {
        f"copying what stands behind {rule[0]!r}{rule[2]}": _extract(*rule, first, wrong)
        for rule in usual
    }
    blind = bench.best(bench.formed(policies))
    without = fmean(bench.earned(place, say(wrong)) for place in bench.scored)
    said = (wrong,) * first
    # Either each turn has an answer of its own, or the same ones are right later too.
    told = without
    for turn in (first, 0):
        replies = ((*said, *bench.view(at).reference[turn:]) for at in bench.scored)
        several = zip(bench.scored, replies, strict=True)
        told = max(told, fmean(bench.earned(at, bench.say(*one)) for at, one in several))
    if told <= without or bench.share([told]).value <= _MANY:
        return CheckVerdict(True, "the answer would earn little there")
    shares = [(value - without) / (told - without) for value in blind.scored]
    share = mean_estimate(shares, (0.0, 1.0))
    found = f"{blind.name} earns {share} of what the answer earns there"
    return at_most_half(share, found, blind.example)


def _extract(before: str, behind: str, code: str, first: int, wrong: str) -> Policy:
    """Return the policy that replies with what stands between two texts, from a turn on."""
    end = re.escape(behind) if behind else r"\Z"
    pattern = re.compile(rf"{re.escape(before)}(.+?){end}", re.DOTALL)

    seen = ""

    def reply(text: str, turn: int) -> str:
        nonlocal seen
        match = pattern.search(text) if turn >= first else None
        # Text that was shown once is known in later turns.
        seen = match[1] if match else seen if turn > first else ""
        return _CODES[code][1](seen) if seen else wrong

    return reply


@check("leaked.repeated_prompts", "not leaked", Severity.PROPERTY)
def repeated_prompts(bench: Bench) -> CheckVerdict:
    """Prompts seldom repeat within a split."""
    if bench.source.rollouts:
        groups = {rollout.group: rollout.prompt for rollout in bench.source.rollouts}
        prompts = [prompt for prompt in groups.values() if prompt]
    else:
        prompts = [prompt for prompt, _ in _asked(bench)]
    if not prompts:
        raise Untold("the records have no prompts")
    repeated = len(prompts) - len(set(prompts))
    rate = share_estimate(repeated, len(prompts))
    found = f"{repeated} of {len(prompts)} occurred before"
    common, times = Counter(prompts).most_common(1)[0]
    example = f"{times} times: {common[:200]!r}" if times > 1 else ""
    return CheckVerdict(rate.value <= _MANY, found, rate, example)


@check("leaked.splits", "not leaked", Severity.RISK, "splits")
def splits(bench: Bench) -> CheckVerdict:
    """No prompt occurs in two splits, not in other case, order or words either."""
    training, *others = bench.source.facts.splits
    held_out = [one for split in others for one in _asked(bench, split)]
    return _shared(_asked(bench, training), held_out, f"{training} and {', '.join(others)}")


@check("leaked.seeds", "not leaked", Severity.RISK, "seeds")
def seeds(bench: Bench) -> CheckVerdict:
    """Another seed gives other Tasks, not the same ones at other indices or in other words."""
    seed = bench.settings.seed
    first, second = (_asked(bench, seed=number) for number in (seed + 1, seed + 2))
    verdict = _shared(first, second, f"seeds {seed + 1} and {seed + 2}")
    where = {prompt: index for index, (prompt, _) in enumerate(first)}
    shifts = Counter(where[prompt] - at for at, (prompt, _) in enumerate(second) if prompt in where)
    for shift, times in [] if verdict.passed else shifts.most_common(1):
        found = f"{verdict.found}; {times} of them stand {shift:+d} places away"
        return replace(verdict, found=found)
    return verdict


Asked = tuple[str, tuple[str, ...]]
"""A prompt with its right answer."""


def _alike(asked: Asked) -> set[tuple[str, ...]]:
    """Return what a prompt has in common with others that ask the same."""
    prompt, answer = asked
    words = _WORDS.findall(prompt.casefold())
    swapped = {("swapped", *sorted(words), *answer)} if answer else set()
    return {tuple(words)} | swapped


def _asked(bench: Bench, split: str | None = None, seed: int | None = None) -> list[Asked]:
    if recorded := dict.fromkeys(r.prompt for r in bench.source.rollouts if r.split == split):
        return [(prompt, ()) for prompt in recorded]
    views = map(bench.view, bench.places(bench.settings.drawn, split, seed))
    return [(view.prompt, view.reference) for view in views]


def _shared(first: Sequence[Asked], held_out: Sequence[Asked], where: str) -> CheckVerdict:
    """Count held-out prompts that occur in training: exactly, or if they are few, nearly.

    Raises:
        Untold: if prompts do not tell Tasks apart, as where what differs is hidden.
    """
    known, alike = {prompt for prompt, _ in first}, set().union(*map(_alike, first))
    if not any(known) or len(known) <= len(first) / 2:
        raise Untold(f"{len(first)} Tasks of training have {len(known)} different prompts")

    def judged(again: Sequence[str], how: str) -> CheckVerdict:
        rate = share_estimate(len(again), len(held_out))
        found = f"{len(again)} of {len(held_out)} held-out prompts of {where} are training's{how}"
        example = repr(again[0][:200]) if again else ""
        return CheckVerdict(rate.low <= _FEW, found, rate, example)

    exact = judged([prompt for prompt, _ in held_out if prompt in known], "")
    if not exact.passed:
        return exact
    near = [one[0] for one in held_out if one[0] not in known and _alike(one) & alike]
    nearly = judged(near or _paraphrases(first, held_out), " in other words, blanks or order")
    return exact if nearly.passed else nearly


def _paraphrases(first: Sequence[Asked], held_out: Sequence[Asked]) -> list[str]:
    """Return held-out prompts that training asks in other words, if they are more than by chance.

    Two prompts ask the same if their answer is the same and they share the words that are rare.
    Similar prompts within training show how many are alike by chance.
    """
    asked = (*first, *held_out)
    bags = [({*_WORDS.findall(prompt.casefold())}, answer) for prompt, answer in asked]
    times = Counter(word for words, _ in bags for word in words)
    weights = {word: log(len(bags) / count) ** 2 for word, count in times.items()}
    sizes = [sqrt(sum(map(weights.__getitem__, words))) for words, _ in bags]
    same: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for at, (_, answer) in enumerate(bags[: len(first)]):
        same[answer].append(at)

    def alike(at: int, other: int) -> float:
        shared = sum(weights[word] for word in bags[at][0] & bags[other][0])
        return shared - _ALIKE * sizes[at] * sizes[other]

    def twin(at: int) -> bool:
        answer = bags[at][1]
        return any(one != at and alike(at, one) > 0.0 for one in same[answer] * bool(answer))

    found = [at for at in range(len(first), len(bags)) if twin(at)]
    usual = share_estimate(sum(map(twin, range(len(first)))), len(first))
    often = share_estimate(len(found), len(held_out)).low > usual.high
    return [held_out[at - len(first)][0] for at in found if often]
