"""Signed URLs, with which a file can be fetched for an hour without the key."""

import hashlib
import hmac
import time
from datetime import UTC, datetime

from aiohttp import web

SECONDS = 3600


def sign_url(request: web.Request, path: str, key: str) -> tuple[str, datetime]:
    """Return a signed URL of this service for `path`, and when it expires.

    Args:
        request: whose host the URL names.
        path: of the file, not quoted.
        key: the service's key.
    """
    expires = int(time.time()) + SECONDS
    query = {"expires": str(expires), "signature": _signature(path, str(expires), key)}
    return str(request.url.with_path(path).with_query(query)), datetime.fromtimestamp(expires, UTC)


def is_signed(request: web.Request, key: str) -> bool:
    """Return whether a request is for a URL that this service signed and that has not expired."""
    expires, signature = (request.query.get(name, "") for name in ("expires", "signature"))
    expected = _signature(request.path, expires, key)
    return (
        request.method == "GET"
        and hmac.compare_digest(signature.encode(errors="surrogateescape"), expected.encode())
        and int(expires) > time.time()
    )


def _signature(path: str, expires: str, key: str) -> str:
    # Nothing else is signed with the key, and a path has no line break before the date.
    text = f"{path}\n{expires}".encode(errors="surrogateescape")
    return hmac.new(key.encode(), text, hashlib.sha256).hexdigest()
