"""A world as a text environment of SkyRL-gym: `skyrl_gym.register(id, WorldTextEnv, kwargs)`."""

from collections.abc import Mapping
from typing import Any

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput, ConversationType

from tokengym.envs.rollouts import Playable, Rollout, Rollouts


class WorldTextEnv(BaseTextEnv):
    """One rollout: `init` starts the Task that the example's `extras` name, `step` plays a reply.

    Args:
        rollouts: the world and the role to play, or its name: `energy:small`; see `Rollouts.of`.
        extras: of the example; `split` and `index` name the Task.
        env_config: SkyRL's settings, unused.
    """

    def __init__(
        self, rollouts: Playable, extras: Mapping[str, Any], env_config: object = None
    ) -> None:
        super().__init__()
        self._rollouts = Rollouts.of(rollouts)
        self.max_turns = self._rollouts.world.turn_limit
        self._task = self._rollouts.world.task(str(extras["split"]), int(extras["index"]))
        self._rollout: Rollout | None = None

    def init(self, prompt: ConversationType) -> tuple[ConversationType, dict[str, Any]]:
        """Start the rollout; returns the example's prompt, which ends in the world's first text."""
        self._rollout = self._rollouts.start(self._task)
        said = {"role": "user", "content": self._rollout.text}
        before = prompt[:-1] if prompt and prompt[-1] == said else prompt
        return [*before, said], {"task_id": self._task.fingerprint}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Play a reply; SkyRL does not say whether it was cut off."""
        assert self._rollout is not None
        self.turns += 1
        turn = self._rollout.say(action)
        said = [] if turn.done else [{"role": "user", "content": turn.text}]
        return BaseTextEnvStepOutput(
            observations=said,
            reward=self._rollout.rewards[-1],
            done=turn.done,
            postprocessed_action=None,
            metadata={"terms": self._rollout.terms, "stop_reason": turn.stop_reason},
        )

    def get_metrics(self) -> dict[str, Any]:
        """Return of the episode, and the share of well-formed replies."""
        assert self._rollout is not None
        return {"return": self._rollout.total, "well_formed": self._rollout.share_well_formed}

    def close(self) -> None:
        """Drop the rollout and its world."""
        self._rollout = None
