"""A stub server that answers for a crashed service with a non-retryable error."""

import json
import threading
from urllib.parse import urlsplit

from tokengym.loopback import Answering, LocalServer

# The SDK retries refused connections, 408, 409, 429 and every 5xx; it gives up on this one.
STATUS = 424


class Tombstone:
    """Answers at a crashed service's address until closed.

    Args:
        url: the service's base URL.
        message: the error that every request gets.

    Raises:
        OSError: if the address is taken.
    """

    def __init__(self, url: str, message: str) -> None:
        place = urlsplit(url)
        body = json.dumps({"detail": message}).encode()

        class Handler(Answering):
            def _respond(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                # Refused telemetry makes the SDK log a traceback for each batch.
                if self.path.endswith("/telemetry"):
                    self.answer(b'{"status": "accepted"}')
                else:
                    self.answer(body, status=STATUS)

            do_GET = do_POST = do_PUT = do_DELETE = _respond

        self._server = LocalServer(place.hostname or "127.0.0.1", place.port or 80, Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="service-tombstone", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
