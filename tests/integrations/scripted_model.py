"""An OpenAI-compatible endpoint that answers each text with the reply of a scripted episode."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextlib.contextmanager
def scripted_model(
    answer: Callable[[str], tuple[str, str]] | Sequence[dict[str, Any]],
    requests: list[dict[str, Any]] | None = None,
) -> Iterator[str]:
    """Serve `/v1/chat/completions`; yields the base URL.

    Args:
        answer: from the last text to the reply and why it ended (`stop` or `length`); or the
            messages of the turns, in order, maybe with calls of tools.
        requests: a list that takes the body of every request.
    """

    def next_reply(messages: list[dict[str, Any]]) -> tuple[dict[str, Any], str]:
        if callable(answer):
            content = messages[-1]["content"]
            text = content if isinstance(content, str) else "".join(p["text"] for p in content)
            reply, reason = answer(text)
            return {"content": reply}, reason
        message = answer[sum(one["role"] == "assistant" for one in messages)]
        return message, "tool_calls" if "tool_calls" in message else "stop"

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if requests is not None:
                requests.append(asked)
            reply, reason = next_reply(asked["messages"])
            message: dict[str, Any] = {"role": "assistant", **reply}
            choice = {"index": 0, "message": message, "finish_reason": reason}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            body = json.dumps(
                {
                    "id": "scripted",
                    "object": "chat.completion",
                    "created": 0,
                    "model": asked["model"],
                    "choices": [choice],
                    "usage": usage,
                }
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
