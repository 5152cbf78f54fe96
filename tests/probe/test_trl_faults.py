"""Faults planted in TRL's trainer are called wrong, and most of them by name."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

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


def of_inputs(change: Callable[[Any, Inputs], None]) -> type[GRPOTrainer]:
    """Return a trainer that changes what its loss gets."""

    class Faulty(GRPOTrainer):
        def _compute_loss(self, model: Any, inputs: Inputs) -> Any:
            change(self, changed := dict(inputs))
            return super()._compute_loss(model, changed)  # type: ignore[no-untyped-call]

    return Faulty


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


class Planted(NamedTuple):
    """A faulty trainer, the name of its fault, empty if it is described, and what shows it."""

    trainer: type[GRPOTrainer]
    name: str = ""
    settings: Mapping[str, Any] = {}
    case: str = ALL_WORLDS


KL_SIGN, IGNORED = "sign of: with a KL penalty to the reference", "ignored setting"
CUT = {"mask_truncated_completions": True}
FAULTS = {
    "sign": Planted(advantages(torch.neg), "sign"),
    "negatives dropped": Planted(advantages(lambda one: one.clamp(min=0)), "negatives dropped"),
    "absolute": Planted(advantages(torch.abs), "absolute advantages"),
    "clipped advantages": Planted(advantages(lambda one: one.clamp(-1, 1))),
    "shuffled": Planted(advantages(lambda one: one.roll(1))),
    "next reward": Planted(NextRewards, "next reward"),
    "clipped rewards": Planted(ClippedRewards, "clipped rewards"),
    "regrouped": Planted(Regrouped, "", {"scale_rewards": "none"}),
    "late": Planted(masks(late), "mask late"),
    "early": Planted(masks(early), "mask early"),
    "observations": Planted(
        masks(lambda _, given: given["completion_mask"]), "observations trained"
    ),
    "end": Planted(masks(without_last), "end untrained"),
    "last turn": Planted(masks(later_turns), "only the last turn"),
    "padding": Planted(of_inputs(train_padding), "padding trained"),
    "left padding": Planted(of_inputs(attend_left), "left padding"),
    "length": Planted(of_inputs(by_length), IGNORED),
    "length twice": Planted(of_inputs(by_length), "double normalisation", {"loss_type": "grpo"}),
    "half": Planted(of_inputs(drop_second_pass), "rollouts left out"),
    "one slice": Planted(OneSlice, "rollouts left out"),
    "frozen": Planted(Frozen, "frozen layers"),
    "regularised": Planted(Regularised, "weight decay"),
    "entropy": Planted(Curious, "an entropy bonus"),
    "scale ignored": Planted(ignoring(scale_rewards="none"), IGNORED),
    "loss ignored": Planted(ignoring(loss_type="grpo"), IGNORED, {"loss_type": "dr_grpo"}),
    "truncated kept": Planted(ignoring(mask_truncated_completions=False), IGNORED, CUT),
    "no ratio": Planted(of_inputs(forget_ratio), "stale without ratio", {}, TWICE),
    "no clip": Planted(ignoring(epsilon_low=9.0, epsilon_high=9.0), IGNORED, {}, TWICE),
    "sign of the penalty": Planted(of_inputs(turn_penalty), KL_SIGN, {}, REFERENCE),
    "no penalty": Planted(of_inputs(forget_penalty), IGNORED, {"beta": 0.1}, TWICE),
}


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
    trainer, name, settings, case = FAULTS[fault]
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
