"""The `tokengym` command. Each subcommand loads what it needs when it runs."""

import atexit
import gc
import importlib.util
import sys

EXTRA = "tinker"


def main() -> None:
    """Run the command line, or say what to install if its libraries are missing."""
    if importlib.util.find_spec("typer") is None:
        sys.exit(f"tokengym: the command needs its libraries: pip install 'tokengym[{EXTRA}]'")
    # What a command imports stays. Rare collections, and none at the end, save a second or two.
    gc.set_threshold(50_000, 20, 50)
    atexit.register(gc.freeze)
    from tokengym.agents.cli import run

    run()


if __name__ == "__main__":
    main()
