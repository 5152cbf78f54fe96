"""A client of a served world, typed: what `GenericEnvClient` does with plain mappings."""

from collections.abc import Mapping
from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult
from openenv.core.env_server import State

from tokengym.agents.adapters.openenv import ReplyAction, TurnObservation


class WorldClient(EnvClient[ReplyAction, TurnObservation, State]):
    """Plays over one connection: `reset(split=..., index=...)`, then `step(ReplyAction(...))`."""

    def _step_payload(self, action: ReplyAction) -> dict[str, Any]:
        return action.model_dump()

    def _parse_result(self, payload: Mapping[str, Any]) -> StepResult[TurnObservation]:
        reward, done = payload.get("reward"), bool(payload.get("done"))
        seen = {**payload["observation"], "reward": reward, "done": done}
        return StepResult(TurnObservation(**seen), reward, done, payload.get("metadata"))

    def _parse_state(self, payload: Mapping[str, Any]) -> State:
        return State(**payload)
