"""A world as an agent loop of verl: `agent_name: tokengym`, in tokens as sampled.

The loop's settings are in the YAML that `actor_rollout_ref.rollout.agent.agent_loop_config_path`
names; an example's `extra_info` has `split` and `index` of a Task.
"""

import json
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import (
    AgentLoopBase,
    AgentLoopMetrics,
    AgentLoopOutput,
    register,
)

from tokengym.agents.adapters.token_rollout import TokenRollout
from tokengym.agents.tinker.codec import codec_named
from tokengym.envs.core.errors import OptionError
from tokengym.envs.rollouts import Rollouts
from tokengym.envs.train_split import standardising_notice


@cache
def _rollouts(given: str, codec: str, token_budget: int, standardises: bool) -> Rollouts:
    """Return the world of a loop's settings, made once per process: a loop is made per rollout."""
    made = Rollouts.of(json.loads(given), codec=codec_named(codec), token_budget=token_budget)
    cause = "norm_adv_by_std_in_grpo divides by each group's deviation (set it to false)"
    if standardises and (notice := standardising_notice(made.world.spec, cause)):
        warnings.warn(notice, stacklevel=3)
    return made


@register("tokengym")
class WorldAgentLoop(AgentLoopBase):
    """Plays one rollout of the example's Task; the score is the role's return.

    It warns once a process where the trainer standardises a proper score.

    Args:
        *arguments: of `AgentLoopBase`.
        rollouts: the world and the role to play: `energy:small`, see `Rollouts.of`.
        codec: name of a codec of the model's tokenizer, see `codec_named`.
        max_reply_tokens: longest reply.
        **settings: of `AgentLoopBase`.

    Raises:
        OptionError: if the codec re-renders conversations.
    """

    def __init__(
        self,
        *arguments: Any,
        rollouts: str | Mapping[str, Any],
        codec: str,
        max_reply_tokens: int = 512,
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, **settings)
        if not codec_named(codec).append_only:
            raise OptionError(f"{codec} must only append")
        budget = int(self.rollout_config.prompt_length) + int(self.rollout_config.response_length)
        plain = json.dumps(rollouts, default=dict)  # of a configuration's own kind of mapping
        learning = self.config.get("algorithm", {})  # none in a configuration of rollouts alone
        grouped = str(learning.get("adv_estimator")).startswith("grpo")
        standardises = grouped and bool(learning.get("norm_adv_by_std_in_grpo", True))
        self._rollouts = _rollouts(plain, codec, budget - max_reply_tokens, standardises)
        self._stop = codec_named(codec).stop
        self._max_reply_tokens = max_reply_tokens

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        """Play one Task.

        Args:
            sampling_params: of the trainer.
            **row: of the data; `extra_info` names the Task.
        """
        where = row["extra_info"]
        record = TokenRollout(self._rollouts.start_at(str(where["split"]), int(where["index"])))
        rollout, request = record.rollout, uuid4().hex
        settings = {**sampling_params, "max_tokens": self._max_reply_tokens}
        while not rollout.done:
            output = await self.server_manager.generate(
                request_id=request, prompt_ids=rollout.tokens, sampling_params=settings
            )
            tokens = list(output.token_ids)
            ended = bool(tokens) and tokens[-1] in self._stop
            logprobs = output.log_probs or [0.0] * len(tokens)
            record.play(tokens, logprobs, "stop" if ended else "length")
        return AgentLoopOutput(
            prompt_ids=record.prompt,
            response_ids=record.completion,
            response_mask=record.own,
            response_logprobs=record.logprobs,
            reward_score=rollout.total,
            num_turns=2 * len(rollout.well_formed),
            metrics=AgentLoopMetrics(),
        )
