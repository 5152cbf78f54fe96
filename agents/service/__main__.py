"""`tokengym serve`, also `python -m tokengym.agents.service`: models over the Tinker protocol."""

import gc
import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import typer

from tokengym.agents.execution.memory import use_one_heap
from tokengym.agents.service.config import (
    KEY_VARIABLE,
    ServiceConfig,
    check_model_directory,
    make_api_key,
)
from tokengym.agents.service.errors import ServiceError
from tokengym.agents.settings import OptionError
from tokengym.agents.settings.commands import takes


@takes(ServiceConfig)
def serve(
    said: Mapping[str, Any],
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], typer.Option(help="how much is logged")
    ] = "info",
    parent: Annotated[
        int | None, typer.Option(metavar="PID", help="end when this parent process ends")
    ] = None,
) -> None:
    """Serve Hugging Face causal language models over the Tinker wire protocol.

    LoRA training and sampling on this machine. Once it listens it writes one line of JSON with the
    URL to standard output, and one that sets the two variables which the SDK reads; its log goes to
    standard error.

    The API key is read from the environment variable TOKENGYM_SERVICE_KEY (it must start with
    tml-); without one a random key is used and shown in the ready line.
    """
    # The cores are shared with the client. Idle OpenMP threads spin by default; on a busy core
    # every small operation then waits for the scheduler, which is five times slower.
    for name, value in (("OMP_WAIT_POLICY", "PASSIVE"), ("GOMP_SPINCOUNT", "0")):
        os.environ.setdefault(name, value)

    use_one_heap()
    key = os.environ.get(KEY_VARIABLE)
    try:
        config = ServiceConfig(**said, api_key=key or make_api_key())
        for directory in config.models:
            check_model_directory(directory, trust_remote_code=config.trust_remote_code)
        # Imported here because torch takes seconds, and neither --help nor a typo should wait.
        # Imported modules stay: the garbage collector need not look at them, now or later.
        gc.disable()
        from tokengym.agents.service.http.server import serve as serve_forever

        gc.freeze()
        gc.enable()
        serve_forever(config, log_level=log_level, parent=parent, show_key=not key)
    except (OptionError, ServiceError, OSError) as error:
        typer.echo(f"tokengym: {error}", err=True)
        raise typer.Exit(2) from error


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(serve)

if __name__ == "__main__":
    app(prog_name="python -m tokengym.agents.service")
