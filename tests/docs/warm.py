"""The `tokengym` command in a process of its own that has its imports behind it.

Torch, transformers and the cookbook take seven seconds to import; a job of one small step takes
one. So a server imports them once, and a command is a fork of it, with a folder, an environment and
output of its own.
"""

import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "matplotlib.pyplot",
        "scipy.special",
        "tinker_cookbook.renderers",
        "tokengym.agents.cli",
        "tokengym.agents.training.job",
        "tokengym.agents.experiment",
        "transformers.tokenization_utils_tokenizers",
    ]
)


def run_tokengym(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], output: Path
) -> int:
    """Run the command until it ends; returns its exit status.

    Args:
        arguments: what is typed after `tokengym`.
        folder: where it is typed.
        environment: all variables it sees.
        output: a file for what it prints on both streams.
    """
    process = _CONTEXT.Process(
        target=_run, args=(list(arguments), folder, dict(environment), output)
    )
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def _run(arguments: list[str], folder: Path, environment: dict[str, str], output: Path) -> None:
    from tokengym.agents.__main__ import main

    with output.open("wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path += filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    sys.argv = ["tokengym", *arguments]
    main()
