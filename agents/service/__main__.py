"""`python -m tokengym.agents.service`: serve a model directory over the Tinker protocol."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tokengym.agents.service.errors import ServiceError
from tokengym.agents.service.settings import check_model_directory

KEY_HELP = (
    "The API key is read from the environment variable TOKENGYM_SERVICE_KEY (it must start with "
    "tml-); without one a key is made up and shown in the ready line."
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
        "--dtype",
        default="auto",
        choices=["auto", "float32", "bfloat16"],
        help="number type of weights; auto: float32 on a CPU, bfloat16 on a GPU (%(default)s)",
    )
    parser.add_argument(
        "--threads", type=int, default=0, help="torch threads, 0 for torch's own choice"
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
    chosen = parser.parse_args(arguments)

    # The cores are shared with the client. OpenMP's waiting threads spin by default, and where a
    # core is taken that makes every small operation wait for the scheduler: fivefold slower.
    for name, value in (("OMP_WAIT_POLICY", "PASSIVE"), ("GOMP_SPINCOUNT", "0")):
        os.environ.setdefault(name, value)

    try:
        for model in chosen.model:
            check_model_directory(Path(model))
        # Imported here, because torch takes seconds and neither --help nor a typing error should.
        from tokengym.agents.service.server import KEY_VARIABLE, serve

        serve(
            chosen.model,
            host=chosen.host,
            port=chosen.port,
            state_dir=chosen.state_dir,
            api_key=os.environ.get(KEY_VARIABLE),
            device=chosen.device,
            dtype=chosen.dtype,
            threads=chosen.threads,
            max_body_bytes=chosen.max_body_mb << 20,
            log_level=chosen.log_level,
            parent=chosen.parent,
        )
    except ServiceError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: cannot listen on {chosen.host}:{chosen.port}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
