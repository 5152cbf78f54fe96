"""The `tokengym` command. Each subcommand loads what it needs when it runs."""

from tokengym.agents.execution.memory import set_up_memory


def main() -> None:
    """Run the command line."""
    set_up_memory()
    from tokengym.agents.cli import run
    from tokengym.agents.cli.failures import end_as_interrupted, write_anything

    write_anything()
    end_as_interrupted()
    run()


if __name__ == "__main__":
    main()
