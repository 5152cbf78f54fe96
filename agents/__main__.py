"""The `tokengym` command. Each subcommand loads what it needs when it runs."""

import atexit
import gc


def main() -> None:
    """Run the command line."""
    # What a command imports stays. Rare collections, and none at the end, save a second or two.
    gc.set_threshold(50_000, 20, 50)
    atexit.register(gc.freeze)
    from tokengym.agents.cli import run
    from tokengym.agents.cli.failures import end_as_interrupted, write_anything

    write_anything()
    end_as_interrupted()
    run()


if __name__ == "__main__":
    main()
