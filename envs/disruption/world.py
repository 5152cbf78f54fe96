"""The debate: a predictor answers, a challenger argues, the predictor answers again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from tokengym.envs.core.errors import DataError, OptionError, require_one_of
from tokengym.envs.core.form import ReplyForm, nearness
from tokengym.envs.core.grammar import Reading
from tokengym.envs.core.label_noise import outcomes_of_label
from tokengym.envs.core.optimum import Optimum
from tokengym.envs.core.seeding import SPLITS, generator
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn, expected_return
from tokengym.envs.core.world import World
from tokengym.envs.disruption.compiled import CompiledDebate, compile_task
from tokengym.envs.disruption.data.dataset import (
    cited_above_in,
    labelled,
    load_papers,
    split_of_paper,
)
from tokengym.envs.disruption.evidence import (
    NOTED_LEVELS,
    PAPER_LEVELS,
    SINGLE_LEVELS,
    evidence_of,
    evidence_of_paper,
    instance_of,
)
from tokengym.envs.disruption.fitted_judge import fitted_judge
from tokengym.envs.disruption.generator import draw_challenger, draw_evidence, draw_outcome
from tokengym.envs.disruption.grammar import (
    Argument,
    PredictorAnswer,
    answer_forms,
    answer_in_words,
    argument_in_words,
    read_answer,
    read_argument,
)
from tokengym.envs.disruption.judge import LITERATURE
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.envs.disruption.literature import Probabilities, posterior
from tokengym.envs.disruption.metrics import (
    challenge_metrics,
    classification_metrics,
    debate_metrics,
    response_metrics,
)
from tokengym.envs.disruption.oracle import best_expected
from tokengym.envs.disruption.paper import Paper
from tokengym.envs.disruption.scores import AnswerScores, costs_of, scores_of
from tokengym.envs.disruption.texts import macros
from tokengym.rewards import debate
from tokengym.rewards.bounds import GRID, Range
from tokengym.rewards.form import FORM_SHARE, FormAccount

PREDICTOR = "predictor"
CHALLENGER = "challenger"
_USUAL: Mapping[str, Any] = {
    "target": "disruption",
    "single_turn": False,
    "label": "outcome",
    "challenger": "adversary",
    "reward": "proper",
    "bounded": False,
}
TARGETS: Mapping[str, tuple[Target, ...]] = {
    "disruption": ("disruption",),
    "novelty": ("novelty",),
    "both": ("disruption", "novelty"),
}
_NOTHING_READ = "(nothing that could be read)"
"""Text that a challenger reads instead of a malformed answer."""
_SHIFT, _SPAN = 2.0, 4.0
"""Shift and divisor of returns under the option `bounded`: no rounding leaves [0, 1]."""


class DisruptionWorld(World[CompiledDebate]):
    """Is a paper disruptive, consolidating or neutral? Predict, be challenged, answer again.

    Description:
        A predictor judges what came of a paper from what was known early on, a challenger argues
        against it, and the predictor answers again. Papers are of a synthetic literature whose
        posterior is known exactly, or a user's own. The level is what is shown of it: at `L0`
        title, year, field and a long abstract, at `L2` a short abstract, facts of the reference
        list, the number of authors, and the first year's citers by kind with the percentile of the
        citations within field and year, at `first_year` those citers without a challenger, at
        `private` two facts of the list. At these two the
        challenger has notes on the next citers (second to fourth year, or first) and is of a kind
        that the Task draws: honest, adversarial, or careless with the columns of its notes mixed
        up. Its notes on four earlier papers are shown with their outcomes. `L0` and
        `examples` are warm-ups, where a challenge changes nothing. At `examples` the reference list
        is shown, with twelve labelled papers of the same literature: what the facts mean is drawn
        for each Task and follows from those alone.

    Observation:
        The predictor reads the evidence, then the challenge; the challenger reads the evidence and
        the predictor's answer. Nothing that either reads depends on what came of the paper.

    Action:
        Predictor: `LABEL neutral`, `P 0.2 0.3 0.5`, and up to three claims `CLAIM n_i >= 2` or
        `QUOTE "words"`, each on a line of its own. Challenger: `ARGUE label` and up to two claims,
        or `ARGUE nothing`, which reads "are you sure?", as do malformed arguments.

    Reward:
        Predictor, in [-1.8, 1.9375]: correctness (0.5 or -0.5, the final label) + calibration (up
        to 1.25, both reports by their Brier scores) + consistency (down to -0.5, for labels that
        contradict their reports) + reasoning (-0.375 to 0.1875, what the final claims improve on a
        frozen judge's prior) + false_claims (-0.125 each); see `rewards.debate`. A malformed first
        answer counts as the worst report, a malformed final one earns the low ends of what it
        decides; each costs form, up to 0.025 by how far it is from the form. Challenger, in
        [-1.05, 0.25]: a quarter of the change it brought about in the predictor's half-Brier, less
        0.25 for each claim that is false by what it was shown, and less 0.005 to 0.05 for a
        malformed argument; where it has notes less 0.25 if it states no count of them.

    Episode end:
        With the predictor's second answer, or its first one if `single_turn`.

    Args:
        spec: the world's declaration.
        level: what is shown: `L2` (default), `first_year`, `L0`, `private` or `examples`.
        target: `disruption`, `novelty` or `both` (correctness, losses and judge then average).
        single_turn: the first answer is final and nobody challenges it, as always at `first_year`.
        label: `outcome` scores against what came of the paper; `expected` against its posterior,
            which removes label noise; `replay:K` against K outcomes drawn of it, K up to 64. The
            latter two exist for the synthetic literature only.
        challenger: what the challenger is paid for: an `adversary` for misleading, a `critic` for
            helping. Where it has notes its kind decides, and an adversary is the only choice.
        reward: `proper`, as above, or `original`: R_correctness (1 if all final labels are right,
            else -1) + R_reasoning (0 to 0.3, the true share of claims that tell the judge anything,
            times what it makes of them) + R_adaptation (0 to 0.2, both reports by Brier scores), in
            [-1, 1.5]; -1 for a malformed final answer.
        bounded: rescale the predictor's total R to (R + 2) / 4, in [0, 1].
        data: papers to play, from JSON lines or folders of `tokengym data papers` with its splits.
            Without the target's label they are left out; the judge is fitted to those of train,
            and for `original` judges each of them by the others.
        prompt: `full` states the rules in sentences and lets a model think before it answers;
            `direct` is the same, asking for the answer alone; `terse` is short, for tiny models
            that were trained on it.

    Raises:
        OptionError: if an option is not one of these.
        DataError: if a file of `data` is damaged or holds no paper.

    References:
        Funk and Owen-Smith (2017), A dynamic network measure of technological change.
        Uzzi et al. (2013), Atypical combinations and scientific impact.
        Wu, Wang and Evans (2019), Large teams develop and small teams disrupt science.

    Version history:
        v2: challengers argue for the label that their counts alone make likeliest, as stated.
        v1: at `L2` a challenger of unknown kind has notes on later years; authors and the citation
            percentile are shown.
        v0: first.
    """

    expected_form: ClassVar[str] = "LABEL neutral\nP 0.2 0.3 0.5"

    def __init__(
        self,
        spec: WorldSpec,
        level: str | None = None,
        *,
        target: Literal["disruption", "novelty", "both"] = "disruption",
        single_turn: bool = False,
        label: str = "outcome",
        challenger: Literal["adversary", "critic"] = "adversary",
        reward: Literal["proper", "original"] = "proper",
        bounded: bool = False,
        data: str | Path | Sequence[str | Path] | None = None,
        prompt: str = "full",
    ) -> None:
        for name, value, choices in (
            ("target", target, list(TARGETS)),
            ("challenger", challenger, ["adversary", "critic"]),
            ("reward", reward, list(debate.REWARDS)),
            ("single_turn", single_turn, [False, True]),
            ("bounded", bounded, [False, True]),
        ):
            require_one_of(name, value, choices)
        outcomes_of_label(label)
        if data is not None and label != "outcome":
            raise OptionError(f"label={label!r} needs posteriors, which papers of `data` lack")
        total = Range(0.0, 1.0) if bounded else debate.total_range(debate.REWARDS[reward])
        ranges = {PREDICTOR: total, CHALLENGER: spec.step_range[CHALLENGER]}
        super().__init__(
            replace(spec, step_range=ranges, return_range=ranges), level, prompt=prompt
        )
        if self.level in NOTED_LEVELS and data is None and challenger == "critic":
            raise OptionError(
                f"at the level {self.level!r} each Task draws what its challenger is paid for: "
                f"challenger must be 'adversary', the default, got {challenger!r}"
            )
        self.target = target
        self.targets = TARGETS[target]
        self.single_turn = single_turn or self.level in SINGLE_LEVELS
        self.label = label
        self.challenger = challenger
        self.reward = reward
        self.bounded = bounded
        self._papers = None if data is None else load_papers(data)
        self.data_report = self._papers and self._papers.report
        self.read_answer: Callable[..., Reading[PredictorAnswer]] = read_answer
        self._first: PredictorAnswer | None = None
        self._first_read, self._first_said = True, ""
        self._account = FormAccount(1)
        self._argument: Argument | None = None
        self._challenge_costs: Mapping[str, float] = {}

    @property
    def turn_limit(self) -> int:
        """The most turns that one role can have: 2 in a debate, 1 otherwise."""
        return 1 if self.single_turn else self.spec.turn_limits[self.level]

    @property
    def first_answer(self) -> PredictorAnswer | None:
        """The predictor's answer before the challenge, of thirds if malformed; or `None`."""
        return self._first

    @property
    def argument(self) -> Argument | None:
        """The argument as the predictor reads it, or `None`."""
        return self._argument

    @property
    def reply_form(self) -> ReplyForm:
        """A predictor's lines, or a challenger's while the first answer is unchallenged."""
        challenged = self._first is not None and self._argument is None
        words = argument_in_words(self.targets) if challenged else answer_in_words(self.targets)
        return ReplyForm(words, single_line=False)

    def task_from_paper(self, paper: Paper, index: int = 0, split: str | None = None) -> Task:
        """Make a Task of a real paper; facts of the tier that the record lacks are not shown.

        Its citations are ranked among those of `data`, where that has enough of its field and year.

        Args:
            paper: a record with a label for every target of this world.
            index: a number of your own, >= 0.
            split: the one it is in; if `None`, the one its text belongs to.

        Raises:
            DataError: if a label is missing.
            OptionError: at the level `examples`, whose papers are drawn.
        """
        if self.level not in PAPER_LEVELS:
            raise OptionError("the level 'examples' draws its papers; play others at another level")
        labels = paper.labels()
        for target in self.targets:
            if labels[target] is None:
                raise DataError(f"paper {paper.openalex_id} has no {target}_label to predict")
        split = split_of_paper(paper) if split is None else split
        above = None if self._papers is None else cited_above_in(self._papers, paper)
        evidence = evidence_of_paper(paper, self.level, above)
        rng = generator("disruption challenger", evidence.text, evidence.year)
        instance = instance_of(draw_challenger(rng, evidence))
        answer = {
            "source": paper.openalex_id,
            "labels": labels,
            "windows": paper.labels_by_window(),
        }
        return self._new_task(split, index, instance, answer)

    def _scoring_options(self) -> Mapping[str, Any]:
        expected = {**_USUAL, "single_turn": self.level in SINGLE_LEVELS}
        return {name: v for name, usual in expected.items() if (v := getattr(self, name)) != usual}

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        """Return bounds of the best expected returns.

        The predictor's is what the posterior and its likeliest label earn if the judge believes
        the posterior exactly; with hidden notes the mean over all that a challenger may say, of
        whatever kind, after the first label that draws most from it. For a real paper, whose
        posterior is unknown, the gold label replaces it.
        """
        compiled = self.compile(task)
        argued = compiled.known and not self.single_turn
        total = best_expected(compiled.evidence, compiled.own, self.reward, argued)
        if self.bounded:
            total = (total + _SHIFT) / _SPAN
        most = 0.0 if self.single_turn else debate.CHALLENGER_TOTAL.high
        return {
            PREDICTOR: Optimum(total, exact=False),
            CHALLENGER: Optimum(most, exact=self.single_turn),
        }

    def _sizes(self) -> Mapping[str, int] | None:
        return None if self._papers is None else {k: len(self._usable(k)) for k in SPLITS}

    def _task_of_record(self, split: str, index: int) -> Task:
        return self.task_from_paper(self._usable(split)[index], index, split)

    def _usable(self, split: str) -> tuple[Paper, ...]:
        assert self._papers is not None
        return labelled(self._papers, split, self.targets)

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return instance_of(draw_evidence(rng, self.level))

    def _split_key(self, instance: Mapping[str, Any]) -> object:
        """Return the predictor's evidence; what the challenger knows comes later."""
        hidden = ("private", "kind", "notes")
        return {name: value for name, value in instance.items() if name not in hidden}

    def _solve(self, instance: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        evidence = evidence_of(instance)
        outcome = draw_outcome(rng, evidence)
        return {
            "source": "synthetic",
            "labels": outcome.labels(),
            "posteriors": {target: posterior(evidence.known, target) for target in LABELS},
            "outcome": outcome._asdict(),
        }

    def _compile_options(self) -> tuple[object, ...]:
        apart = self.reward == "original"
        judge = fitted_judge(self._papers, held_out=apart) if self._papers else LITERATURE
        paid = self.challenger, self.reward
        return self.targets, self.label, not self.single_turn, *paid, self.prompt, judge

    @classmethod
    def _compile(cls, task: Task, *options: Any) -> CompiledDebate:
        return compile_task(task, *options)

    def _begin(self, task: Task) -> Turn:
        self._first = self._argument = None
        self._first_read, self._first_said = True, ""
        self._account = FormAccount(self.turn_limit)
        return Turn(PREDICTOR, self.compiled.opening)

    def _respond(self, text: str, complete: bool) -> Turn:
        if self._first is not None and self._argument is None:
            return self._hand_on(text, complete)
        answer, said = self.read_answer(text, self.targets, complete=complete)
        form = 1.0
        if answer is None:
            form = max(nearness(text, *lines) for lines in answer_forms(self.targets))
            self._account.note_malformed(form)
        elif not complete:
            self._account.note_cut()
            form = 0.0
        in_form = {"well_formed": float(answer is not None), "form": form}
        if self._first is None and not self.single_turn:
            return self._ask(answer, said, in_form)
        return self._settle(answer, said, in_form)

    def _ask(self, answer: PredictorAnswer | None, said: str, in_form: dict[str, float]) -> Turn:
        """Show the first answer to the challenger; a malformed one is scored as the worst."""
        self._first, self._first_said = answer or _unread(self.targets), said
        self._first_read = answer is not None
        before, after = self.compiled.challenge
        shown = answer.write(self.targets) if answer else _NOTHING_READ
        return Turn(CHALLENGER, f"{before}{shown}{after}", metrics=in_form)

    def _hand_on(self, text: str, complete: bool) -> Turn:
        """Check the challenger's argument and pass it to the predictor."""
        lost = 0.0
        argument = read_argument(text, self.targets, complete=complete)
        form = float(complete)
        if argument is None:
            words = (word for target in self.targets for word in LABELS[target])
            form = max(nearness(text, f"ARGUE {word}") for word in words)
        if argument is None or not complete:
            lost = debate.challenger_form(form)
        in_form = {"well_formed": float(argument is not None), "form": form}
        self._argument = argument = argument or Argument(None, ())
        self._challenge_costs = {"form": lost, **costs_of(argument, self.compiled.evidence)}
        stated = " and ".join(claim.statement for claim in argument.claims)
        said = macros(f"prompt_{self.prompt}").rejoinder(self.compiled.case, argument.label, stated)
        if self._first_said:
            said = f"{self._first_said}\n{said}"
        return Turn(PREDICTOR, said, metrics=in_form)

    def _settle(
        self, final: PredictorAnswer | None, said: str, in_form: Mapping[str, float]
    ) -> Turn:
        """Pay both roles for a debate; a malformed final answer earns the least of its terms."""
        compiled, first = self.compiled, final if self.single_turn else self._first
        first = first if self.single_turn or self._first_read else None
        known = compiled.evidence.known
        heard = self._argument.claims if self._argument is not None else ()
        granted = [claim for claim in heard if claim.holds(known)]
        stated = final.claims if final else ()
        claims, false = compiled.judge.verify(stated, compiled.evidence, granted)
        if self.reward == "original":
            claims = tuple(compiled.judge.evidence_among(claims, self.targets))
        verdicts = [compiled.judge.believe(claims, target) for target in self.targets]
        change = debate.misleading if compiled.case.aim == "adversary" else debate.helping
        form = self._account.form - FORM_SHARE if self.reward == "proper" else 0.0

        def scored(truths: Sequence[Probabilities]) -> AnswerScores:
            return scores_of(first, final, verdicts, truths, len(claims), false, self.reward)

        def paid(scores: AnswerScores) -> dict[str, dict[str, float]]:
            # A challenger has moved nothing where there are not two reports.
            changed = change(scores.before, scores.after) if first and final else 0.0
            return self._terms({**scores.terms, "form": form}, changed)

        scores = scored(compiled.truths)
        labels = final.labels if final else None
        classes = classification_metrics(self.targets, compiled.gold, labels, compiled.windows)
        metrics = {**in_form, **classes}
        if final is not None:
            metrics["half_brier"] = scores.after
            if len(self.targets) == 1:
                metrics["confidence"] = final.reports[0][final.labels[0]]
        if first is not None and final is not None:
            validity = 1.0 - false / len(final.claims) if final.claims else 0.0
            gain, gold = scores.before - scores.after, compiled.gold
            metrics |= debate_metrics(gold, first.labels, final.labels, gain, validity)
            if self._argument is not None:
                flipped, lies = first.labels != final.labels, len(heard) - len(granted)
                kind = compiled.evidence.kind
                metrics |= challenge_metrics(flipped, gain, len(heard), lies, kind)
                answers = gold, first.labels, final.labels
                metrics |= response_metrics(self._argument.label, self.targets, *answers)
        if compiled.known:
            certain = compiled.truths == compiled.posteriors
            metrics |= self._expected(paid(scores if certain else scored(compiled.posteriors)))
        reason = StopReason.COMPLETED if final else StopReason.MALFORMED
        return self._end(PREDICTOR, said, paid(scores), reason, metrics)

    def _expected(self, terms: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
        """Return the metrics of both roles' expected returns; a challenger not asked earns 0."""
        return {
            expected_return(role): sum([round(GRID * x) for x in terms.get(role, {}).values()])
            / GRID
            for role in self.spec.roles
        }

    def _terms(self, earned: Mapping[str, float], change: float) -> dict[str, dict[str, float]]:
        """Terms of both roles; what the challenger said costs it however it ended."""
        parts = dict(earned)
        if self.bounded:
            parts["correctness"] += _SHIFT
            parts = {name: value / _SPAN for name, value in parts.items()}
        terms = {PREDICTOR: parts}
        if self._argument is not None:
            terms[CHALLENGER] = {"change": change, **self._challenge_costs}
        return terms


def _unread(targets: Sequence[Target]) -> PredictorAnswer:
    """Return what stands for a malformed answer before a challenger: nothing is known."""
    third = 1.0 / 3.0
    return PredictorAnswer((2,) * len(targets), ((third, third, third),) * len(targets), ())
