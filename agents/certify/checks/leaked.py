"""Not leaked: prompts do not show the answer, and held-out Tasks are not those of training."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from tokengym.agents.certify.bench import Bench, Inapplicable, Untold
from tokengym.agents.certify.checks.gamed import at_most_half
from tokengym.agents.certify.finding import Severity, Verdict, check
from tokengym.agents.certify.source import Policy, say
from tokengym.rewards.estimates import mean_estimate, share_estimate

_CONTEXT = 12
"""Characters before the answer by which a rule finds it."""
_RULES = 20
"""Most rules that are tried."""
_FEW = 0.01
"""Share of repeated prompts that does not matter."""
_MANY = 0.1
_WRONG = "?"
_WORDS = re.compile(r"\w+")


@check("semantic.no_solution_leakage", "not leaked", Severity.RISK, "play", "references")
def no_solution_leakage(bench: Bench) -> Verdict:
    """No rule finds the answer in the prompt by the characters around it."""
    texts = [(bench.view(at).prompt, bench.view(at).reference[:1]) for at in bench.chosen]
    return _leak(bench, texts, first=0, where="prompts")


@check("leaked.observation", "not leaked", Severity.RISK, "play", "references", "turns")
def observation(bench: Bench) -> Verdict:
    """No rule finds the answer in what is said to a wrong first reply."""
    texts = []
    for place in bench.chosen:
        trace = bench.play(place, lambda text, turn: None if turn else _WRONG)
        answer = bench.view(place).reference
        texts.append((trace.texts[0] if trace.texts and not trace.done else "", answer[:2]))
    return _leak(bench, texts, first=1, where="answers to a wrong first reply")


def _leak(
    bench: Bench, texts: Sequence[tuple[str, Sequence[str]]], *, first: int, where: str
) -> Verdict:
    """Learn rules that extract references from texts on one half, and score them on the other."""
    rules: Counter[tuple[str, str]] = Counter()
    for text, answers in texts:
        bounded = [
            rf"(?<![^\W_]){re.escape(one)}(?![^\W_])" for one in map(str.strip, answers) if one
        ]
        matches = (match for pattern in bounded for match in re.finditer(pattern, text))
        rules.update({(text[: at.start()][-_CONTEXT:], text[at.end() :][:1]) for at in matches})
    usual = [rule for rule, times in rules.most_common(_RULES) if times > 1]
    done = f"looked for the references in the {where} of {len(texts)} Tasks"
    if not usual:
        return Verdict(True, done, "they stand there, if at all, in no place twice")
    policies = {f"what stands behind {rule[0]!r}": _extract(*rule, first) for rule in usual}
    blind = bench.best(policies)
    known = {at: (_WRONG,) * first + bench.view(at).reference[first:] for at in bench.scored}
    without = fmean(bench.earned(place, say(_WRONG)) for place in known)
    told = fmean(bench.earned(place, say(*replies)) for place, replies in known.items())
    if told <= without or bench.share([told]).value <= _MANY:
        return Verdict(True, done, "the answer would earn little there")
    shares = [(value - without) / (told - without) for value in blind.scored]
    share = mean_estimate(shares, (0.0, 1.0))
    found = f"{blind.name} earns {share} of what the answer earns there"
    return at_most_half(share, done, found, blind.example)


def _extract(before: str, behind: str, first: int) -> Policy:
    """Return the policy that replies with what stands between two texts, from a turn on."""
    end = re.escape(behind) if behind else r"\Z"
    pattern = re.compile(rf"{re.escape(before)}(.+?){end}", re.DOTALL)

    def reply(text: str, turn: int) -> str:
        match = pattern.search(text) if turn >= first else None
        return match[1] if match else _WRONG

    return reply


@check("leaked.repeated_prompts", "not leaked", Severity.PROPERTY)
def repeated_prompts(bench: Bench) -> Verdict:
    """Prompts seldom repeat within a split."""
    if bench.source.rollouts:
        groups = {rollout.group: rollout.prompt for rollout in bench.source.rollouts}
        prompts = [prompt for prompt in groups.values() if prompt]
    else:
        prompts = _prompts(bench)
    if not prompts:
        raise Untold("the records have no prompts")
    repeated = len(prompts) - len(set(prompts))
    rate = share_estimate(repeated, len(prompts))
    done = f"compared {len(prompts)} prompts"
    found = f"{repeated} occurred before"
    common, times = Counter(prompts).most_common(1)[0]
    example = f"{times} times: {common[:200]!r}" if times > 1 else ""
    return Verdict(rate.value <= _MANY, done, found, rate, example)


@check("leaked.splits", "not leaked", Severity.RISK, "splits")
def splits(bench: Bench) -> Verdict:
    """No prompt occurs in two splits."""
    return _across(bench, near=False)


@check("leaked.near_repeats", "not leaked", Severity.RISK)
def near_repeats(bench: Bench) -> Verdict:
    """No prompt occurs in two splits, or for two seeds, with other case, blanks or punctuation."""
    if not (bench.source.facts.splits or bench.source.facts.seeded):
        raise Inapplicable("the source has neither splits nor seeds that set Tasks apart")
    return _across(bench, near=True)


@check("leaked.seeds", "not leaked", Severity.RISK, "seeds")
def seeds(bench: Bench) -> Verdict:
    """Another seed gives other Tasks, not the same ones at other indices."""
    return _across_seeds(bench, near=False)


def _words(prompt: str) -> str:
    return " ".join(_WORDS.findall(prompt.casefold()))


def _prompts(bench: Bench, split: str | None = None, seed: int | None = None) -> list[str]:
    if recorded := dict.fromkeys(r.prompt for r in bench.source.rollouts if r.split == split):
        return list(recorded)
    places = bench.places(bench.settings.drawn, split, seed)
    return [bench.view(place).prompt for place in places]


def _across(bench: Bench, *, near: bool) -> Verdict:
    if not bench.source.facts.splits:
        return _across_seeds(bench, near=near)
    training, *others = bench.source.facts.splits
    held_out = [prompt for split in others for prompt in _prompts(bench, split)]
    where = f"{training} and {', '.join(others)}"
    return _shared(_prompts(bench, training), held_out, where, near=near)


def _across_seeds(bench: Bench, *, near: bool) -> Verdict:
    seed = bench.settings.seed
    first, second = (_prompts(bench, seed=number) for number in (seed + 1, seed + 2))
    verdict = _shared(first, second, f"seeds {seed + 1} and {seed + 2}", near=near)
    where = {prompt: index for index, prompt in enumerate(first)}
    shifts = Counter(where[prompt] - at for at, prompt in enumerate(second) if prompt in where)
    for shift, times in [] if verdict.passed else shifts.most_common(1):
        found = f"{verdict.found}; {times} of them stand {shift:+d} places away"
        return replace(verdict, found=found)
    return verdict


def _shared(first: Sequence[str], held_out: Sequence[str], where: str, *, near: bool) -> Verdict:
    """Count held-out prompts that occur in training: exactly, or only nearly.

    Raises:
        Untold: if prompts do not tell Tasks apart, as where what differs is hidden.
    """
    known = set(first)
    if not any(first) or len(known) <= len(first) / 2:
        raise Untold(f"{len(first)} Tasks of training have {len(known)} different prompts")
    again = [prompt for prompt in held_out if prompt in known]
    if near:
        words = set(map(_words, first))
        again = [p for p in held_out if p not in known and _words(p) in words]
    rate = share_estimate(len(again), len(held_out))
    done = f"compared prompts of {where}: {len(first)} and {len(held_out)}"
    what = "those of training but for case, blanks and punctuation" if near else "those of training"
    found = f"{len(again)} of {len(held_out)} held-out prompts are {what}"
    example = repr(again[0][:200]) if again else ""
    return Verdict(rate.low <= _FEW, done, found, rate, example)
