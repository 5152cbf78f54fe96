"""A resources server of NeMo Gym as a grader: one session per example, scored by verification."""

import json
from collections.abc import Mapping
from typing import Any

from fastapi.testclient import TestClient
from nemo_gym.server_utils import ServerClient


class NemoGymReward:
    """A server's verification of a reply, asked in this process as NeMo Gym's agents ask for it.

    Args:
        server: the class of the server; its settings are those that its configuration has.
    """

    def __init__(self, server: Any) -> None:
        settings = {"host": "", "port": 0, "entrypoint": "app.py", "name": server.__name__}
        config = server.model_fields["config"].annotation(**settings)
        made = server(config=config, server_client=ServerClient.model_construct())
        typed = {"content-type": "application/json"}
        self._client = TestClient(made.setup_webserver(), headers=typed)

    def __call__(self, reply: str, row: Mapping[str, Any]) -> Any:
        """Return what the server answers to a message of the assistant, its reward among it."""
        said = reply.encode(errors="replace").decode()  # a lone surrogate cannot be sent
        content = [{"type": "output_text", "text": said, "annotations": []}]
        message = {"id": "message", "type": "message", "role": "assistant", "status": "completed"}
        response = {
            **{"id": "response", "object": "response", "created_at": 0.0, "model": "certify"},
            **{"parallel_tool_calls": False, "tool_choice": "none", "tools": []},
            "output": [{**message, "content": content}],
        }
        self._ask("/seed_session", row)
        return {"reward": self._ask("/verify", {**row, "response": response})["reward"]}

    def _ask(self, path: str, body: Mapping[str, Any]) -> Any:
        answer = self._client.post(path, content=json.dumps(body))
        if answer.is_error:
            raise ValueError(f"{path} answers {answer.status_code}: {answer.text[:300]}")
        return answer.json()
