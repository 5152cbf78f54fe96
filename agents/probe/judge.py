"""From an update to a verdict: the known ways of training first, then the known faults."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tokengym.agents.probe.batch import ProbeBatch
from tokengym.agents.probe.describe import described
from tokengym.agents.probe.estimators import CENTRED, expected_cosine
from tokengym.agents.probe.faults import Fault, faults
from tokengym.agents.probe.fit import FITS, Fit
from tokengym.agents.probe.hypotheses import OWN_MEAN, SUMMED, Hypothesis, hypotheses
from tokengym.agents.probe.scores import ScoreTable
from tokengym.agents.probe.update import MOMENTS, WEIGHTS, ProbedUpdate
from tokengym.agents.probe.verdict import ProbeVerdict, VerdictKind, percent
from tokengym.rewards.arrays import Floats

ROUNDINGS = 1.5
"""What the share that rounding explains is multiplied by before anything is held against it."""
COARSE = 0.005
"""Share of an update, lost to rounding, from which on hypotheses cannot be told apart."""
NEAR = 0.1
_MICRO = "token mean of micro-batches"
_KL = "with a KL penalty to the reference"

Rescore = Callable[[float | None, bool], ScoreTable]
"""Scores the batch again, at a temperature (its own if `None`), left padding attended or not."""


@dataclass(frozen=True)
class Claims:
    """What a trainer says of itself.

    Attributes:
        documented: by the beginning of a part of a hypothesis, the setting that documents it.
        asked: parts of which the hypothesis must have one each, such as `centred by group`; empty
            where nothing particular was asked for.
        rate: learning rate, for advice; 0 if unknown.
    """

    documented: Mapping[str, str] = field(default_factory=dict)
    asked: tuple[str, ...] = ()
    rate: float = 0.0

    def setting(self, parts: Sequence[str]) -> list[str]:
        """Return the settings that document parts of a hypothesis."""
        return [
            setting
            for start, setting in self.documented.items()
            if any(part.startswith(start) for part in parts)
        ]


def judge(
    batch: ProbeBatch,
    update: ProbedUpdate,
    claims: Claims | None = None,
    rescore: Rescore | None = None,
) -> ProbeVerdict:
    """Say which gradient an update follows.

    Args:
        batch: what the trainer was given, scored at the weights before.
        update: what it did.
        claims: what the trainer says of itself.
        rescore: scores the batch in other ways, for two faults that need it.
    """
    claims = claims or Claims()
    known = list(hypotheses(batch))
    if update.size == 0.0:
        return _unmoved(known, update)
    fit = Fit(batch.table, update.change_P)
    allowed = max(FITS, ROUNDINGS * update.rounding)
    if allowed > COARSE:
        return _coarse(fit, known, update, claims)
    if update.source == WEIGHTS and np.median(moved_P := _moved(update)) > moved_P.max() / 2:
        advice = "use SGD, or save the optimizer's state as optimizer.pt beside the checkpoint"
        sentence = "most weights moved as far as any, as by Adam: that is not the gradient"
        return ProbeVerdict(VerdictKind.UNKNOWN, sentence, notes=(advice,))
    matching = _matching(fit, known, allowed)
    if matching:
        return _recognised(batch, fit, known, matching, claims)
    found = next(_faulty(batch, fit, known, allowed, rescore, update, claims), None)
    verdict = found or _unrecognised(batch, fit, known, allowed)
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


def _unmoved(known: Sequence[Hypothesis], update: ProbedUpdate) -> ProbeVerdict:
    due = next(one for one in known if one.parts[0] == CENTRED)
    if np.any(due.weights_K):
        if update.source == MOMENTS:
            return ProbeVerdict(VerdictKind.WRONG, "the gradient is zero", "no update", 1.0)
        return ProbeVerdict(
            VerdictKind.UNKNOWN, "no weight moved: no gradient, or too small a learning rate"
        )
    return ProbeVerdict(VerdictKind.FOLLOWS, "nothing to learn, and no weight moved", CENTRED)


def _coarse(
    fit: Fit, known: Sequence[Hypothesis], update: ProbedUpdate, claims: Claims
) -> ProbeVerdict:
    """Say what keeps the update from being read, and what would help."""
    left_H = fit.misfits([one.weights_K for one in known])
    nearest = int(left_H.argmin())
    sentence = f"rounding of what was stored explains {percent(update.rounding)} of the update"
    if not update.exact:
        advice = "save float32 checkpoints"
    else:
        times = ROUNDINGS * update.rounding / FITS
        rate = (
            f"at least {claims.rate * times:.1g}" if claims.rate else f"{times:.1g} times as large"
        )
        advice = f"use a learning rate of {rate}"
    near = f"nearest: {known[nearest].name}, off by {percent(float(left_H[nearest]))}"
    return ProbeVerdict(VerdictKind.UNKNOWN, sentence, off=update.rounding, notes=(advice, near))


def _recognised(
    batch: ProbeBatch,
    fit: Fit,
    known: Sequence[Hypothesis],
    matching: Sequence[tuple[Hypothesis, float]],
    claims: Claims,
) -> ProbeVerdict:
    unbiased = [pair for pair in matching if pair[0].unbiased]
    # The plainest name of those that cannot be told apart.
    best, left = (unbiased or matching)[0]
    others = [one.name for one, _ in matching if one is not best]
    same = (f"here the same as {others[0]}",) if others and not unbiased else ()
    names = [one.parts for one, _ in matching]
    if missing := [
        part for part in claims.asked if not any(p.startswith(part) for ps in names for p in ps)
    ]:
        asked, off = ", ".join(missing), _off_due(fit, known)
        sentence = f"a setting is ignored: asked for {asked}, trained {best.name}"
        text = f"{sentence}; off by {percent(off)} from {CENTRED}"
        return ProbeVerdict(VerdictKind.WRONG, text, "ignored setting", off, same)
    if unbiased:
        noise = (best.estimator.noise,) if best.estimator.noise else ()
        text = f"{best.name} (off by {percent(left)})"
        return ProbeVerdict(VerdictKind.FOLLOWS, text, best.name, left, noise)
    settings = claims.setting(best.parts)
    if any(part.startswith(_MICRO) for part in best.parts) and not settings:
        sentence = f"averaged by micro-batch, which no setting documents: {best.name}"
        return ProbeVerdict(
            VerdictKind.WRONG, sentence, "micro-batches", _off_due(fit, known), same
        )
    documented = f", as {' and '.join(settings)} documents" if settings else ""
    notes = [f"cosine to the unbiased update {_cosine_due(fit, known):.2g} on this batch"]
    if best.estimator.standard is not None:
        expected = expected_cosine(batch.group_size, *best.estimator.standard)
        notes.append(f"expected cosine {expected:.2g} where a great reply is rare")
    sentence = f"{best.name}{documented} (off by {percent(left)})"
    return ProbeVerdict(VerdictKind.CHOICE, sentence, best.name, left, (*notes, *same))


def _due(known: Sequence[Hypothesis]) -> list[Hypothesis]:
    return [one for one in known if one.parts[0] == CENTRED and one.unbiased]


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
    claims: Claims,
) -> Iterator[ProbeVerdict]:
    """Yield verdicts by known faults, the simplest explanation first."""
    if (named := _by_weights(fit, list(faults(batch)), allowed)) is not None:
        yield named
    yield from _by_directions(batch, fit, known, allowed, claims)
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
    batch: ProbeBatch, fit: Fit, known: Sequence[Hypothesis], allowed: float, claims: Claims
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
        share, settings = abs(carried), claims.setting([name])
        carries = f"{name}, carrying {percent(share)} of the update, beside {base.name}"
        if left > allowed:
            continue
        if carried * sign < 0:
            sentence = f"the sign of the term is wrong: {carries}"
            yield ProbeVerdict(VerdictKind.WRONG, sentence, f"sign of: {name}", share)
        elif name.startswith(_KL) or settings:
            text = f"{carries}{f', as {settings[0]} documents' if settings else ''}"
            kind = VerdictKind.FOLLOWS if base.unbiased else VerdictKind.CHOICE
            yield ProbeVerdict(kind, f"{text} (off by {percent(left)})", name, share)
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
    yield "an entropy bonus", table.entropy_P, 0
    yield "an entropy bonus", table.mean_entropy_P, 0
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
    batch: ProbeBatch, fit: Fit, known: Sequence[Hypothesis], allowed: float
) -> ProbeVerdict:
    left_H = fit.misfits([one.weights_K for one in known])
    nearest = int(left_H.argmin())
    notes = list(described(batch, fit, allowed))
    if left_H[nearest] < NEAR:
        off = percent(float(left_H[nearest]))
        notes.append(f"nearest: {known[nearest].name}, off by {off}")
    text = f"no known way of training; off by {percent(_off_due(fit, known))} from {CENTRED}"
    return ProbeVerdict(VerdictKind.WRONG, text, off=_off_due(fit, known), notes=tuple(notes))
