"""`python -m tokengym.agents.service`: serve a model directory over the Tinker protocol."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from pathlib import Path

from tokengym.agents.memory import use_one_heap
from tokengym.agents.service.config import (
    GIBIBYTE,
    KEY_VARIABLE,
    MEBIBYTE,
    PRECISIONS,
    ServiceConfig,
    check_model_directory,
    make_api_key,
)
from tokengym.agents.service.errors import ServiceError

KEY_HELP = (
    f"The API key is read from the environment variable {KEY_VARIABLE} (it must start with "
    "tml-); without one a random key is used and shown in the ready line."
)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tokengym.agents.service",
        description=(
            "Serve Hugging Face causal language models over the Tinker wire protocol: LoRA "
            "training and sampling on this machine. Once it listens it writes one line of JSON "
            "with the URL to standard output; its log goes to standard error."
        ),
        epilog=KEY_HELP,
    )
    parser.add_argument(
        "--model",
        action="append",
        required=True,
        metavar="DIR",
        help="directory of a causal language model and its tokenizer; may be given more than once",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument(
        "--port", type=int, default=0, help="TCP port, 0 for a free one (%(default)s)"
    )
    parser.add_argument(
        "--state-dir",
        default="tinker-service",
        metavar="DIR",
        help="where training runs and checkpoints are kept (%(default)s)",
    )
    parser.add_argument(
        "--device", default="auto", help="auto, cpu or a torch device such as cuda:0 (%(default)s)"
    )
    parser.add_argument(
        "--precision",
        default="auto",
        choices=PRECISIONS,
        help="float32, bfloat16 or auto: bfloat16 on a GPU, and for all but small models on a "
        "processor with instructions for it, else float32 (%(default)s)",
    )
    parser.add_argument(
        "--memory",
        type=float,
        metavar="GB",
        help="memory to stay within, in GiB, by splitting batches (4, or nine tenths of what is "
        "free on the GPU)",
    )
    parser.add_argument(
        "--threads", type=int, default=0, help="torch threads, 0 for torch's default"
    )
    parser.add_argument(
        "--deterministic",
        action="store_true",
        help="sample so that no other sequence changes a bit of one; two to three times slower in "
        "float32",
    )
    parser.add_argument(
        "--seed",
        type=int,
        help="seed of what no client seeds: new adapters, sampling requests, names of sessions "
        "(random by default)",
    )
    parser.add_argument(
        "--trust-remote-code",
        action="store_true",
        help="run Python code that comes with a model (never otherwise)",
    )
    parser.add_argument(
        "--max-body-mb", type=int, default=64, help="largest request accepted, in MiB (%(default)s)"
    )
    parser.add_argument(
        "--log-level",
        default="info",
        choices=["debug", "info", "warning", "error"],
        help="how much is logged (%(default)s)",
    )
    parser.add_argument(
        "--parent", type=int, default=None, metavar="PID", help="end when this parent process ends"
    )
    options = parser.parse_args(arguments)

    # The cores are shared with the client. Idle OpenMP threads spin by default; on a busy core
    # every small operation then waits for the scheduler, which is five times slower.
    for name, value in (("OMP_WAIT_POLICY", "PASSIVE"), ("GOMP_SPINCOUNT", "0")):
        os.environ.setdefault(name, value)

    use_one_heap()
    key = os.environ.get(KEY_VARIABLE)
    try:
        for model in options.model:
            check_model_directory(Path(model), trust_remote_code=options.trust_remote_code)
        config = ServiceConfig(
            models=tuple(Path(model) for model in options.model),
            state_dir=Path(options.state_dir),
            api_key=key or make_api_key(),
            host=options.host,
            port=options.port,
            device=options.device,
            precision=options.precision,
            memory_bytes=None if options.memory is None else int(options.memory * GIBIBYTE),
            threads=options.threads,
            deterministic=options.deterministic,
            seed=options.seed,
            trust_remote_code=options.trust_remote_code,
            max_body_bytes=options.max_body_mb * MEBIBYTE,
        )
        # Imported here because torch takes seconds, and neither --help nor a typo should wait. What
        # is imported stays: the collector need not look at it, neither meanwhile nor ever again.
        gc.disable()
        from tokengym.agents.service.http.server import serve

        gc.freeze()
        gc.enable()
        serve(config, log_level=options.log_level, parent=options.parent, show_key=not key)
    except (ServiceError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
