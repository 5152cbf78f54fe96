"""Energy's exact credit as the reward of every step."""

from typing import Any

import gymnasium

from tokengym.envs.core.errors import OptionError
from tokengym.envs.gymnasium.configured_env import Observation


class ExactCredit(gymnasium.Wrapper[Observation, Observation, Observation, Observation]):
    """Pays each step its exact credit, in money, in place of the return at the end.

    A step's credit is minus the rise that it caused in the least cost of the whole episode: 0 for
    an optimal step, else below. Over an episode the credits sum to minus its regret, the money (and
    `UNSAFE` per unit of safety cost) it spent beyond the optimum; see
    `tokengym.envs.energy.credit`. A malformed reply is paid less by the money that its loss of
    return is worth. If the conversation outgrows its budget, the steps that are then played at once
    are paid too. The reward that the credit replaces is in `info["return"]`.

        env = ExactCredit(gymnasium.make("tokengym/Energy-v2", credit=True))

    Args:
        env: Energy-v2, made with `credit=True`.

    Raises:
        OptionError: at a step, if the environment reports no credit.
    """

    def __init__(self, env: gymnasium.Env[Observation, Observation]) -> None:
        super().__init__(env)
        self._paid = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; see the environment."""
        self._paid = 0.0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Observation) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play one reply; the reward is its credit."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        metrics = info["metrics"]
        if "credit" not in metrics:
            raise OptionError("exact credit needs Energy-v2 made with credit=True")
        earned = metrics["credit"]
        if terminated or truncated:
            earned = metrics["total_credit"] - self._paid
        self._paid += earned
        return observation, earned, terminated, truncated, {**info, "return": reward}
