"""Faults planted in TRL's trainer are called wrong, and most of them by name."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `trl`")

import torch
from trl.trainer import grpo_trainer
from trl.trainer.grpo_trainer import GRPOTrainer

from tokengym.agents.probe import trl_trainers
from tokengym.agents.probe.campaign import ALL_WORLDS, REFERENCE
from tokengym.agents.probe.trl_trainers import open_trainer
from tokengym.agents.probe.verdict import ProbeVerdict, VerdictKind, worst

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.usefixtures("eight_worlds"),
    pytest.mark.filterwarnings("ignore"),
]
Inputs = dict[str, Any]
TWICE = "second update"


class OfInputs(GRPOTrainer):
    """A trainer that changes what its loss gets."""

    def change(self, inputs: Inputs) -> None:
        raise NotImplementedError

    def _compute_loss(self, model: Any, inputs: Inputs) -> Any:
        changed = dict(inputs)
        self.change(changed)
        return super()._compute_loss(model, changed)  # type: ignore[no-untyped-call]


def of_inputs(change: Callable[[Any, Inputs], None]) -> type[GRPOTrainer]:
    return type("Faulty", (OfInputs,), {"change": change})


def advantages(change: Callable[[torch.Tensor], torch.Tensor]) -> type[GRPOTrainer]:
    def changed(self: Any, inputs: Inputs) -> None:
        inputs["advantages"] = change(inputs["advantages"])

    return of_inputs(changed)


def masks(change: Callable[[torch.Tensor, Inputs], torch.Tensor]) -> type[GRPOTrainer]:
    """Change which tokens are trained, attention left as it is."""

    def changed(self: Any, inputs: Inputs) -> None:
        trained = inputs["tool_mask"] * inputs["completion_mask"]
        inputs["tool_mask"] = change(trained, inputs)

    return of_inputs(changed)


def without_last(trained: torch.Tensor, inputs: Inputs) -> torch.Tensor:
    later = trained.flip(1).cumsum(1).flip(1)
    return trained * (later > 1)


def later_turns(trained: torch.Tensor, inputs: Inputs) -> torch.Tensor:
    """Leave the turn after the last text of the environment."""
    read = inputs["completion_mask"] * (1 - trained)
    after: torch.Tensor = read.flip(1).cumsum(1).flip(1)
    return trained * (after == 0)


def late(trained: torch.Tensor, inputs: Inputs) -> torch.Tensor:
    moved = trained.roll(1, 1)
    moved[:, 0] = 0
    return moved


def early(trained: torch.Tensor, inputs: Inputs) -> torch.Tensor:
    moved = trained.roll(-1, 1)
    moved[:, -1] = 0
    return moved


def attend_left(self: Any, inputs: Inputs) -> None:
    inputs["prompt_mask"] = torch.ones_like(inputs["prompt_mask"])


def train_padding(self: Any, inputs: Inputs) -> None:
    pads = 1 - inputs["completion_mask"]
    inputs["tool_mask"] = inputs["tool_mask"] + pads * (inputs["tool_mask"] == 0)
    inputs["completion_mask"] = torch.ones_like(inputs["completion_mask"])


def forget_ratio(self: Any, inputs: Inputs) -> None:
    inputs.pop("old_per_token_logps", None)


def by_length(self: Any, inputs: Inputs) -> None:
    counts = (inputs["tool_mask"] * inputs["completion_mask"]).sum(1)
    inputs["advantages"] = inputs["advantages"] / counts


def drop_second_pass(self: Any, inputs: Inputs) -> None:
    if self._step % 2:
        inputs["advantages"] = inputs["advantages"] * 0.0


def turn_penalty(self: Any, inputs: Inputs) -> None:
    self.beta = -abs(self.beta)


def forget_penalty(self: Any, inputs: Inputs) -> None:
    self.beta = 0.0


class OneSlice(GRPOTrainer):
    """Trains on the first part of a generation again and again."""

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        super()._prepare_inputs(generation_batch)
        buffered: Any = self._buffered_inputs
        return buffered[0]


class Frozen(GRPOTrainer):
    """Half of the layers do not require gradients."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_("layers.0" not in name)


class Regularised(GRPOTrainer):
    """Adds the squares of the weights to the loss."""

    def _compute_loss(self, model: Any, inputs: Inputs) -> Any:
        squares = sum((value**2).sum() for value in model.parameters())
        loss = super()._compute_loss(model, inputs)  # type: ignore[no-untyped-call]
        return loss + 1e-4 * squares


class Curious(GRPOTrainer):
    """Has an entropy bonus that no setting asks for."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.entropy_coef, self._entropy_bonus_enabled = 0.05, True


class NextRewards(GRPOTrainer):
    """Pays each rollout for the next one."""

    def _calculate_rewards(self, *given: Any) -> Any:
        return super()._calculate_rewards(*given).roll(-1, 0)


class ClippedRewards(GRPOTrainer):
    """Clips rewards."""

    def _calculate_rewards(self, *given: Any) -> Any:
        return super()._calculate_rewards(*given).clamp(0, 1)


class Regrouped(GRPOTrainer):
    """Compares rollouts of different prompts."""

    def _calculate_rewards(self, *given: Any) -> Any:
        rewards, size = super()._calculate_rewards(*given), self.num_generations
        means = rewards.roll(2, 0).view(-1, size, 1).mean(1).repeat_interleave(size, 0)
        return rewards - means.roll(-2, 0)


def ignoring(**changed: Any) -> type[GRPOTrainer]:
    """Return a trainer that overrides settings after it read them."""

    class Ignoring(GRPOTrainer):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            for name, value in changed.items():
                setattr(self, name, value)

    return Ignoring


FAULTS: dict[str, tuple[type[GRPOTrainer], Mapping[str, Any], str, str]] = {
    "sign": (advantages(torch.neg), {}, ALL_WORLDS, "sign"),
    "negatives dropped": (
        *(advantages(lambda one: one.clamp(min=0)), {}),
        *(ALL_WORLDS, "negatives dropped"),
    ),
    "absolute": (advantages(torch.abs), {}, ALL_WORLDS, "absolute advantages"),
    "clipped advantages": (advantages(lambda one: one.clamp(-1, 1)), {}, ALL_WORLDS, ""),
    "shuffled": (advantages(lambda one: one.roll(1)), {}, ALL_WORLDS, ""),
    "next reward": (NextRewards, {}, ALL_WORLDS, "next reward"),
    "clipped rewards": (ClippedRewards, {}, ALL_WORLDS, "clipped rewards"),
    "regrouped": (Regrouped, {"scale_rewards": "none"}, ALL_WORLDS, ""),
    "late": (masks(late), {}, ALL_WORLDS, "mask late"),
    "early": (masks(early), {}, ALL_WORLDS, "mask early"),
    "observations": (
        *(masks(lambda one, inputs: inputs["completion_mask"]), {}),
        *(ALL_WORLDS, "observations trained"),
    ),
    "end": (masks(without_last), {}, ALL_WORLDS, "end untrained"),
    "last turn": (masks(later_turns), {}, ALL_WORLDS, "only the last turn"),
    "padding": (of_inputs(train_padding), {}, ALL_WORLDS, "padding trained"),
    "left padding": (of_inputs(attend_left), {}, ALL_WORLDS, "left padding"),
    "length": (of_inputs(by_length), {}, ALL_WORLDS, "ignored setting"),
    "length twice": (
        *(of_inputs(by_length), {"loss_type": "grpo"}),
        *(ALL_WORLDS, "double normalisation"),
    ),
    "half": (of_inputs(drop_second_pass), {}, ALL_WORLDS, "rollouts left out"),
    "one slice": (OneSlice, {}, ALL_WORLDS, "rollouts left out"),
    "frozen": (Frozen, {}, ALL_WORLDS, "frozen layers"),
    "regularised": (Regularised, {}, ALL_WORLDS, "weight decay"),
    "entropy": (Curious, {}, ALL_WORLDS, "an entropy bonus"),
    "scale ignored": (ignoring(scale_rewards="none"), {}, ALL_WORLDS, "ignored setting"),
    "loss ignored": (
        *(ignoring(loss_type="grpo"), {"loss_type": "dr_grpo"}),
        *(ALL_WORLDS, "ignored setting"),
    ),
    "truncated kept": (
        *(ignoring(mask_truncated_completions=False), {"mask_truncated_completions": True}),
        *(ALL_WORLDS, "ignored setting"),
    ),
    "no ratio": (of_inputs(forget_ratio), {}, TWICE, "stale without ratio"),
    "no clip": (ignoring(epsilon_low=9.0, epsilon_high=9.0), {}, TWICE, "ignored setting"),
    "sign of the penalty": (
        *(of_inputs(turn_penalty), {}),
        *(REFERENCE, "sign of: with a KL penalty to the reference"),
    ),
    "no penalty": (of_inputs(forget_penalty), {"beta": 0.1}, TWICE, "ignored setting"),
}
"""By name: the trainer, its settings, the case that shows the fault, and the fault's short name;
empty if it is only described."""


def judged(
    trainer: type[GRPOTrainer],
    settings: Mapping[str, Any],
    case: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> ProbeVerdict:
    monkeypatch.setattr(trl_trainers, "GRPOTrainer", trainer)
    with open_trainer("trl", folder, settings) as probed:
        column = next(iter(probed.columns))
        return worst(probed.run(case, probed.columns[column], 0).verdicts())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_of_trl_is_wrong(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer, settings, case, name = FAULTS[fault]
    verdict = judged(trainer, settings, case, tmp_path, monkeypatch)
    assert (verdict.kind, verdict.name) == (VerdictKind.WRONG, name), verdict
    assert verdict.off > 0.001


def test_a_temperature_that_the_gradient_forgets_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fused = grpo_trainer.add_fused_lm_head

    def forgetful(model: Any, temperature: float, **given: Any) -> None:
        fused(model, temperature=1.0, **given)

    monkeypatch.setattr(grpo_trainer, "add_fused_lm_head", forgetful)
    settings = {"temperature": 0.7}
    verdict = judged(GRPOTrainer, settings, ALL_WORLDS, tmp_path, monkeypatch)
    assert (verdict.kind, verdict.name) == (VerdictKind.WRONG, "temperature"), verdict


def test_the_right_trainer_is_not_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for case in (ALL_WORLDS, TWICE, REFERENCE):
        verdict = judged(GRPOTrainer, {}, case, tmp_path, monkeypatch)
        assert (verdict.kind, verdict.biases) == (VerdictKind.CHOICE, ("standardised",)), verdict
