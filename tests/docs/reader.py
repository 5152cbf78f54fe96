"""Someone who reads a page, writes its files, and types its commands and its Python."""

import os
import socket
import subprocess
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.docs.pages import Block
from tests.warm import Interpreter, run_python, run_tokengym
from tokengym.agents.service import LocalService
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.agents.training.connection import KEY_VARIABLE

PORT = "8000"
"""The port the pages name; a free one takes its place."""
SHOWN_ONLY = {"text", "csv", "json", "jsonl", "toml", "yaml", "diff"}
Rule = Callable[["Reader", list[str]], str]
"""Does what a page says after the words that a command starts with; returns what it printed."""


class Reader:
    """Someone who follows a page: a folder, environment variables, and services left running.

    Args:
        folder: where everything is run.
        rules: what to do for a command, by the words it starts with.
    """

    def __init__(self, folder: Path, rules: Mapping[tuple[str, ...], Rule]) -> None:
        self.folder, self.rules = folder, rules
        self.service: LocalService | None = None
        # Small models gain nothing from threads that wait for each other.
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.services: list[BaseProcess] = []
        self.interpreter: Interpreter | None = None
        self.jobs = 0
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = str(found.getsockname()[1])

    def follow(self, page: Path, block: Block) -> str:
        """Do what a block says; returns what it printed."""
        if block.name:
            (self.folder / block.name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / block.name).write_text(block.text)
        elif block.language == "python":
            return self.execute(page, block)
        elif block.language == "bash":
            return "".join([self.type(words) for words in block.commands()])
        else:
            assert block.language in SHOWN_ONLY, f"no rule for blocks of {block.language!r}"
        return ""

    def execute(self, page: Path, block: Block) -> str:
        """Run Python in the page's interpreter; returns what it printed."""
        if self.interpreter is None:
            printed = self.folder / "interpreter.txt"
            self.interpreter = Interpreter(self.folder, self.environment, printed)
        # Blank lines before it: an error then names the line of the page.
        source = "\n" * (block.line - 1) + block.text
        ended, shown = self.interpreter.execute(source, str(page))
        assert ended, f"{page.name}, the block at line {block.line}:\n{shown}"
        return shown

    def type(self, words: list[str]) -> str:
        """Type a command, with what a page leaves open filled in; returns what it printed."""
        # A pretrained model takes minutes where the toy model takes seconds.
        small = {"DIR": str(MODEL_DIR)} | ({} if "models" in words else {"smollm2": str(MODEL_DIR)})
        filled = [small.get(word, word.replace(PORT, self.port)) for word in words]
        for start, rule in self.rules.items():
            if filled[: len(start)] == list(start):
                return rule(self, filled[len(start) :])
        raise AssertionError(f"no rule for the command {' '.join(words)!r}")

    def run(self, *words: object) -> str:
        """Run a program in the folder; it must succeed."""
        done = subprocess.run(
            [str(word) for word in words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        shown = f"{done.stdout}\n{done.stderr[-3000:]}"
        assert done.returncode == 0, f"{words} ended with {done.returncode}:\n{shown}"
        return shown

    def run_tokengym(self, *arguments: str, status: int = 0, key: str = "") -> str:
        """Run a subcommand of `tokengym`; it must end with `status`."""
        printed = self.folder / "printed.txt"
        environment = {**self.environment, **({KEY_VARIABLE: key} if key else {})}
        ended = run_tokengym(arguments, self.folder, environment, printed)
        shown = printed.read_text()
        assert ended == status, f"{arguments} ended with {ended}:\n{shown[-3000:]}"
        return shown

    def run_python(self, *arguments: str) -> str:
        """Run `python` in the folder; it must succeed."""
        printed = self.folder / "printed.txt"
        ended = run_python(arguments, self.folder, self.environment, printed)
        shown = printed.read_text()
        assert ended == 0, f"{arguments} ended with {ended}:\n{shown[-3000:]}"
        return shown

    def leave(self) -> None:
        """Stop what was started."""
        if self.interpreter is not None:
            self.interpreter.close()
        for service in self.services:
            service.terminate()
            service.join()
            assert service.exitcode == 0
