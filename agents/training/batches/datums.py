"""Conversion between numbers and Tinker's tensors."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import tinker
from tinker_cookbook.rl.data_processing import trajectory_to_data
from tinker_cookbook.rl.metrics import compute_kl_sample_train
from tinker_cookbook.rl.types import Trajectory, TrajectoryGroup

from tokengym.agents.training.batches.credit import TurnTable
from tokengym.rewards.arrays import Floats

CREDIT = "credit"
"""Name of the metric in which a world reports a turn's exact credit."""


def turn_table(groups: Sequence[TrajectoryGroup]) -> TurnTable:
    """Return the turns of groups as arrays.

    Rewards of a group beyond its turns (`final_rewards_G`) are earned at the last turn.

    Args:
        groups: the cookbook's groups; they may differ in size and length.
        greedy: return of the greedy rollout of each group's Task.
    """
    most = max((len(group.trajectories_G) for group in groups), default=0)
    longest = max(
        (len(rollout.transitions) for group in groups for rollout in group.trajectories_G),
        default=1,
    )
    shape = (len(groups), most, longest)
    rewards, credits, tokens = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    taken = np.zeros(shape, np.bool_)
    for n, group in enumerate(groups):
        for g, (rollout, final) in enumerate(
            zip(group.trajectories_G, group.final_rewards_G, strict=True)
        ):
            steps, length = rollout.transitions, len(rollout.transitions)
            rewards[n, g, :length] = [step.reward for step in steps]
            rewards[n, g, length - 1] += final
            tokens[n, g, :length] = [len(step.ac.tokens) for step in steps]
            credits[n, g, :length] = [float(step.metrics.get(CREDIT, 0.0)) for step in steps]
            taken[n, g, :length] = True
    return TurnTable(rewards, taken, tokens, credits)


def tokens_of(group: TrajectoryGroup) -> int:
    """Return the tokens a group's rollouts read and sampled, counting every observation in full."""
    return sum(
        step.ob.length + len(step.ac.tokens)
        for rollout in group.trajectories_G
        for step in rollout.transitions
    )


def rollout_data(rollout: Trajectory, advantages_T: Sequence[float]) -> list[tinker.Datum]:
    """Return a rollout as training data: one Datum wherever every observation extends the last.

    The cookbook's `trajectory_to_data`, in which every turn has its own advantage: inputs are all
    tokens but the last, targets all but the first; `logprobs` (as sampled), `advantages` and `mask`
    are 0 at what was read.

    Args:
        rollout: of text alone.
        advantages_T: the advantage of each turn's tokens.
    """
    data = trajectory_to_data(rollout, 1.0)
    counts_T = [len(step.ac.tokens) for step in rollout.transitions]
    rest = np.repeat(np.asarray(advantages_T, np.float32), counts_T)
    for datum in data:
        inputs = datum.loss_fn_inputs
        own = np.asarray(inputs["mask"].to_numpy()) > 0
        advantages = np.zeros(own.shape, np.float32)
        advantages[own], rest = rest[: own.sum()], rest[own.sum() :]
        inputs["advantages"] = tinker.TensorData.from_numpy(advantages)
    return data


def datum(
    tokens: Sequence[int], logprobs: Sequence[float | None], advantages: Sequence[float]
) -> tinker.Datum:
    """Return a rollout as training data for a policy gradient, with an advantage for each token.

    It is what `importance_sampling`, `ppo` and `cispo` take. Inputs are all tokens but the last,
    targets all but the first.

    Args:
        tokens: what was read and sampled, in order, at least two.
        logprobs: as sampled: of all tokens, or of the last ones. They are looked at only where the
            advantage is not 0; elsewhere they may be `None`, as those of a prompt's first token.
        advantages: of the same tokens; 0 for those that were read.

    Raises:
        ValueError: if there are fewer than two tokens, not as many advantages as log-probabilities,
            more of them than tokens, or a token with an advantage has no log-probability.
    """
    count, length = len(tokens), len(logprobs)
    if count < 2 or len(advantages) != length or length > count:
        raise ValueError(
            "a datum needs two tokens or more and, for as many of the last of them, "
            f"log-probabilities and advantages; got {count}, {length} and {len(advantages)}"
        )
    sampled_T, advantages_T = np.zeros((2, count), np.float32)
    advantages_T[count - length :] = advantages
    # Read tokens have no log-probability, or NaN, which would stay NaN when multiplied by 0.
    known = [0.0 if not paid else value for value, paid in zip(logprobs, advantages, strict=True)]
    sampled_T[count - length :] = [np.nan if value is None else value for value in known]
    if advantages_T[0] or not (np.isfinite(sampled_T) & np.isfinite(advantages_T)).all():
        raise ValueError(
            "a token with an advantage must follow another one and have a finite log-probability "
            "and advantage"
        )
    return laid_out(tokens, logprobs=sampled_T, advantages=advantages_T)


def drift(
    data: Sequence[tinker.Datum], outputs: Sequence[tinker.ForwardBackwardOutput]
) -> dict[str, float]:
    """Return how far the trained policy is from the one that sampled, over sampled tokens.

    Args:
        data: what was sent, with its masks.
        outputs: what came back for it, in order.

    Returns:
        under the cookbook's names: `optim/kl_sample_train_v1`, the mean difference of log
        probabilities; `optim/kl_sample_train_v2`, half its mean square; `optim/entropy`, minus the
        mean log probability as sampled. Empty if there is no sampled token.
    """
    trained = [row["logprobs"].to_torch() for output in outputs for row in output.loss_fn_outputs]
    sampled = any(any(datum.loss_fn_inputs["mask"].data) for datum in data)
    return compute_kl_sample_train(list(data), trained) if sampled else {}


def laid_out(tokens: Sequence[int], **inputs_T: npt.ArrayLike) -> tinker.Datum:
    """Return tokens and what a loss takes of each as targets follow inputs."""
    shifted = {
        name: tinker.TensorData.from_numpy(np.asarray(values, np.float32)[1:])
        for name, values in inputs_T.items()
    }
    targets = tinker.TensorData.from_numpy(np.array(tokens[1:], np.int64))
    return tinker.Datum(
        model_input=tinker.ModelInput.from_ints([*tokens[:-1]]),
        loss_fn_inputs={"target_tokens": targets, **shifted},
    )


def numbers(tensor: tinker.TensorData) -> Floats:
    """Return Tinker's tensor as an array."""
    return np.asarray(tensor.to_numpy(), np.float64)
