"""From an update to a verdict: the known ways of training first, then the known faults."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from tokengym.agents.probe.batch import ProbeBatch
from tokengym.agents.probe.describe import described, differing
from tokengym.agents.probe.documented import DocumentedUpdate
from tokengym.agents.probe.estimators import CENTRED, expected_cosine
from tokengym.agents.probe.faults import Fault, faults
from tokengym.agents.probe.fit import FITS, Fit
from tokengym.agents.probe.hypotheses import OWN_MEAN, SUMMED, Hypothesis, hypotheses
from tokengym.agents.probe.scores import ScoreTable
from tokengym.agents.probe.update import MOMENTS, WEIGHTS, ProbedUpdate
from tokengym.agents.probe.verdict import ProbeVerdict, VerdictKind, percent
from tokengym.rewards.arrays import Floats

ROUNDINGS = 1.5
"""Safety factor on the share of a deviation that rounding explains."""
COARSE = 0.005
"""Share of an update, lost to rounding, from which on hypotheses cannot be told apart."""
_KL = "with a KL penalty to the reference"

Rescore = Callable[..., ScoreTable]
"""Scores the batch again, at a temperature (its own if `None`), with padding attended or not: that
before prompts, that after the end."""


def judge(
    batch: ProbeBatch,
    update: ProbedUpdate,
    said: Sequence[DocumentedUpdate] = (),
    rescore: Rescore | None = None,
) -> ProbeVerdict:
    """Say which gradient an update follows.

    Args:
        batch: what the trainer was given, scored at the weights before.
        update: what it did.
        said: updates that the settings document; one match suffices. Empty if nothing is
            documented.
        rescore: scores the batch in other ways, for two faults that need it.
    """
    if update.size and not update.moving_P.all():
        rows_P = update.moving_P
        said = [one.at(rows_P) for one in said]
        of_moving = rescore and (lambda *asked: rescore(*asked).at(rows_P))
        moving = judge(batch.at(rows_P), update.at(rows_P), said, of_moving)
        return _beside_still(batch, update, moving)
    known = list(hypotheses(batch))
    if update.size == 0.0:
        return _unmoved(batch, known, update, said)
    fit = Fit(batch.table, update.change_P)
    allowed = max(FITS, ROUNDINGS * update.rounding)
    if allowed > COARSE:
        return _coarse(update)
    if update.source == WEIGHTS and np.median(moved_P := _moved(update)) > moved_P.max() / 2:
        advice = "use SGD, or save the optimizer's state as optimizer.pt beside the checkpoint"
        sentence = "most weights moved as far as any, as by Adam: that is not the gradient"
        return ProbeVerdict(VerdictKind.UNKNOWN, sentence, notes=(advice,))
    if said and (verdict := _as_documented(batch, fit, known, allowed, said)):
        return verdict
    matching = _matching(fit, known, allowed)
    if matching:
        return _recognised(batch, fit, known, matching, said)
    found = next(_faulty(batch, fit, known, allowed, rescore, update, said), None)
    verdict = found or _unrecognised(batch, fit, known, allowed, said, rescore)
    if update.exact:
        return verdict
    notes = (*verdict.notes, "save float32 checkpoints")
    return replace(verdict, kind=VerdictKind.UNKNOWN, notes=notes)


def _matching(
    fit: Fit, known: Sequence[Hypothesis], allowed: float
) -> list[tuple[Hypothesis, float]]:
    """Return the hypotheses that fit best and cannot be told apart on this batch, best first."""
    left_H = fit.misfits([one.weights_K for one in known])
    return [(known[h], float(left_H[h])) for h in _alike(left_H)] if left_H.min() <= allowed else []


def _alike(left_H: Floats) -> list[int]:
    """Return the numbers of those that fit best and cannot be told apart, the plainest first."""
    best = float(left_H.min())
    return [int(h) for h in np.flatnonzero(left_H <= max(3 * best, best + 2e-5))]


def _moved(update: ProbedUpdate) -> Floats:
    """Return how far every weight moved that did."""
    return np.asarray(np.abs(update.change_P[update.change_P != 0.0]))


def _as_documented(
    batch: ProbeBatch,
    fit: Fit,
    known: Sequence[Hypothesis],
    allowed: float,
    said: Sequence[DocumentedUpdate],
) -> ProbeVerdict | None:
    """Return the verdict if the update is what the settings document."""
    left, one = _nearest(batch, fit, said)
    if left > allowed:
        return None
    text = f"{one.formula}, as {one.settings} (off by {percent(left)})"
    if not one.biases:
        return ProbeVerdict(VerdictKind.FOLLOWS, text, one.formula, left)
    notes = [f"cosine to the unbiased update {_cosine_due(fit, known):.2g} on this batch"]
    if "standardised" in one.biases:
        notes.append(_where_rare(batch, 1, 1e-4))
    return ProbeVerdict(VerdictKind.CHOICE, text, one.formula, left, tuple(notes), one.biases)


def _nearest(
    batch: ProbeBatch, fit: Fit, said: Sequence[DocumentedUpdate]
) -> tuple[float, DocumentedUpdate]:
    """Return how far the nearest documented update is, and that."""
    left, number = min((fit.misfit(one.direction(batch)), n) for n, one in enumerate(said))
    return left, said[number]


def _where_rare(batch: ProbeBatch, ddof: int, epsilon: float) -> str:
    expected = expected_cosine(batch.group_size, ddof, epsilon)
    return f"expected cosine {expected:.2g} where a great reply is rare"


def _unmoved(
    batch: ProbeBatch,
    known: Sequence[Hypothesis],
    update: ProbedUpdate,
    said: Sequence[DocumentedUpdate],
) -> ProbeVerdict:
    for one in said:
        if not one.direction(batch).any():
            text = f"no weight moved, for {one.formula}, as {one.settings}"
            kind = VerdictKind.CHOICE if one.biases else VerdictKind.FOLLOWS
            return ProbeVerdict(kind, text, one.formula, biases=one.biases)
    due = next(one for one in known if one.parts[0] == CENTRED)
    if np.any(due.weights_K):
        if update.source == MOMENTS:
            return ProbeVerdict(VerdictKind.WRONG, "the gradient is zero", "no update", 1.0)
        text = "no weight moved: no gradient, or too small a learning rate"
        return ProbeVerdict(VerdictKind.UNKNOWN, text)
    return ProbeVerdict(VerdictKind.FOLLOWS, "nothing to learn, and no weight moved", CENTRED)


def _beside_still(batch: ProbeBatch, update: ProbedUpdate, verdict: ProbeVerdict) -> ProbeVerdict:
    """Add the parameters that did not move to a verdict on those that did.

    They ought to have moved if the gradient there, of the weights of tokens that the others give,
    exceeds the spacing of what is stored.
    """
    moving_P, table = update.moving_P, batch.table
    fit = Fit(table.at(moving_P), update.change_P[moving_P])
    due_P = table.scores_PK @ fit.weights_K()
    late_P = ~moving_P & (np.abs(due_P) * update.size > update.spacing_P)
    names = [table.names[layer] for layer in np.unique(table.layer_P[late_P])]
    share = float(np.linalg.norm(due_P[late_P]) / np.linalg.norm(due_P[late_P | moving_P]))
    if share <= COARSE or verdict.kind is VerdictKind.UNKNOWN:
        return verdict
    text = (
        f"{len(names)} of {len(table.names)} parameters did not move, {', '.join(names[:3])}"
        f"{', ...' if len(names) > 3 else ''}; off by {percent(share)} from moving all"
    )
    if verdict.kind is VerdictKind.WRONG:
        return replace(verdict, notes=(*verdict.notes, text))
    notes = (f"the others: {verdict}",)
    return ProbeVerdict(VerdictKind.WRONG, text, "frozen layers", share, notes)


def _coarse(update: ProbedUpdate) -> ProbeVerdict:
    """Say what keeps the update from being read, and what would help."""
    sentence = f"rounding of what was stored explains {percent(update.rounding)} of the update"
    if not update.exact:
        advice = "save float32 checkpoints"
    else:
        times = ROUNDINGS * update.rounding / FITS
        advice = f"raise the learning rate of this step at least {np.ceil(times):.0f}-fold"
    return ProbeVerdict(VerdictKind.UNKNOWN, sentence, off=update.rounding, notes=(advice,))


def _recognised(
    batch: ProbeBatch,
    fit: Fit,
    known: Sequence[Hypothesis],
    matching: Sequence[tuple[Hypothesis, float]],
    said: Sequence[DocumentedUpdate],
) -> ProbeVerdict:
    unbiased = [pair for pair in matching if not pair[0].biases]
    # The plainest name of those that cannot be told apart.
    best, left = (unbiased or matching)[0]
    others = [one.name for one, _ in matching if one is not best]
    same = (f"here the same as {others[0]}",) if others and not unbiased else ()
    if said:
        off, one = _nearest(batch, fit, said)
        sentence = f"a setting is ignored: {one.formula} is documented, trained is {best.name}"
        text = f"{sentence}; off by {percent(off)}"
        return ProbeVerdict(VerdictKind.WRONG, text, "ignored setting", off, same)
    if unbiased:
        noise = (best.estimator.noise,) if best.estimator.noise else ()
        text = f"{best.name} (off by {percent(left)})"
        return ProbeVerdict(VerdictKind.FOLLOWS, text, best.name, left, noise)
    notes = [f"cosine to the unbiased update {_cosine_due(fit, known):.2g} on this batch"]
    if best.estimator.standard is not None:
        notes.append(_where_rare(batch, *best.estimator.standard))
    text, notes = f"{best.name} (off by {percent(left)})", [*notes, *same]
    return ProbeVerdict(VerdictKind.CHOICE, text, best.name, left, tuple(notes), best.biases)


def _due(known: Sequence[Hypothesis]) -> list[Hypothesis]:
    return [one for one in known if one.parts[0] == CENTRED and not one.biases]


def _off_due(fit: Fit, known: Sequence[Hypothesis]) -> float:
    return float(fit.misfits([one.weights_K for one in _due(known)]).min())


def _cosine_due(fit: Fit, known: Sequence[Hypothesis]) -> float:
    return max(fit.cosine(one.weights_K) for one in _due(known))


def _faulty(
    batch: ProbeBatch,
    fit: Fit,
    known: Sequence[Hypothesis],
    allowed: float,
    rescore: Rescore | None,
    update: ProbedUpdate,
    said: Sequence[DocumentedUpdate],
) -> Iterator[ProbeVerdict]:
    """Yield verdicts by known faults, the simplest explanation first."""
    if (named := _by_weights(fit, list(faults(batch)), allowed)) is not None:
        yield named
    yield from _by_directions(batch, fit, known, allowed, bool(said))
    if rescore is not None:
        yield from _by_rescoring(batch, update, known, allowed, rescore)


def _by_weights(fit: Fit, found: Sequence[Fault], allowed: float) -> ProbeVerdict | None:
    left_H = fit.misfits([fault.hypothesis.weights_K for fault in found])
    if left_H.min() > allowed:
        return None
    fault = found[_alike(left_H)[0]]
    harm = float(fit.misfits([fault.intended.weights_K])[0])
    sentence = f"{fault.sentence}; off by {percent(harm)} from {fault.intended.name}"
    return ProbeVerdict(VerdictKind.WRONG, sentence, fault.name, harm)


def _by_directions(
    batch: ProbeBatch, fit: Fit, known: Sequence[Hypothesis], allowed: float, documented: bool
) -> Iterator[ProbeVerdict]:
    """Yield verdicts by one further term beside a known way of training, where one fits best."""
    candidates = [one for one in known if one.parts[1] in (SUMMED, OWN_MEAN)]
    weights, found = [one.weights_K for one in candidates], []
    for name, extra_P, sign in _directions(batch):
        if extra_P.any():
            left_H, extra_H, factor_H = fit.misfits_beside(weights, extra_P)
            best = _alike(left_H := np.where(factor_H >= 0, left_H, 1.0))[0]
            carried = float(extra_H[best] * np.linalg.norm(extra_P))
            found.append((float(left_H[best]), candidates[best], name, carried, sign))
    for number in _alike(np.array([left for left, *_ in found])) if found else ():
        left, base, name, carried, sign = found[number]
        share = abs(carried)
        carries = f"{name}, carrying {percent(share)} of the update, beside {base.name}"
        if left > allowed:
            continue
        if carried * sign < 0:
            sentence = f"the sign of the term is wrong: {carries}"
            yield ProbeVerdict(VerdictKind.WRONG, sentence, f"sign of: {name}", share)
        elif name == _KL and not documented:
            text = f"{carries} (off by {percent(left)})"
            kind = VerdictKind.CHOICE if base.biases else VerdictKind.FOLLOWS
            yield ProbeVerdict(kind, text, name, share, biases=base.biases)
        else:
            yield ProbeVerdict(VerdictKind.WRONG, f"an undocumented term: {carries}", name, share)


def _directions(batch: ProbeBatch) -> Iterator[tuple[str, Floats, int]]:
    """Yield terms that trainers add: name, direction, and the sign that it ought to have."""
    table, own_K = batch.table, batch.own_K
    lengths_N = np.maximum(batch.counts_N(own_K), 1.0)
    for averaged_K in (own_K * 1.0, own_K / lengths_N[table.rollout_K]):
        if batch.reference_K is not None:
            away_K = np.where(own_K, table.logprob_K - batch.reference_K, 0.0)
            ratio_K, mean = np.exp(batch.log_ratio_K), away_K.sum() / max(1, own_K.sum())
            # Of KL estimates k3 and k1, k1 centred over tokens, and both times the ratio, where k3
            # then has the gradient of k1.
            for pull_K in (np.expm1(-away_K), -away_K, mean - away_K, -away_K * ratio_K):
                yield _KL, table.scores_PK @ (pull_K * averaged_K), 1
        yield "a bonus on every token", table.scores_PK @ averaged_K, 0
    if batch.read_K.any():
        direction_P = table.scores_PK @ (batch.read_K * 1.0)
        yield "the likelihood of the environment's texts", direction_P, 0
    yield "an entropy bonus", table.entropies_NP.sum(axis=0), 0
    yield "an entropy bonus", (1.0 / lengths_N) @ table.entropies_NP, 0
    yield "weight decay", -table.weights_P, 0


def _by_rescoring(
    batch: ProbeBatch,
    update: ProbedUpdate,
    known: Sequence[Hypothesis],
    allowed: float,
    rescore: Rescore,
) -> Iterator[ProbeVerdict]:
    for name, sentence, temperature, left_padding in (
        ("temperature", "gradients are of the policy at temperature 1, not as sampled", 1.0, False),
        ("left padding", "the padding before prompts is attended", None, True),
    ):
        table = rescore(temperature, left_padding)
        if table.scores_PK.shape[1] != batch.table.scores_PK.shape[1]:
            continue
        other = Fit(table, update.change_P)
        matching = _matching(other, list(hypotheses(batch.with_table(table))), allowed)
        if matching:
            off = _off_due(Fit(batch.table, update.change_P), known)
            text = f"{sentence}: {matching[0][0].name}; off by {percent(off)}"
            yield ProbeVerdict(VerdictKind.WRONG, text, name, off)


def _unrecognised(
    batch: ProbeBatch,
    fit: Fit,
    known: Sequence[Hypothesis],
    allowed: float,
    said: Sequence[DocumentedUpdate],
    rescore: Rescore | None,
) -> ProbeVerdict:
    """Say where the weights of tokens differ from what is documented, or else from what is due."""
    if said:
        off, one = _nearest(batch, fit, said)
        bases = {one.formula: one.policy_K + one.penalty_K}
    else:
        near = [one for one in known if one.parts[1] in (SUMMED, OWN_MEAN)]
        bases, off = {one.name: one.weights_K for one in near}, _off_due(fit, known)
    kind = VerdictKind.WRONG
    found = differing(batch, fit, bases, allowed)
    if found is None and rescore is not None and not batch.off_policy:
        table = rescore(None, False, True)
        found = differing(batch.with_table(table), Fit(table, fit.change_P), bases, allowed)
    if found is not None:
        text = f"{found.sentence}; off by {percent(found.share)} from {found.base}"
        return ProbeVerdict(kind, text, found.name, found.share)
    base = min(bases, key=lambda name: fit.misfits([bases[name]])[0])
    notes = tuple(described(batch, fit, bases[base], allowed))
    return ProbeVerdict(kind, f"off by {percent(off)} from {base}", off=off, notes=notes)
