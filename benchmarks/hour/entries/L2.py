"""disruption:L2, 2026-11-27, 29 minutes: Bayes over kinds, column orders and challengers.

Written from prompts and 60 train Tasks alone.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# An outsider's code is kept as it was written.

import itertools
import re
from typing import NamedTuple

import numpy as np

LABELS = ["disruptive", "consolidating", "neutral"]
COUNTS = "ijk"
TOP = 26  # counts above TOP - 1 are cut to it
KIND_PRIOR = np.array([0.25, 0.3, 0.45])
MEANS = np.array([[6.78, 1.65, 2.3], [1.86, 6.65, 4.6], [4.62, 4.37, 13.58]])  # m by kind
FIRST_YEAR, FIFTH_YEAR = 0.46, 0.2  # citers of that year for each one of years two to four
FEATURES = ["references", "age", "venues", "fields"]
FEATURE_MEANS = np.array([[19.4, 9.6, 5.0, 2.2], [24.9, 6.4, 6.4, 2.9], [21.3, 7.9, 5.7, 2.3]])
FEATURE_SDS = np.array([3.0, 1.95, 1.7, 1.25])
VERBS = [
    ["introduce", "propose", "discover"],
    ["confirm", "refine", "extend"],
    ["apply", "compare", "review"],
]  # by the kind they hint at
VERB_FITS, VERB_STRAYS = 0.52, 0.24
ORDERS = list(itertools.permutations(range(3)))  # stated column c holds the true ORDERS[o][c]
PAIRS = [(0, 1), (0, 2), (1, 2)]
HONEST, ADVERSARY, CARELESS = 1 / 6, 1 / 6, 4 / 6
SLIP = 0.05  # chance that a challenger's choice differs from the one the model foresees
DRAWS = 300
DRAWN_PAPERS = 100000
RANDOM = np.random.default_rng(7)
LOG_FACTORIAL = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, 80)))])


def poisson(count, mean):
    """The Poisson probability of a count below 80."""
    return np.exp(count * np.log(mean) - mean - LOG_FACTORIAL[count])


def labels_of(counts):
    """The label index by CD for counts in the last axis."""
    cd = (counts[..., 0] - counts[..., 1]) / np.maximum(counts.sum(-1), 1)
    return np.where(cd > 0.1, 0, np.where(cd < -0.1, 1, 2))


def label_shares(labels):
    """Shares of the three labels along the last axis, kept off 0 and 1."""
    shares = np.stack([(labels == y).mean(-1) for y in range(3)], -1)
    return shares * 0.985 + 0.005


def joint_table():
    """P(label, m_i, m_j, m_k) of a paper of which nothing else is known."""
    grid = np.stack(np.meshgrid(*[np.arange(TOP)] * 3, indexing="ij"), -1).reshape(-1, 3)
    table = np.zeros((3, len(grid)))
    for kind in range(3):
        rest = RANDOM.poisson(MEANS[kind] * (FIRST_YEAR + FIFTH_YEAR), (DRAWS, 3))
        chance = KIND_PRIOR[kind] * poisson(grid, MEANS[kind]).prod(-1)
        for part in np.array_split(np.arange(len(grid)), 20):
            shares = label_shares(labels_of(grid[part, None] + rest))
            table[:, part] += (chance[part, None] * shares).T
    return table.reshape(3, TOP, TOP, TOP) + 1e-12


JOINT = joint_table()
SINGLE = [JOINT.sum(tuple(a + 1 for a in range(3) if a != c)) for c in range(3)]
DOUBLE = {p: JOINT.sum(1 + (3 - sum(p))) for p in PAIRS}


def honest_choice(seen):
    """The label an honest or careless challenger argues for, and its two counts."""
    label = int(JOINT[(slice(None), *seen)].argmax())

    def support(pair):
        cell = DOUBLE[pair][:, seen[pair[0]], seen[pair[1]]]
        return cell[label] / cell.sum()

    return label, max(PAIRS, key=support)


def adversary_choice(seen, mine):
    """The label an adversary argues for against mine, and its two counts."""
    odds = np.array([SINGLE[c][:, seen[c]] / SINGLE[c][mine, seen[c]] for c in range(3)])
    odds[:, mine] = 0
    label = int(odds.max(0).argmax())
    best = np.argsort(-odds[:, label], kind="stable")[:2]
    return label, tuple(sorted(int(c) for c in best))


def agreement(choice, heard):
    """How likely a challenger with this choice says what was heard."""
    return 1 - SLIP if choice == heard else SLIP / 8


def verb_group(text):
    """The kind that the abstract's verb hints at, or none."""
    verb = read_verb(text)
    return next((kind for kind, verbs in enumerate(VERBS) if verb in verbs), None)


def read_verb(text):
    """The abstract's verb."""
    found = re.search(r"\nWe (\w+) ", text)
    return found.group(1) if found else ""


def read_paper(text):
    """The paper's numbers by name, and the challenger's notes on earlier papers."""
    head = text.split("\nreferences: length")[0]
    facts = {
        k: int(v) for k, v in re.findall(r"(references|age|venues|fields|n_[ijk]) (\d+)", head)
    }
    group = verb_group(head)
    if group is not None:
        facts["verb"] = group
    rows = re.findall(r"m_i (\d+), m_j (\d+), m_k (\d+): (\w+)", text)
    notes = [([min(int(v), TOP - 1) for v in row[:3]], LABELS.index(row[3])) for row in rows]
    return facts, notes


def read_challenge(text):
    """The label argued for, the pair of stated counts and their values."""
    found = re.search(r"argues for (\w+), since m_(\w) = (\d+) and m_(\w) = (\d+)", text)
    label, first, one, second, two = found.groups()
    pair = (COUNTS.index(first), COUNTS.index(second))
    return LABELS.index(label), pair, (int(one), int(two))


def first_counts(facts):
    """The counts of the first year."""
    return np.array([facts["n_" + c] for c in COUNTS])


def kind_weights(facts):
    """P(kind) of the paper given what is known at publication and the first year."""
    values = np.array([facts[name] for name in FEATURES])
    fit = np.exp(-0.5 * (((values - FEATURE_MEANS) / FEATURE_SDS) ** 2).sum(-1))
    year = poisson(np.minimum(first_counts(facts), 79), MEANS * FIRST_YEAR).prod(-1)
    verb = np.where(np.arange(3) == facts.get("verb", -1), VERB_FITS, VERB_STRAYS)
    weights = KIND_PRIOR * fit * year * verb
    return weights / weights.sum()


def first_belief(facts):
    """P(label) before the challenger speaks."""
    belief = np.zeros(3)
    for kind, weight in enumerate(kind_weights(facts)):
        rest = RANDOM.poisson(MEANS[kind] * (1 + FIFTH_YEAR), (2000, 3))
        belief += weight * label_shares(labels_of(first_counts(facts) + rest))
    return belief / belief.sum()


def true_order(seen, order):
    """The true counts behind the seen ones."""
    counts = [0, 0, 0]
    for column, true_column in enumerate(order):
        counts[true_column] = seen[column]
    return tuple(counts)


def order_weights(notes):
    """The likelihood of the notes by column order."""
    return np.array(
        [
            np.prod([JOINT[(label, *true_order(row, order))] for row, label in notes])
            for order in ORDERS
        ]
    )


def said_by(seen, order_index, mine, heard):
    """The probability that a challenger with this column order exists and says this."""
    honest = agreement(honest_choice(seen), heard)
    if order_index:
        return CARELESS / 5 * honest
    return HONEST * honest + ADVERSARY * agreement(adversary_choice(seen, mine), heard)


def final_belief(facts, notes, challenge, mine):
    """P(label, first stated count is true, second is true)."""
    label, pair, values = challenge
    kinds, start = kind_weights(facts), first_counts(facts)
    fifth = [RANDOM.poisson(MEANS[k] * FIFTH_YEAR, (DRAWS, 3)) for k in range(3)]
    belief = np.zeros((3, 2, 2))
    for index, weight in enumerate(order_weights(notes)):
        for third in range(TOP):
            seen = [third] * 3
            seen[pair[0]], seen[pair[1]] = (min(v, TOP - 1) for v in values)
            counts = np.array(true_order(seen, ORDERS[index]))
            chance = weight * said_by(seen, index, mine, (label, pair))
            truth = tuple(int(counts[c] == v) for c, v in zip(pair, values, strict=False))
            by_kind = kinds * poisson(counts, MEANS).prod(-1)
            for kind in range(3):
                shares = label_shares(labels_of(start + counts + fifth[kind]))
                belief[:, truth[0], truth[1]] += chance * by_kind[kind] * shares
    return belief / belief.sum()


def population():
    """Papers drawn from the model: their numbers by name and their labels."""
    kinds = RANDOM.choice(3, DRAWN_PAPERS, p=KIND_PRIOR / KIND_PRIOR.sum())
    year = RANDOM.poisson(MEANS[kinds] * FIRST_YEAR)
    middle = RANDOM.poisson(MEANS[kinds])
    rest = RANDOM.poisson(MEANS[kinds] * FIFTH_YEAR)
    traits = np.rint(RANDOM.normal(FEATURE_MEANS[kinds], FEATURE_SDS))
    numbers = {"n_" + c: year[:, a] for a, c in enumerate(COUNTS)}
    numbers |= {"m_" + c: middle[:, a] for a, c in enumerate(COUNTS)}
    stray = RANDOM.random(DRAWN_PAPERS) > VERB_FITS
    numbers["verb"] = np.where(stray, (kinds + RANDOM.integers(1, 3, DRAWN_PAPERS)) % 3, kinds)
    numbers |= {name: traits[:, a] for a, name in enumerate(FEATURES)}
    return numbers, labels_of(year + middle + rest)


NUMBERS, POPULATION_LABELS = population()
LABEL_COUNTS = np.bincount(POPULATION_LABELS, minlength=3)
LABEL_PRIOR = LABEL_COUNTS / DRAWN_PAPERS
SIGNS = {"=": np.equal, ">=": np.greater_equal, "<=": np.less_equal}


class Claim(NamedTuple):
    """A claim: its line and subject, the drawn papers it is true of, and which of the
    challenger's two counts it repeats, if any."""

    line: str
    subject: str
    holds: np.ndarray
    place: int | None = None

    def likelihood(self):
        """P(the claim is true | label)."""
        return np.bincount(POPULATION_LABELS, self.holds, 3) / LABEL_COUNTS


def number_claim(name, sign, value, place=None):
    """The claim that compares a named number."""
    return Claim(f"CLAIM {name} {sign} {value}", name, SIGNS[sign](NUMBERS[name], value), place)


def candidate_claims(facts, verb, challenge):
    """Claims worth a thought."""
    claims = [
        number_claim(name, sign, value)
        for name, value in facts.items()
        for sign in SIGNS
        if name != "verb"
    ]
    if "verb" in facts:
        claims.append(Claim(f'QUOTE "{verb}"', "verb", NUMBERS["verb"] == facts["verb"]))
    _, pair, values = challenge
    for place, (column, value) in enumerate(zip(pair, values, strict=False)):
        claims.append(number_claim("m_" + COUNTS[column], "=", value, place))
    return claims


def opinion_of(claims):
    """The judge's opinion: the labels of the drawn papers of which all claims are true.

    Where few are left, the claims are taken as independent given the label.
    """
    if not claims:
        return LABEL_PRIOR
    apart = np.prod([c.likelihood() for c in claims], axis=0) * LABEL_PRIOR + 1e-7
    together = np.logical_and.reduce([c.holds for c in claims])
    counts = np.bincount(POPULATION_LABELS[together], minlength=3)
    return (counts + 10 * apart / apart.sum()) / (counts.sum() + 10)


def brier(opinion):
    """The Brier loss of an opinion by true label."""
    return ((opinion - np.eye(3)) ** 2).sum(-1)


def judge_gain(claims):
    """What true claims earn by true label."""
    before, after = brier(LABEL_PRIOR), brier(opinion_of(claims))
    change = before - after
    return np.where(change > 0, 0.1875 * change / before, 0.375 * change / (2 - before))


def expected_gain(claims, belief):
    """What a set of claims is expected to earn, false ones paid for."""
    repeated = [c.place for c in claims if c.place is not None]
    unsaid = tuple(1 + p for p in range(2) if p not in repeated)
    belief = belief.sum(unsaid, keepdims=True)
    total = 0.0
    for truth in itertools.product(*map(range, belief.shape[1:])):
        share = belief[(slice(None), *truth)]
        true = [c for c in claims if c.place is None or truth[c.place]]
        false = len(claims) - len(true)
        total += share @ judge_gain(true) - 0.125 * false * share.sum()
    return total


def best_claims(candidates, belief):
    """Up to three claims, added one at a time while the expected gain grows."""
    gain = 0.0
    chosen: list[Claim] = []
    for _ in range(3):
        taken = {c.subject for c in chosen}
        options = [
            (expected_gain([*chosen, c], belief), number)
            for number, c in enumerate(candidates)
            if c.subject not in taken
        ]
        best, number = max(options)
        if best <= gain + 2e-3:
            break
        chosen, gain = [*chosen, candidates[number]], best
    return [c.line for c in chosen]


def answer(belief, claims=()):
    """The reply: the likeliest label, two-decimal probabilities and the claims."""
    cents = np.floor(belief * 100).astype(int)
    cents[int(belief.argmax())] += 100 - cents.sum()
    shown = " ".join(f"{c / 100:.2f}" for c in cents)
    return "\n".join([f"LABEL {LABELS[int(belief.argmax())]}", f"P {shown}", *claims])


def reply(texts, replies):
    """The first answer, or the final one once the challenger has spoken."""
    facts, notes = read_paper(texts[0])
    if len(texts) == 1:
        return answer(first_belief(facts))
    mine = LABELS.index(replies[0].split()[1])
    challenge = read_challenge(texts[-1])
    belief = final_belief(facts, notes, challenge, mine)
    candidates = candidate_claims(facts, read_verb(texts[0]), challenge)
    return answer(belief.sum((1, 2)), best_claims(candidates, belief))
