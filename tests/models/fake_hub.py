"""A server that answers as the Hugging Face hub does, for the models it is given."""

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def hub(models: Mapping[str, Mapping[str, bytes]]) -> Iterator[tuple[str, list[str]]]:
    """Serve models, each a map of file name to content; yields address and files downloaded."""
    downloaded: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            parts = urlsplit(self.path).path.strip("/").split("/")
            api = parts[:2] == ["api", "models"]
            name = "/".join(parts[2:4] if api else parts[:2])
            if name not in models:
                self.answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            elif api and "tree" in parts:
                files = [
                    {"type": "file", "path": path, "size": len(data), "oid": etag(data)}
                    for path, data in models[name].items()
                ]
                self.answer(200, json.dumps(files).encode())
            elif api:
                self.answer(200, json.dumps({"id": name, "sha": COMMIT, "siblings": []}).encode())
            else:
                path = "/".join(parts[4:])
                data = models[name][path]
                if self.command == "GET":
                    downloaded.append(path)
                self.answer(200, data, {"ETag": f'"{etag(data)}"', "X-Repo-Commit": COMMIT})

        def answer(
            self, status: int, data: bytes, headers: Mapping[str, str] | None = None
        ) -> None:
            self.send_response(status)
            for key, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", downloaded
    finally:
        server.shutdown()
        server.server_close()


def etag(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()
