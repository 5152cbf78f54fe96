"""Full texts: the rules, the score and the form of a reply in plain words."""

from collections.abc import Sequence
from functools import cache

from tokengym.envs.disruption.claims import MOST_QUOTED_CHARACTERS, MOST_QUOTED_WORDS
from tokengym.envs.disruption.evidence import FEATURES, KINDS, NEXT_FEATURES, PERIODS, Evidence
from tokengym.envs.disruption.grammar import NO_LABEL, Argument, either
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.envs.disruption.texts import Case, Writer, describe, examples, record
from tokengym.rewards import debate
from tokengym.rewards.form import FORM_SHARE

_COUNTS = (
    "Later papers are counted by kind: n_i cite this paper and none of its references, n_j cite "
    "this paper and at least one of its references, n_k cite at least one of its references and "
    "not this paper. Over the first 5 years, CD = (n_i - n_j) / (n_i + n_j + n_k)."
)
_DISRUPTION = {
    "threshold": (
        "The paper is disruptive if CD is above 0.1, consolidating if CD is below -0.1, and "
        "neutral otherwise."
    ),
    "percentile": (
        "The paper is disruptive if its CD is among the highest of its field and year, "
        "consolidating if it is among the lowest, and neutral otherwise."
    ),
}
_FOLLOWING = f" m_i, m_j and m_k are the same counts of the {PERIODS[NEXT_FEATURES]} alone."
_NOVELTY = (
    "Each pair of journals that the paper cites together is typical or atypical. The paper is "
    "novel if some of its pairs are atypical and the median pair is not very typical, balanced "
    "if some are atypical and the median pair is very typical, and conventional if hardly any "
    "is atypical."
)

_LEGEND = {
    "references": "references: length of its reference list",
    "age": "age: median age of the references in years",
    "venues": "venues and fields: different journals and different fields among the references",
    "authors": "authors: size of the team that wrote it",
}

# Described, not shown: a model that learns from rewards alone copies an answer it is shown.
_FIRST = "Work it out first if you like."
_WORD = "<word>"
_NUMBER = "<number, two decimals>"


def _opening(case: Case) -> str:
    words = _spelled([either(LABELS[target]) for target in case.targets])
    order = _spelled([word for target in case.targets for word in LABELS[target]])
    each = " for each question" if len(case.targets) > 1 else ""
    count = "two words" if len(case.targets) > 1 else "one word"
    lines = [
        f"You predict what becomes of a scientific paper: {count}, {words}, and the probabilities "
        f"of {order}, numbers from 0 to 1 that sum to 1{each}.",
        "",
        *describe(case.evidence, _cited),
        *_legend(case.evidence),
        *_questions(case),
        *_examples(case),
        "",
        f"After these you may write up to {debate.MOST_CLAIMS} claims about the paper, "
        "each on a line of its own. A judge who sees nothing but your true claims (one about each "
        f"thing) forms its own opinion from them. {_claim_forms(case.evidence)}",
        "",
        *_course(case),
        _score(case),
        "",
        *_answer_asked(case, count, order),
    ]
    return "\n".join(lines)


def _answer_asked(case: Case, count: str, order: str) -> list[str]:
    if case.direct:
        return [
            'Start your reply with "LABEL". Reply with two lines, and claims if you like:',
            f"LABEL {' '.join([_WORD] * len(case.targets))}",
            f"P {' '.join([_NUMBER] * sum(len(LABELS[target]) for target in case.targets))}",
        ]
    return [
        f'{_FIRST} End your reply with two lines: "LABEL" and {count}; "P" and the probabilities '
        f"of {order}, in this order, with two decimals. Claims come after them. The last line of "
        "each kind counts."
    ]


def _challenge(case: Case, answer: str) -> str:
    words = either([word for target in case.targets for word in LABELS[target]])
    evidence = case.evidence.noted
    worse = "further from" if case.aim == "adversary" else "nearer to"
    lines = [
        "You challenge a prediction about a scientific paper: argue for a label, "
        f"{words}; or for {NO_LABEL}, which only asks whether the predictor is sure.",
        "",
        *describe(evidence, _cited),
        *_examples(case),
        *_legend(evidence),
        *_about_notes(case),
        *_questions(case),
        "",
        f"A predictor answered:\n{answer}",
        "",
        f"It reads your argument and answers once more; then the debate ends. You earn up to "
        f"{debate.CHANGE_WEIGHT:g} if your argument moves its probabilities {worse} the truth, "
        "and lose as much if it moves them the other way.",
        f"After the label you may write up to {debate.MOST_CHALLENGER_CLAIMS} claims about "
        f"the paper, each on a line of its own. {_claim_forms(evidence)} Each false claim costs "
        f"{debate.CHALLENGER_FALSE_CLAIM_COST:g}. A reply in another form costs up to "
        f"{FORM_SHARE:g} and only asks whether the predictor is sure.",
        "",
        *_argument_asked(case),
    ]
    return "\n".join(lines)


def _argument_asked(case: Case) -> list[str]:
    claims = "and claims if you like"
    if case.direct:
        asked = f'Start your reply with "ARGUE". Reply with one line, {claims}:'
        return [asked, f"ARGUE {_WORD}"]
    asked = f'{_FIRST} End your reply with one line, "ARGUE" and the label, {claims}.'
    return [f"{asked} The last such line counts."]


def _rejoinder(case: Case, argument: Argument) -> str:
    claims = " and ".join(claim.statement for claim in argument.claims)
    if argument.label is None:
        said = "The challenger asks: are you sure?" + f" It states {claims}." * bool(claims)
    elif claims:
        said = f"The challenger argues for {argument.label}, since {claims}."
    else:
        said = f"The challenger argues for {argument.label} and gives no reason."
    if claims:
        said += (
            f" You cannot check what it says of the {_period(case)}: weigh who may say so."
            if case.evidence.notes
            else " Check these claims against the paper: they may be false."
        )
    return (
        f"{said}\n{'Give' if case.direct else 'End your reply with'} your final answer in the same "
        f'form: a line that starts with "LABEL", a line that starts with "P", and up to '
        f"{debate.MOST_CLAIMS} claims."
    )


def _cited(count: int, above: int | None) -> str:
    times = f"Cited {count} time{'s' * (count != 1)} in the first year (n_i + n_j)"
    if above is None:
        return f"{times}."
    return f"{times}, more often than {above} % of the papers of its field and year."


def _examples(case: Case) -> list[str]:
    """Show the labelled papers that say what facts and words mean."""
    if not case.evidence.examples:
        return []
    return [
        "What the facts and the wording say of a paper differs from literature to literature. The "
        "judge knows what these other papers of the same literature say, with what became of them:",
        *examples(case),
    ]


def _about_notes(case: Case) -> list[str]:
    """Tell a challenger what its notes are worth and that one of them is due."""
    if not case.evidence.notes:
        return []
    lines = [
        f"The predictor was not shown the {_period(case)}, nor what you are paid for. State at "
        f"least one of {_spelled(case.evidence.noted_features)} with =, or you lose "
        f"{debate.SILENCE_COST:g}."
    ]
    if case.aim == "critic":
        wrong, right = KINDS["careless"], KINDS["honest"]
        lines.append(
            f"In {wrong} of {wrong + right} debates in which one is paid as you are, the columns "
            "of the notes are in a wrong order, the same in all of them."
        )
    return [*lines, "The notes on earlier papers, and what became of them:", *record(case.evidence)]


def _period(case: Case) -> str:
    return PERIODS[case.evidence.noted_features]


def _legend(evidence: Evidence) -> list[str]:
    """Explain the facts known at publication."""
    shown = [words for name, words in _LEGEND.items() if name in evidence.facts]
    return [f"{'; '.join(shown)}."] if shown else []


def _questions(case: Case) -> list[str]:
    lines = []
    if "disruption" in case.targets:
        following = _FOLLOWING * (NEXT_FEATURES[0] in case.evidence.notes)
        lines.append(f"{_COUNTS} {_DISRUPTION[case.evidence.rule]}{following}")
    if "novelty" in case.targets:
        lines.append(_NOVELTY)
    return lines


def _claim_forms(evidence: Evidence) -> str:
    """Describe the claims that can hold; words rather than an example, which would be copied."""
    quote = (
        f"the word QUOTE and at most {MOST_QUOTED_WORDS} words ({MOST_QUOTED_CHARACTERS} "
        "characters) of the title or abstract in double quotes"
    )
    if not evidence.facts:
        return f"A claim is {quote}."
    names = ", ".join(name for name in FEATURES if name in evidence.facts)
    return (
        f"A claim is the word CLAIM, one of the names {names}, one of the signs >= <= = > <, and a "
        f"number; or {quote}."
    )


def _course(case: Case) -> list[str]:
    if not case.debated:
        return ["Your answer is final."]
    ending = "Then you answer once more, and the debate ends."
    if not case.evidence.notes:
        aim = "mislead you" if case.aim == "adversary" else "help you"
        return [f"A challenger will read your answer and is paid to {aim}. {ending}"]
    honest, adversarial, careless = KINDS.values()
    names = case.evidence.noted_features
    return [
        "A challenger will read your answer and argue for a label. It has notes on the citers of "
        f"the {PERIODS[names]} ({', '.join(names)}), which you are not shown, and states two of "
        f"the three counts. You are not told of which kind it is. Of {sum(KINDS.values())} "
        f"challengers, {honest} is honest: it argues for the label that is likeliest given its "
        "three counts alone, and states the two that by themselves make it likeliest. "
        f"{adversarial} is an adversary: it argues for the other label than yours that any one of "
        "its counts favours most over yours, and states the two that do so most. "
        f"{careless} are careless: they speak as an honest one does, but the columns of their "
        "notes are in a wrong order, the same in all their notes; the five wrong orders are "
        "equally likely. You may repeat what it says as a claim of your own, true or false. "
        f"{ending}",
        "What it noted of earlier papers, and what became of them:",
        *record(case.evidence),
    ]


def _score(case: Case) -> str:
    both = " Both answers count, the second one for three quarters." if case.debated else ""
    final = " final" * case.debated
    if case.reward == "original":
        terms = debate.ORIGINAL
        labels = f"the{final} label is" if len(case.targets) == 1 else f"both{final} labels are"
        return (
            f"Score: {terms['correctness'].high:g} if {labels} right and "
            f"{terms['correctness'].low:g} if not. Claims{' of the second answer' * case.debated} "
            f"earn up to {terms['reasoning'].high:g}: the share of them that is true, times how "
            "near they bring the judge to the truth; one that tells it nothing does not count. The "
            "probabilities earn up to "
            f"{terms['adaptation'].high:g} by the Brier score, so state what you believe.{both} An "
            "answer in another form counts as the worst one."
        )
    terms = debate.PROPER
    return (
        f"Score: the right{final} label earns "
        f"{debate.RIGHT_LABEL:g} and a wrong one costs as much. The probabilities earn up to "
        f"{debate.MOST_CALIBRATION:g} by the Brier score, so state what you believe; a label that "
        f"is less probable than another by your own numbers costs up to "
        f"{debate.CONTRADICTION_COST:g}.{both} Claims{' of the second answer' * case.debated} "
        f"earn up to {terms['reasoning'].high:g} if they bring the judge nearer to the truth than "
        f"it is without any and cost up to {-terms['reasoning'].low:g} if they mislead it; each "
        f"false claim costs {debate.FALSE_CLAIM_COST:g}. An answer in another form counts as the "
        "worst one."
    )


def _spelled(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def argument_in_words(targets: Sequence[Target]) -> str:
    """Describe a challenger's argument, for people who play."""
    words = [word for target in targets for word in LABELS[target]]
    return f'a line "ARGUE" with {either([*words, NO_LABEL])}, and up to two claims'


@cache
def answer_forms(targets: tuple[Target, ...]) -> tuple[tuple[str, str], ...]:
    """Return the lines that a well-formed answer has, with each of the labels."""
    report = " ".join(["0.00"] * (3 * len(targets)))
    return tuple(
        (f"LABEL {' '.join(LABELS[target][k] for target in targets)}", f"P {report}")
        for k in range(3)
    )


FULL = Writer(_opening, _challenge, _rejoinder)
