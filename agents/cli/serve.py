"""`tokengym serve`: the local service, until it is stopped."""

from functools import wraps
from pathlib import Path
from typing import Any

import typer

from tokengym.agents.cli.extras import require_extra
from tokengym.agents.service.__main__ import serve as serve_models
from tokengym.agents.training.setting_groups import TOY_MODEL


@wraps(serve_models)
def serve(**options: Any) -> None:
    """Serve models, if what that needs is installed.

    A model is called as it was typed, unless it was given a name.
    """
    require_extra("tinker", "the service")
    typed = options["models"] or []
    trust = bool(options["trust_remote_code"])
    options["models"] = [str(_directory(name, trust_remote_code=trust)) for name in typed]
    serve_models(**{**options, "names": options["names"] or list(dict.fromkeys(typed))})


def _directory(name: str, *, trust_remote_code: bool) -> Path:
    """Return where a model lies, fetched if necessary.

    Raises:
        ModelError: if there is no such model, or it cannot be had.
    """
    from tokengym.agents.models.resolve import resolve_model
    from tokengym.agents.toy_model import MODEL_DIR

    if name == TOY_MODEL:
        return MODEL_DIR
    return resolve_model(
        name,
        trust_remote_code=trust_remote_code,
        progress=lambda line: typer.echo(line, err=True),
    ).directory
