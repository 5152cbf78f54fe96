"""The `tokengym` command. Each subcommand loads what it needs when it runs."""

import atexit
import gc

COLLECTIONS = (50_000, 20, 50)
"""Thresholds of `gc`. What a command imports stays: rare collections save a second or two."""


def main() -> None:
    """Run the command line."""
    gc.set_threshold(*COLLECTIONS)
    atexit.register(gc.freeze)  # No collection at the end.
    from tokengym.agents.cli import run
    from tokengym.agents.cli.failures import end_as_interrupted, write_anything

    write_anything()
    end_as_interrupted()
    run()


if __name__ == "__main__":
    main()
