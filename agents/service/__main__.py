"""`tokengym serve`, also `python -m tokengym.agents.service`: models over the Tinker protocol."""

import gc
import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from tokengym.agents.memory import use_one_heap
from tokengym.agents.service.config import (
    GIBIBYTE,
    KEY_VARIABLE,
    MEBIBYTE,
    Precision,
    ServiceConfig,
    check_model_directory,
    make_api_key,
)
from tokengym.agents.service.errors import ServiceError


def serve(
    model: Annotated[
        list[Path],
        typer.Option(
            metavar="DIR",
            help="directory of a causal language model and its tokenizer; may be given repeatedly",
        ),
    ],
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="TCP port, 0 for a free one")] = 0,
    state_dir: Annotated[
        Path, typer.Option(metavar="DIR", help="where training runs and checkpoints are kept")
    ] = Path("tinker-service"),
    device: Annotated[
        str, typer.Option(help="auto, cpu or a torch device such as cuda:0")
    ] = "auto",
    precision: Annotated[
        Precision,
        typer.Option(
            help="auto: bfloat16 on a GPU, and for all but small models on a processor with "
            "instructions for it, else float32"
        ),
    ] = "auto",
    memory: Annotated[
        float | None,
        typer.Option(
            metavar="GB",
            help="memory to stay within, in GiB, by splitting batches (default: 4, or nine tenths "
            "of what is free on the GPU)",
        ),
    ] = None,
    threads: Annotated[int, typer.Option(help="torch threads, 0 for torch's default")] = 0,
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic",
            help="sample so that no other sequence changes a bit of one; two to three times slower "
            "in float32",
        ),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            help="seed of what no client seeds: new adapters, sampling requests, names of sessions "
            "(default: random)"
        ),
    ] = None,
    trust_remote_code: Annotated[
        bool,
        typer.Option(
            "--trust-remote-code", help="run Python code that comes with a model; never otherwise"
        ),
    ] = False,
    max_body_mb: Annotated[int, typer.Option(help="largest request accepted, in MiB")] = 64,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], typer.Option(help="how much is logged")
    ] = "info",
    parent: Annotated[
        int | None, typer.Option(metavar="PID", help="end when this parent process ends")
    ] = None,
) -> None:
    """Serve Hugging Face causal language models over the Tinker wire protocol.

    LoRA training and sampling on this machine. Once it listens it writes one line of JSON with the
    URL to standard output; its log goes to standard error.

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
        for directory in model:
            check_model_directory(directory, trust_remote_code=trust_remote_code)
        config = ServiceConfig(
            models=tuple(model),
            state_dir=state_dir,
            api_key=key or make_api_key(),
            host=host,
            port=port,
            device=device,
            precision=precision,
            memory_bytes=None if memory is None else int(memory * GIBIBYTE),
            threads=threads,
            deterministic=deterministic,
            seed=seed,
            trust_remote_code=trust_remote_code,
            max_body_bytes=max_body_mb * MEBIBYTE,
        )
        # Imported here because torch takes seconds, and neither --help nor a typo should wait. What
        # is imported stays: the collector need not look at it, neither meanwhile nor ever again.
        gc.disable()
        from tokengym.agents.service.http.server import serve as serve_forever

        gc.freeze()
        gc.enable()
        serve_forever(config, log_level=log_level, parent=parent, show_key=not key)
    except (ServiceError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(serve)

if __name__ == "__main__":
    app(prog_name="python -m tokengym.agents.service")
