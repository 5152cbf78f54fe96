"""The texts that the roles read: functions of the evidence and of the replies, nothing else."""

from collections.abc import Sequence

from tokengym.envs.disruption.evidence import CITER_FEATURES, REFERENCE_FEATURES, Evidence
from tokengym.envs.disruption.grammar import Answer, Argument
from tokengym.envs.disruption.labels import LABELS, Target

_EXAMPLES = {"disruption": ("neutral", "0.2 0.3 0.5"), "novelty": ("novel", "0.5 0.3 0.2")}
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


def answer_form(targets: Sequence[Target]) -> str:
    """An example of the two lines every answer must have."""
    words, numbers = zip(*(_EXAMPLES[target] for target in targets), strict=True)
    return f"LABEL {' '.join(words)}\nP {' '.join(numbers)}"


def describe(evidence: Evidence) -> str:
    """The paper as a tier shows it."""
    lines = [f"Paper ({evidence.field}, {evidence.year}): {evidence.title}"]
    if evidence.abstract:
        lines.append(evidence.abstract)
    facts = evidence.facts
    if all(name in facts for name in REFERENCE_FEATURES):
        lines.append("At publication: " + _listed(evidence, REFERENCE_FEATURES))
    if all(name in facts for name in CITER_FEATURES):
        lines.append("First year: " + _listed(evidence, CITER_FEATURES))
    return "\n".join(lines)


def opening(evidence: Evidence, targets: Sequence[Target], *, debated: bool) -> str:
    """The predictor's first text."""
    order = ", ".join(word for target in targets for word in LABELS[target])
    lines = [describe(evidence)]
    if "disruption" in targets:
        lines += [_CITERS_RULE, _DISRUPTION[evidence.rule]]
    if "novelty" in targets:
        lines.append(_NOVELTY)
    lines.append(f"Answer in lines, P for {order}:\n{answer_form(targets)}")
    lines.append(f"then up to 3 true claims: {_claim_examples(evidence)}")
    if debated:
        lines.append("A challenger will reply; then answer again.")
    return "\n".join(lines)


def challenge_prompt(
    description: str, evidence: Evidence, targets: Sequence[Target], answer: Answer
) -> str:
    """Return the challenger's only text; `description` is `describe(evidence)`."""
    other = LABELS[targets[0]][(answer.labels[0] + 1) % 3]
    return (
        f"{description}\nA predictor answered:\n{answer.write(targets)}\n"
        "Argue for another label; a false claim costs you. Answer in lines:\n"
        f"ARGUE {other}\nthen up to 2 claims: {_claim_examples(evidence)}"
    )


def rejoinder(argument: Argument) -> str:
    """The predictor's second text: the argument in a form of its own, whoever made it."""
    if argument.label is None:
        return "Challenger: are you sure?\nFinal answer?"
    claims = " and ".join(claim.statement for claim in argument.claims)
    reason = f", since {claims}" if claims else ""
    return f"Challenger: {argument.label}{reason}.\nFinal answer?"


def _listed(evidence: Evidence, names: Sequence[str]) -> str:
    return ", ".join(f"{name} {evidence.facts[name]}" for name in names)


def _claim_examples(evidence: Evidence) -> str:
    quote = 'QUOTE "words"'
    if not evidence.facts:
        return quote
    name = "n_k" if "n_k" in evidence.facts else next(iter(evidence.facts))
    return f"CLAIM {name} >= 1 (or <=, =), {quote}"
