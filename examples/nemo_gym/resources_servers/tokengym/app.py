"""A world as a resources server of NeMo Gym, which starts it for `configs/tokengym.yaml`."""

from collections.abc import Mapping
from typing import Any

from nemo_gym.base_resources_server import BaseResourcesServerConfig
from nemo_gym.openai_utils import NeMoGymResponse
from resources_servers.gymnasium import GymnasiumServer, extract_text

from tokengym.agents.tinker.chat_tools import NativeCall, next_messages, with_call
from tokengym.envs.core.errors import DataError
from tokengym.envs.rollouts import Rollouts


class WorldServerConfig(BaseResourcesServerConfig):
    """The server's block of a configuration.

    Attributes:
        rollouts: the world and the role to play, as `Rollouts.of` reads them: `energy:small`.
    """

    rollouts: str | dict[str, Any]


class WorldServer(GymnasiumServer):
    """Plays the Task that a row names by `split` and `index`; the world opens the conversation."""

    config: WorldServerConfig
    _rollouts: Rollouts

    def model_post_init(self, context: Any) -> None:
        """Look names up once."""
        super().model_post_init(context)
        self._rollouts = Rollouts.of(self.config.rollouts)

    async def reset(
        self, metadata: Mapping[str, Any], session_id: str | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start the rollout; returns the world's first text and the Task's fingerprint.

        Raises:
            DataError: if the row names no Task.
            OptionError: if the split is unknown.
            TaskError: if it has no such Task.
        """
        if not {"split", "index"} <= metadata.keys():
            raise DataError(f"a row needs `split` and `index`, got {sorted(metadata)}")
        rollout = self._rollouts.start_at(metadata["split"], metadata["index"])
        self.session_state[session_id] = rollout
        return rollout.text, {"task_id": rollout.task.fingerprint}

    async def step(
        self, action: NeMoGymResponse, metadata: Mapping[str, Any], session_id: str | None = None
    ) -> tuple[str | None, float, bool, bool, dict[str, Any]]:
        """Play a reply; of one that was cut off only ended lines count.

        The answer to a native call of a tool is its output, and there is no observation.
        """
        rollout = self.session_state[session_id]
        cut_off = action.incomplete_details
        calls = [
            NativeCall(item.call_id, item.name, item.arguments)
            for item in action.output
            if item.type == "function_call"
        ]
        said = {"tool_calls": calls}
        rollout.say(with_call(extract_text(action), said), cut_off and cut_off.reason)
        info = {"return": rollout.total, "well_formed": rollout.share_well_formed}
        if calls:
            info["tool_outputs"] = [
                {"call_id": answer["tool_call_id"], "output": answer["content"]}
                for answer in next_messages(rollout.text, said)
            ]
        text = None if calls else rollout.text
        return text, rollout.rewards[-1], rollout.done, False, info


if __name__ == "__main__":
    WorldServer.run_webserver()
