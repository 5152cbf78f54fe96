"""`tokengym serve`: the local service, until it is stopped."""

from functools import partial, wraps
from typing import Any

import typer

from tokengym.agents.service.__main__ import serve as serve_models
from tokengym.installed import require_extra


@wraps(serve_models)
def serve(**options: Any) -> None:
    """Serve models, if what that needs is installed.

    A model is called as it was typed, unless it was given a name.
    """
    require_extra("tinker", "the service")
    from tokengym.agents.models import resolve_model

    typed, trust = options["models"] or [], bool(options["trust_remote_code"])
    fetch = partial(resolve_model, trust_remote_code=trust, progress=partial(typer.echo, err=True))
    options["models"] = [str(fetch(name)) for name in typed]
    serve_models(**{**options, "names": options["names"] or list(dict.fromkeys(typed))})
