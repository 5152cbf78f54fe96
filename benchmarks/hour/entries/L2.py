"""disruption:L2, 2026-11-28, 36 minutes: Bayes over kinds and orders, claims for a fitted judge.

Written from prompts and 60 train Tasks alone.
"""

# mypy: ignore-errors
# An outsider's code is kept as it was written.

import itertools
import math
import re

import numpy as np

LABELS = ["disruptive", "consolidating", "neutral"]
COUNTS = ["n_i", "n_j", "n_k"]
NAMES = [*COUNTS, "references", "age", "authors", "venues"]
# Three kinds of papers (disruptive, consolidating, neutral), with Poisson counts of i, j and k:
# in the first year, in the second to fourth, and in the fifth. Fitted by EM to the notes and
# papers of the train Tasks.
FIRST = np.array([[3.83, 0.67, 0.93], [1.26, 2.40, 2.46], [1.90, 2.37, 5.58]])
MIDDLE = np.array([[7.01, 1.77, 2.24], [1.56, 6.98, 5.22], [4.67, 4.45, 13.54]])
LAST = MIDDLE * 2 / 3
KINDS = np.array([0.316, 0.261, 0.423])
FEATURES = {  # mean by kind, standard deviation
    "references": ((18.9, 25.3, 22.0), 3.5),
    "age": ((9.6, 5.8, 7.6), 2.2),
    "authors": ((2.2, 4.0, 3.2), 1.6),
    "venues": ((5.2, 6.9, 5.8), 1.8),
}
TRUST = 0.8  # of the features, which are not quite independent
SIZE = 34  # counts of the second to fourth year are below it
FEW = 20  # counts of the first year are below it
OFFSET = 1500
LAPSE = 0.01  # chance of a message that the rules do not explain
ORDERS = list(
    itertools.permutations(range(3))
)  # the column named c holds the true column ORDERS[..][c]
CHALLENGERS = [(0, "honest", 1 / 6), (0, "adversary", 1 / 6)] + [
    (a, "careless", 2 / 15) for a in range(1, 6)
]
GRID = np.arange(SIZE)


def poisson(mean, size):
    x = np.arange(size)
    return np.exp(x * np.log(mean) - mean - np.array([math.lgamma(v + 1) for v in x]))


def box(means, size):
    a, b, c = (poisson(m, size) for m in means)
    return a[:, None, None] * b[:, None] * c


def tails(means):
    """P(u > t) by t + OFFSET, where CD > 0.1 is 9 i - 11 j - k > 0; the same for CD < -0.1."""
    size = 34
    w = box(means, size).ravel()
    i, j, k = (a.ravel() for a in np.indices((size,) * 3))
    found = []
    for u in (9 * i - 11 * j - k, 9 * j - 11 * i - k):
        found.append(1 - np.cumsum(np.bincount(u + OFFSET, w / w.sum(), 2 * OFFSET)))
    return found


def label_given(tail, i, j, k):
    """P(label) of a paper with these counts so far, where `tail` is of the counts to come."""
    d = tail[0][OFFSET - (9 * i - 11 * j - k)]
    c = tail[1][OFFSET - (9 * j - 11 * i - k)]
    return np.stack([d, c, np.clip(1 - d - c, 1e-9, 1)], -1)


# P(m, label) of a paper of which nothing else is known, which is what a challenger goes by
JOINT = sum(
    KINDS[z]
    * box(MIDDLE[z], SIZE)[..., None]
    * label_given(tails(FIRST[z] + LAST[z]), *np.indices((SIZE,) * 3))
    for z in range(3)
)
TAILS = [tails(LAST[z]) for z in range(3)]
MIDDLE_P = np.array([[poisson(MIDDLE[z, c], SIZE) for c in range(3)] for z in range(3)])


def favours():
    """log P(label | one count) as an array of i, j, k, count, label."""
    found = np.zeros((SIZE, SIZE, SIZE, 3, 3))
    for c in range(3):
        one = JOINT.sum(tuple(a for a in range(3) if a != c))
        one = np.log(one / one.sum(-1, keepdims=True) + 1e-12)
        found[..., c, :] = one.reshape([SIZE if a == c else 1 for a in range(3)] + [3])
    return found


def left_out(scores, label):
    """The count that speaks least for the label: the one not stated."""
    return np.take_along_axis(scores, label[..., None, None], -1)[..., 0].argmin(-1)


def adversary(mine):
    scores = FAVOURS - FAVOURS[..., mine : mine + 1]
    scores[..., mine] = -99
    label = scores.max(-2).argmax(-1)
    return label, left_out(scores, label)


FAVOURS = favours()
HONEST = JOINT.argmax(-1), left_out(FAVOURS, JOINT.argmax(-1))
ADVERSARY = [adversary(mine) for mine in range(3)]

# P(kind, n, label), which is what the judge goes by
JUDGE = np.stack(
    [
        KINDS[z]
        * box(FIRST[z], FEW)[..., None]
        * label_given(tails(MIDDLE[z] + LAST[z]), *np.indices((FEW,) * 3))
        for z in range(3)
    ]
)


def normal(name, x, z):
    means, sd = FEATURES[name]
    return np.exp(-(((x - means[z]) / sd) ** 2) / 2)


def read(text):
    part = text[text.index("At publication") : text.index("Cited")]
    paper = {k: int(v) for k, v in re.findall(r"(\w+) (\d+)", part)}
    notes = re.findall(r"^m_i (\d+), m_j (\d+), m_k (\d+): (\w+)$", text, re.M)
    return paper, [([min(int(v), SIZE - 1) for v in n[:3]], LABELS.index(n[3])) for n in notes]


def kinds_of(paper):
    """P(kind, n) up to a factor."""
    p = KINDS.copy()
    for z in range(3):
        for name in FEATURES:
            p[z] *= normal(name, paper[name], z) ** TRUST
        for c in range(3):
            p[z] *= poisson(FIRST[z, c], 60)[min(paper[COUNTS[c]], 59)]
    return p / p.sum()


def first_belief(paper):
    p = kinds_of(paper)
    n = [min(paper[c], FEW - 1) for c in COUNTS]
    by_kind = JUDGE[:, n[0], n[1], n[2]]
    return p @ (by_kind / by_kind.sum(-1, keepdims=True))


def believed(text, order_first):
    """What the challenger argues and the two counts it states, by column."""
    label = LABELS.index(re.search(r"argues for (\w+)", text)[1])
    stated = {
        "ijk".index(c): min(int(v), SIZE - 1) for c, v in re.findall(r"m_([ijk]) = (\d+)", text)
    }
    return label, stated, order_first


def final_belief(paper, notes, text, mine):
    label, stated, mine = believed(text, mine)
    missing = next(c for c in range(3) if c not in stated)
    named = [GRID if c == missing else np.full(SIZE, stated[c]) for c in range(3)]
    p = kinds_of(paper)
    n = [paper[c] for c in COUNTS]
    parts, weights = [], []
    for a, kind, prior in CHALLENGERS:
        order = ORDERS[a]
        weight = math.log(prior)
        for counts, what in notes:
            true = [0, 0, 0]
            for c in range(3):
                true[order[c]] = counts[c]
            weight += math.log(JOINT[true[0], true[1], true[2], what] + 1e-12)
        argued, omitted = ADVERSARY[mine] if kind == "adversary" else HONEST
        fits = (argued[tuple(named)] == label) & (omitted[tuple(named)] == missing)
        said = np.where(fits, 1 - LAPSE, LAPSE)
        true = [GRID] * 3
        for c in range(3):
            true[order[c]] = named[c]
        total = np.zeros(3)
        for z in range(3):
            m = p[z] * said
            for c in range(3):
                m = m * MIDDLE_P[z, c][true[c]]
            total += m @ label_given(TAILS[z], *(true[c] + n[c] for c in range(3)))
        parts.append(total)
        weights.append(weight)
    w = np.exp(np.array(weights) - max(weights))
    q = w @ np.array(parts)
    return q / q.sum()


def options(paper):
    """Claims by name: their text and how they weigh kinds and counts of the first year."""
    found = {}
    for name in NAMES:
        v = paper[name]
        rows = []
        for sign in (">=", "<=", "="):
            top = FEW if name in COUNTS else 80
            x = np.arange(top)
            true = {">=": x >= v, "<=": x <= v, "=": x == v}[sign]
            if name in COUNTS:
                if v >= FEW:
                    continue
                rows.append((f"CLAIM {name} {sign} {v}", true.astype(float)))
            else:
                of = [normal(name, x, z) for z in range(3)]
                rows.append(
                    (f"CLAIM {name} {sign} {v}", np.array([o[true].sum() / o.sum() for o in of]))
                )
        found[name] = rows
    return found


def best_claims(paper, belief):
    """The claims that bring the judge nearest to the truth on average, by the Brier score."""
    found = options(paper)
    base = JUDGE.sum((0, 1, 2, 3))
    base = base / base.sum()
    before = ((base - np.eye(3)) ** 2).sum(-1)  # by true label
    best, chosen = 0.002, []
    everything = (("", None),)
    for picks in itertools.product(*([*everything, *found[c]] for c in COUNTS)):
        table = JUDGE
        for c, (_, mask) in enumerate(picks):
            if mask is not None:
                table = table * mask.reshape([-1 if a == c + 1 else 1 for a in range(5)])
        table = table.sum((1, 2, 3))
        said = [s for s, _ in picks if s]
        others = [[]]
        for size in range(1, 4 - len(said)):
            for names in itertools.combinations(FEATURES, size):
                others += [
                    list(rows) for rows in itertools.product(*(found[name] for name in names))
                ]
        for rows in others:
            weight = np.ones(3)
            for _, by_kind in rows:
                weight = weight * by_kind
            q = weight @ table
            gain = before - ((q / q.sum() - np.eye(3)) ** 2).sum(-1)
            gain = np.where(
                gain > 0, np.minimum(0.28 * gain, 0.1875), np.maximum(0.56 * gain, -0.375)
            )
            if belief @ gain > best:
                best, chosen = belief @ gain, said + [s for s, _ in rows]
    return chosen


def answer(p, claims):
    a = [round(float(v), 3) for v in p[:2]]
    a.append(round(1 - sum(a), 3))
    if a[2] < 0:
        a[a.index(max(a))] = round(max(a) + a[2], 3)
        a[2] = 0.0
    lines = [f"LABEL {LABELS[a.index(max(a))]}", "P " + " ".join(f"{v:.3f}" for v in a)]
    return "\n".join(lines + claims)


def reply(texts, replies):
    paper, notes = read(texts[0])
    before = first_belief(paper)
    if len(texts) == 1:
        return answer(before, [])
    mine = LABELS.index(re.search(r"LABEL (\w+)", replies[0])[1])
    p = 0.97 * final_belief(paper, notes, texts[-1], mine) + 0.03 * before
    return answer(p, best_claims(paper, p))
