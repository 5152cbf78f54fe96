"""The debate: a predictor answers, a challenger argues, the predictor answers again."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from tokengym.envs.core.errors import DataError, OptionError, TaskError
from tokengym.envs.core.grammar import complaint
from tokengym.envs.core.seeding import split_of
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task, canonical_json, fingerprint
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import Optimum, World
from tokengym.envs.disruption.evidence import (
    Evidence,
    evidence_of,
    evidence_of_paper,
    instance_of,
)
from tokengym.envs.disruption.judge import judge, verify
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.envs.disruption.literature import (
    Probabilities,
    draw_evidence,
    draw_outcome,
    posterior,
)
from tokengym.envs.disruption.metrics import challenge_metrics, debate_metrics
from tokengym.envs.disruption.paper import Paper
from tokengym.envs.disruption.prompt import (
    answer_form,
    challenge_prompt,
    describe,
    opening,
    rejoinder,
)
from tokengym.envs.disruption.replies import Answer, Argument, read_answer, read_argument
from tokengym.rewards import debate
from tokengym.rewards.bounds import Range

PREDICTOR = "predictor"
CHALLENGER = "challenger"
TARGETS: Mapping[str, tuple[Target, ...]] = {
    "disruption": ("disruption",),
    "novelty": ("novelty",),
    "both": ("disruption", "novelty"),
}
_SPAN = debate.TOTAL.high - debate.TOTAL.low
_MALFORMED = {"correctness": -1.0, "reasoning": 0.0, "adaptation": 0.0}


class Docket(NamedTuple):
    """A Task as it is shown and judged under given options; computed once per Task.

    Attributes:
        evidence: what is shown.
        description: the same in words.
        opening: the predictor's first text.
        gold: position of the true label of each target.
        truths: what reports are scored against, for each target.
        posteriors: probabilities of the labels given what is shown; the gold label alone where no
            posterior is known.
        exact: whether the posteriors are known.
    """

    evidence: Evidence
    description: str
    opening: str
    gold: tuple[int, ...]
    truths: tuple[Probabilities, ...]
    posteriors: tuple[Probabilities, ...]
    exact: bool

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Frozen all the way down: a copy is the Docket itself."""
        return self


class DisruptionWorld(World):
    """Is a paper disruptive, consolidating or neutral? Predict, be challenged, answer again.

    1. The predictor reads what its tier shows of a paper and gives a label, probabilities and up to
       three claims. 2. The challenger argues for another label with up to two claims. 3. The
       predictor answers finally, in the same form.

    The predictor earns correctness (±1, final label) + reasoning (up to 0.3, the final claims
    before a frozen judge) + adaptation (up to 0.2, both reports); see `rewards.debate`. A malformed
    answer ends the episode at -1 in total. A malformed challenge reads "are you sure?".

    Args:
        spec: the world's row of the catalogue.
        level: the evidence tier: `L2` (default), `L1` or `L0`.
        target: `disruption`, `novelty` or `both` (correctness, losses and judge then average).
        single_turn: the first answer is final and nobody challenges it.
        label: `outcome` scores against what came of the paper; `expected` against its posterior,
            which removes label noise and exists for the synthetic literature only.
        challenger: what the challenger earns for the predictor's change of half-Brier: `adversary`
            gains by misleading, `critic` by helping. Each false claim costs 0.5 either way.
        bounded: rescale the predictor's total to (R + 1) / 2.5, in [0, 1].

    Raises:
        OptionError: if an option is not one of these.
    """

    expected_form: ClassVar[str] = answer_form(("disruption",)).replace("\n", " / ")

    def __init__(
        self,
        spec: WorldSpec,
        level: str | None = None,
        *,
        target: Literal["disruption", "novelty", "both"] = "disruption",
        single_turn: bool = False,
        label: Literal["outcome", "expected"] = "outcome",
        challenger: Literal["adversary", "critic"] = "adversary",
        bounded: bool = False,
    ) -> None:
        for name, value, known in (
            ("target", target, list(TARGETS)),
            ("label", label, ["outcome", "expected"]),
            ("challenger", challenger, ["adversary", "critic"]),
            ("single_turn", single_turn, [False, True]),
            ("bounded", bounded, [False, True]),
        ):
            if value not in known:
                raise OptionError(f"{name} must be one of {known}, got {value!r}")
        if bounded:
            unit = {PREDICTOR: Range(0.0, 1.0), CHALLENGER: spec.step_range[CHALLENGER]}
            spec = replace(spec, step_range=unit, return_range=unit)
        super().__init__(spec, level)
        self.targets = TARGETS[target]
        self.single_turn = single_turn
        self.label = label
        self.challenger = challenger
        self.bounded = bounded
        self._docket: Docket | None = None
        self._first: Answer | None = None
        self._argument: Argument | None = None
        self._false = 0
        self._form = answer_form(self.targets).replace("\n", " / ")
        self._change = debate.misleading if challenger == "adversary" else debate.helping

    @property
    def turn_limit(self) -> int:
        """The most turns one role can speak: 2 in a debate, 1 otherwise."""
        return 1 if self.single_turn else self.spec.turn_limits[self.level]

    @property
    def docket(self) -> Docket:
        """The Task under way. Policies that play fair read its `evidence` only.

        Raises:
            TaskError: before the first `start`.
        """
        if self._docket is None:
            raise TaskError(f"{self.spec.id}: no Task was started yet")
        return self._docket

    @property
    def first_answer(self) -> Answer | None:
        """The predictor's answer before the challenge, `None` while there is none."""
        return self._first

    def task_from_paper(self, paper: Paper, index: int = 0) -> Task:
        """Make a Task of a real paper; facts of the tier that the record lacks are not shown.

        Args:
            paper: a record with a label for every target of this world.
            index: a number of your own, >= 0. The split is the one its contents belong to.

        Raises:
            DataError: if a label is missing.
        """
        labels = {"disruption": paper.disruption_label, "novelty": paper.novelty_label}
        for target in self.targets:
            if labels[target] is None:
                raise DataError(f"paper {paper.openalex_id} has no {target}_label to predict")
        instance = instance_of(evidence_of_paper(paper, self.level))
        return Task.create(
            world=self.spec.id,
            level=self.level,
            split=split_of(fingerprint(self.spec.id, canonical_json(instance))),
            index=index,
            instance=instance,
            answer={"source": paper.openalex_id, "labels": labels},
        )

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        """Return bounds of the best expected returns.

        The predictor's is what the posterior's likeliest label and the posterior itself earn, if
        the judge could be brought to believe the posterior exactly. For a real paper the gold label
        stands in for a posterior that nobody knows.
        """
        docket = _docket(task, self.targets, self.label, not self.single_turn)
        return {
            PREDICTOR: Optimum(self._best(docket.posteriors), exact=False),
            CHALLENGER: Optimum(0.0 if self.single_turn else 1.0, exact=self.single_turn),
        }

    def _best(self, posteriors: Sequence[Probabilities]) -> float:
        """Expected total of reporting `posteriors` to a judge that agrees."""
        shares = 1.0 / len(posteriors)
        right = sum(debate.correctness(likeliest(p), p) for p in posteriors) * shares
        loss = sum(debate.half_brier(p, p) for p in posteriors) * shares
        total = right + debate.reasoning(1.0, loss) + debate.adaptation(loss, loss)
        return (total - debate.TOTAL.low) / _SPAN if self.bounded else total

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return instance_of(draw_evidence(rng, self.level))

    def _solve(self, instance: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        evidence = evidence_of(instance)
        outcome = draw_outcome(rng, evidence)
        return {
            "source": "synthetic",
            "labels": outcome.labels(),
            "posteriors": {target: posterior(evidence, target) for target in LABELS},
            "outcome": outcome._asdict(),
        }

    def _begin(self, task: Task) -> Turn:
        self._docket = _docket(task, self.targets, self.label, not self.single_turn)
        self._first = self._argument = None
        return Turn(PREDICTOR, self._docket.opening)

    def _respond(self, text: str, complete: bool) -> Turn:
        docket = self.docket
        if self._first is not None and self._argument is None:
            self._argument = read_argument(text, self.targets, complete=complete)
            claims = self._argument.claims
            self._false = len([claim for claim in claims if not claim.holds(docket.evidence)])
            return Turn(PREDICTOR, rejoinder(self._argument))
        answer = read_answer(text, self.targets, complete=complete)
        if answer is None:
            said = complaint(text, self._form, complete=complete)
            terms = self._terms(_MALFORMED, 0.0)
            return self._end(PREDICTOR, said, terms, StopReason.MALFORMED, {"well_formed": 0.0})
        if self._first is None:
            self._first = answer
            if not self.single_turn:
                prompt = challenge_prompt(docket.description, docket.evidence, self.targets, answer)
                return Turn(CHALLENGER, prompt)
        return self._settle(docket, self._first, answer)

    def _settle(self, docket: Docket, first: Answer, final: Answer) -> Turn:
        """Pay both roles for a complete debate."""
        evidence, truths = docket.evidence, docket.truths
        heard, validity = verify(final.claims, evidence)
        share = 1.0 / len(truths)
        before = after = judged = right = 0.0
        for k, truth in enumerate(truths):
            before += debate.half_brier(first.reports[k], truth) * share
            after += debate.half_brier(final.reports[k], truth) * share
            judged += debate.half_brier(judge(heard, self.targets[k]), truth) * share
            right += debate.correctness(final.labels[k], truth) * share
        earned = {
            "correctness": right,
            "reasoning": debate.reasoning(validity, judged),
            "adaptation": debate.adaptation(before, after),
        }
        metrics = debate_metrics(docket.gold, first.labels, final.labels, before - after, validity)
        if self._argument is not None:
            metrics |= challenge_metrics(
                first.labels != final.labels,
                before - after,
                len(self._argument.claims),
                self._false,
            )
        terms = self._terms(earned, self._change(before, after))
        return self._end(PREDICTOR, "", terms, StopReason.COMPLETED, metrics)

    def _terms(self, earned: Mapping[str, float], change: float) -> dict[str, dict[str, float]]:
        """Terms of both roles; the challenger's false claims cost however the debate ended."""
        parts = dict(earned)
        if self.bounded:
            parts["correctness"] -= debate.TOTAL.low
            parts = {name: value / _SPAN for name, value in parts.items()}
        terms = {PREDICTOR: parts}
        if self._argument is not None:
            false = debate.false_claims(self._false)
            terms[CHALLENGER] = {"change": change, "false_claims": false}
        return terms


@lru_cache(maxsize=16384)
def _docket(task: Task, targets: tuple[Target, ...], label: str, debated: bool) -> Docket:
    """Work out once what every step on `task` needs."""
    evidence = evidence_of(task.instance)
    gold, posteriors = [], []
    known = "posteriors" in task.answer
    if label == "expected" and not known:
        raise TaskError("label='expected' needs a posterior, which a real paper does not have")
    try:
        for target in targets:
            place = LABELS[target].index(task.answer["labels"][target])
            gold.append(place)
            a, b, c = task.answer["posteriors"][target] if known else _certain(place)
            posteriors.append((float(a), float(b), float(c)))
    except (KeyError, TypeError, ValueError) as error:
        raise TaskError(f"damaged answer in a Task of {task.world}: {error!r}") from error
    truths = posteriors if label == "expected" else [_certain(place) for place in gold]
    return Docket(
        evidence,
        describe(evidence),
        opening(evidence, targets, debated=debated),
        tuple(gold),
        tuple(truths),
        tuple(posteriors),
        known,
    )


def _certain(place: int) -> Probabilities:
    """All probability on one label."""
    a, b, c = (float(k == place) for k in range(3))
    return a, b, c


def likeliest(report: Probabilities) -> int:
    """Position of the largest probability, the first of equals."""
    return report.index(max(report))
