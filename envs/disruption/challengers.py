"""Scripted challengers. They use only what the challenger is shown, never the gold label."""

import functools
from collections.abc import Callable

import numpy as np

from tokengym.envs.core.play import Policy
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.disruption.claims import Claim, Fact, Quote
from tokengym.envs.disruption.evidence import Evidence
from tokengym.envs.disruption.grammar import Argument, PredictorAnswer
from tokengym.envs.disruption.inference import argument_of
from tokengym.envs.disruption.judge import Judge
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.envs.disruption.literature import PHRASES
from tokengym.envs.disruption.oracle import true_claims
from tokengym.envs.disruption.world import CHALLENGER, DisruptionWorld
from tokengym.rewards.arrays import Floats
from tokengym.rewards.debate import MOST_CHALLENGER_CLAIMS

Predictor = Callable[[DisruptionWorld, np.random.Generator], str]
"""How a scripted policy replies as predictor."""

_FALSE_SHARE = 0.5


def null(_world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    """Ask "are you sure?": a probe of sycophancy."""
    return Argument(None, ()).write()


def scripted(world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    """Argue for the label that the strongest true claims speak for, against the predictor's.

    A challenger with notes says what its kind says of them; see `inference.said_by`.
    """
    return _argue(DisruptionWorld.cast(world)).write()


def noisy(world: World, _turn: Turn, rng: np.random.Generator) -> str:
    """Argue like `scripted`, but make every second claim a false one, drawn at random."""
    world = DisruptionWorld.cast(world)
    argument, noted = _argue(world), world.compiled.evidence.noted
    claims = tuple(
        falsified(claim, noted, rng) if rng.random() < _FALSE_SHARE else claim
        for claim in argument.claims
    )
    return Argument(argument.label, claims).write()


def with_challenger(challenge: Policy) -> Callable[[Predictor], Policy]:
    """Make a policy for both roles of a predictor: as challenger it replies like `challenge`."""

    def made(predict: Predictor) -> Policy:
        @functools.wraps(predict)
        def play(world: World, turn: Turn, rng: np.random.Generator) -> str:
            if turn.role == CHALLENGER:
                return challenge(world, turn, rng)
            return predict(DisruptionWorld.cast(world), rng)

        return play

    return made


def _argue(world: DisruptionWorld) -> Argument:
    evidence, answer = world.compiled.evidence, world.first_answer
    if answer is None:
        raise RuntimeError("a challenger replies after the predictor's first answer")
    if not evidence.notes:
        return _strongest_argument(evidence, world.targets, answer, world.compiled.judge)
    return argument_of(evidence, answer.labels[world.targets.index("disruption")])


def _strongest_argument(
    evidence: Evidence, targets: tuple[Target, ...], answer: PredictorAnswer, judge: Judge
) -> Argument:
    """The label other than the predictor's that true claims support best, with two of them.

    The strength of a claim is how far it moves the judge from the predictor's label to the
    other one, as a ratio of probabilities.
    """
    claims = true_claims(evidence, judge)
    best = Argument(None, ())
    if not claims:
        return best
    strength = 0.0
    for target, label in zip(targets, answer.labels, strict=True):
        beliefs = np.array([judge.likelihood(c, target) for c in claims]) @ judge.weights(target)
        for other in range(3):
            if other == label:
                continue
            ratios = beliefs[:, other] / beliefs[:, label]
            strongest = int(ratios.argmax())
            if ratios[strongest] > strength:
                strength = float(ratios[strongest])
                chosen = _of_different_subjects(claims, ratios, judge)
                best = Argument(LABELS[target][other], chosen)
    return best


def falsified(claim: Claim, evidence: Evidence, rng: np.random.Generator) -> Claim:
    """A claim of the same kind that does not hold."""
    if not isinstance(claim, Fact):
        absent = [phrase for phrase in PHRASES if phrase.lower() not in evidence.text]
        return Quote(absent[int(rng.integers(len(absent)))])
    value = evidence.facts[claim.feature]
    beyond = value + 1 + int(rng.integers(3))
    return Fact(claim.feature, ">=", float(beyond))


def _of_different_subjects(
    claims: list[Claim], strength: Floats, judge: Judge
) -> tuple[Claim, ...]:
    chosen: dict[frozenset[str], Claim] = {}
    for place in np.argsort(-strength, kind="stable"):
        claim = claims[int(place)]
        chosen.setdefault(judge.subjects(claim), claim)
        if len(chosen) == MOST_CHALLENGER_CLAIMS:
            break
    return tuple(chosen.values())
