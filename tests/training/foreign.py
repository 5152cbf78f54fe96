"""A server of the protocol that can less than ours: it forwards, and leaves things out."""

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager

from aiohttp import web

from tests.serving import answering, pass_on, served


def serving_less(
    url: str, missing: Sequence[str] = (), without: Sequence[str] = ()
) -> AbstractContextManager[str]:
    """Serve what is at `url`, but for some routes and fields; yields the address.

    Args:
        url: of a service.
        missing: ends of paths that are not found.
        without: fields that are left out of JSON, in requests and in answers.
    """

    def less(body: bytes, kind: str) -> bytes:
        if "json" not in kind or not any(name.encode() in body for name in without):
            return body
        content = json.loads(body)
        for part in (content, content.get("sampling_params", {})):
            for name in without:
                part.pop(name, None)
        return json.dumps(content).encode()

    async def forward(request: web.Request) -> web.Response:
        if request.path.endswith(tuple(missing) or "?"):
            raise web.HTTPNotFound
        return await pass_on(request, url, less)

    return served(answering(forward))
