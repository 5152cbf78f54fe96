"""Short texts, for tiny models trained on them."""

import numpy as np

from tokengym.envs.core.seeding import generator
from tokengym.envs.disruption.evidence import KINDS, PERIODS, Evidence
from tokengym.envs.disruption.grammar import NO_LABEL, Argument
from tokengym.envs.disruption.labels import LABELS
from tokengym.envs.disruption.texts import Case, Writer, describe, examples, record

_CITERS_RULE = "n_i cite it alone, n_j it and its references, n_k its references alone."
_CD = "After 5 years, is CD = (n_i - n_j)/(n_i + n_j + n_k)"
_DISRUPTION = {
    "threshold": f"{_CD} above 0.1: disruptive, below -0.1: consolidating, else neutral?",
    "percentile": (
        f"{_CD} among the highest of its field and year: disruptive, among the lowest: "
        "consolidating, else neutral?"
    ),
}
_NOVELTY = (
    "Its pairs of cited venues: some atypical and the median low: novel, some atypical and "
    "the median high: balanced, else conventional?"
)

_AIMS = {"adversary": "Argue for another label", "critic": "Help it"}


def _opening(case: Case) -> str:
    order = ", ".join(word for target in case.targets for word in LABELS[target])
    # Before the rules: a tiny model that reads them last keeps the form of an answer.
    lines = [*describe(case.evidence, _cited), *(_noted(case.evidence) if case.debated else ())]
    if "disruption" in case.targets:
        lines += [_CITERS_RULE, _DISRUPTION[case.evidence.rule]]
    if "novelty" in case.targets:
        lines.append(_NOVELTY)
    if case.evidence.examples:
        lines += ["Others of its literature:", *examples(case)]
    lines.append(f"Answer in lines, P for {order}, like\n{_made_up(case)[0]}")
    lines.append(f"then up to 3 true claims: {_claims(case.evidence)}")
    if case.debated:
        lines.append("A challenger will reply; then answer again.")
    return "\n".join(lines)


def _challenge(case: Case, answer: str) -> str:
    shared, period = bool(case.evidence.notes), PERIODS[case.evidence.noted_features]
    return "\n".join(
        [
            *describe(case.evidence.noted, _cited),
            *([f"The predictor was not shown the {period}: state a count."] * shared),
            *(["Its notes on others:", *record(case.evidence)] * shared),
            f"A predictor answered:\n{answer}",
            f"{_AIMS[case.aim]}; a false claim costs you. Answer in lines, like",
            _made_up(case)[1],
            f"(or {NO_LABEL}), then up to 2 claims: {_claims(case.evidence.noted)}",
        ]
    )


def _rejoinder(case: Case, argument: Argument) -> str:
    claims = " and ".join(claim.statement for claim in argument.claims)
    if argument.label is None:
        return f"Challenger: are you sure?{f' {claims}.' if claims else ''}\nFinal answer?"
    reason = f", since {claims}" if claims else ""
    return f"Challenger: {argument.label}{reason}.\nFinal answer?"


def _cited(count: int, above: int | None) -> str:
    return f"Cited {count}" if above is None else f"Cited {count}, above {above} %"


def _noted(evidence: Evidence) -> list[str]:
    """Say what a challenger with notes may be, and what it noted of earlier papers."""
    if not evidence.notes:
        return []
    kinds = ", ".join(f"{count} {kind}" for kind, count in KINDS.items())
    about = f"A challenger ({kinds} with columns in a wrong order) noted the "
    return [f"{about}{PERIODS[evidence.noted_features]}s of others:", *record(evidence)]


def _claims(evidence: Evidence) -> str:
    quote = 'QUOTE "up to 8 words"'
    return f"CLAIM name >= number (or <=, =), {quote}" if evidence.facts else quote


def _made_up(case: Case) -> tuple[str, str]:
    """Return an answer and an argument that differ from Task to Task and ignore the paper."""
    rng = generator("disruption example", case.fingerprint)
    words, numbers = [], []
    for target in case.targets:
        place = int(rng.integers(3))
        words.append(LABELS[target][place])
        numbers += _tenths(rng, place)
    label = LABELS[case.targets[0]][int(rng.integers(3))]
    return f"LABEL {' '.join(words)}\nP {' '.join(numbers)}", f"ARGUE {label}"


def _tenths(rng: np.random.Generator, place: int) -> list[str]:
    """Draw three probabilities in tenths, the largest at `place`."""
    most = int(rng.integers(5, 9))
    second = int(rng.integers(1, 10 - most))
    others = [second, 10 - most - second]
    shares = [most if k == place else others.pop() for k in range(3)]
    return [f"0.{share}" for share in shares]


TERSE = Writer(_opening, _challenge, _rejoinder)
