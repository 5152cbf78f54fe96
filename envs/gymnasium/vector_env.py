"""A batched environment: many worlds stepped in one process, without sub-processes or copies."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from gymnasium.vector import SyncVectorEnv

from tokengym.envs.core.errors import OptionError
from tokengym.envs.gymnasium.configured_env import Observation
from tokengym.envs.gymnasium.env import TextEnv
from tokengym.rewards.arrays import Flags, Floats

Batch = tuple[Observation, ...]


class TextVectorEnv(SyncVectorEnv):
    """`num_envs` copies of one world, stepped together by Gymnasium's `SyncVectorEnv`.

    Observations and actions are tuples of `num_envs` arrays (or strings), since they differ in
    length; rewards are `(num_envs,)` float64, ends are `(num_envs,)` bool. A copy whose episode
    ended is reset by the next `step`, whose action for it is ignored (Gymnasium's next-step mode).

    Args:
        num_envs: number of copies, at least 1.
        **kwargs: what `TextEnv` takes.

    Raises:
        OptionError: if `num_envs` is less than 1.
    """

    def __init__(self, num_envs: int = 1, **kwargs: Any) -> None:
        if num_envs < 1:
            raise OptionError(f"num_envs must be at least 1, got {num_envs}")
        # An observation is the user's own already, so that none is copied again.
        super().__init__([partial(TextEnv, **kwargs)] * num_envs, copy=False)

    def step(
        self, actions: Sequence[Observation]
    ) -> tuple[Batch, Floats, Flags, Flags, dict[str, Any]]:
        """Step every copy with its action.

        Raises:
            OptionError: if there are not as many actions as copies.
        """
        if len(actions) != self.num_envs:
            raise OptionError(f"{self.num_envs} envs need as many actions, got {len(actions)}")
        return super().step(tuple(actions))
