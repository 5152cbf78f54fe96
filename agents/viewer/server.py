"""The server: static files and JSON about the runs it was given, on loopback, for its own page.

Every request must name the server's own address as its host and, where it names an origin, its own
origin: a page of another site that a browser is made to ask here gets nothing. Only GET is
answered, no path is joined from what a request says, and pages may run no code but our own.
"""

import json
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tokengym.agents.viewer.pages import STATIC, TYPES, index_page
from tokengym.agents.viewer.pictures import draw
from tokengym.agents.viewer.run_view import RunView
from tokengym.envs.core.errors import DataError, TokengymError
from tokengym.loopback import Answering, LocalServer, local_address

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Query = Mapping[str, str]


class Viewer(LocalServer):
    """The viewer's server.

    Args:
        runs: the runs by name.
        port: where to listen on loopback; any free port if 0.
    """

    def __init__(self, runs: Mapping[str, RunView], port: int = 0) -> None:
        self.runs = runs
        super().__init__(local_address(), port, _Handler)

    def read_ahead(self) -> None:
        """Start reading reports and rollouts, so that the first page does not wait for them."""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for view in self.runs.values():
            with suppress(TokengymError):  # the page says what is damaged
                view.report()
            view.tables()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a page that left before its answer was written."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{self.location}/"

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts that requests may name."""
        return frozenset({self.location, f"localhost:{self.server_address[1]}"})

    def view(self, query: Query) -> RunView:
        """Return the run that a query names.

        Raises:
            DataError: if there is none.
        """
        run = query.get("run", "")
        if run not in self.runs:
            raise DataError(f"there is no run called {run!r}")
        return self.runs[run]


class _Handler(Answering):
    server: Viewer  # pyright: ignore[reportIncompatibleVariableOverride]
    server_version = "tokengym"
    sys_version = ""
    always = HEADERS
    timeout = 60

    def do_GET(self) -> None:
        """Answer a request."""
        if not self._is_ours():
            self._answer_error(HTTPStatus.FORBIDDEN, "the viewer answers its own page only")
            return
        parts = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        try:
            if parts.path == "/":
                self.answer(index_page().encode(), "text/html; charset=utf-8")
            elif parts.path.removeprefix("/static/") in STATIC and parts.path.count("/") == 2:
                name = parts.path.removeprefix("/static/")
                self.answer(STATIC[name].encode(), TYPES[name.rpartition(".")[2]])
            elif parts.path == "/api/picture":
                self.answer(self._picture(query), "image/png")
            elif parts.path in _ANSWERS:
                answer = json.dumps(_ANSWERS[parts.path](self.server, query), allow_nan=False)
                self.answer(answer.encode())
            else:
                self._answer_error(HTTPStatus.NOT_FOUND, "there is no such page")
        except TokengymError as error:
            self._answer_error(HTTPStatus.BAD_REQUEST, str(error))

    def _is_ours(self) -> bool:
        """Return whether a request is from the viewer's own page, or from no page at all."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        site = self.headers.get("Sec-Fetch-Site", "none")
        return (
            host in self.server.hosts
            and (origin is None or origin == f"http://{host}")
            and site in ("none", "same-origin")
        )

    def _picture(self, query: Query) -> bytes:
        row = _row(query)
        rows, records = self.server.view(query).group(query.get("segment", ""), row)
        return draw(records[rows.index(row)])

    def _answer_error(self, status: HTTPStatus, message: str) -> None:
        self.answer(json.dumps({"error": message}).encode(), status=status)


def _row(query: Query) -> int:
    text = query.get("row", "")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise DataError(f"row must be a number, got {text!r}")
    return int(text)


def _run(server: Viewer, query: Query) -> Any:
    view = server.view(query)
    return {**view.summary(), "curves": view.curves(), "stamps": view.stamps()}


def _tables(server: Viewer, query: Query) -> Any:
    segments = query.get("segments")
    return server.view(query).tables(None if segments is None else segments.split(","))


def _group(server: Viewer, query: Query) -> Any:
    rows, records = server.view(query).group(query.get("segment", ""), _row(query))
    return {"rows": rows, "records": [record.to_dict() for record in records]}


_ANSWERS: Mapping[str, Callable[[Viewer, Query], Any]] = {
    "/api/runs": lambda server, _: [{"name": name} for name in server.runs],
    "/api/run": _run,
    "/api/report": lambda server, query: server.view(query).report(),
    "/api/tables": _tables,
    "/api/group": _group,
    "/api/search": lambda server, query: server.view(query).search(query.get("words", "")),
}
