"""`tokengym serve`: the local service, until it is stopped."""

from functools import wraps
from typing import Any

from tokengym.agents.cli.extras import require_extra
from tokengym.agents.service.__main__ import serve as serve_models


@wraps(serve_models)
def serve(**options: Any) -> None:
    """Serve models, if what that needs is installed."""
    require_extra("tinker", "the service")
    serve_models(**options)
