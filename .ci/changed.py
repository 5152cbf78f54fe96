"""Run the tests for the night that concern what changed since the last night, nearest first.

    .venv/bin/python .ci/changed.py                what changed since the commit of .ci/nightly.json
    .venv/bin/python .ci/changed.py --since main   since another commit
    .venv/bin/python .ci/changed.py --list         say which, and run none

A file of tests concerns a file that changed if it imports it, directly or by way of others. Those
that import it themselves come first; what has not begun after `--minutes` is skipped, and said. A
fixture counts as imported where a test names it, a file that is no module where its name is
mentioned, and pages, examples and the project's own files concern `tests/docs`.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from unchecked import VARIABLE, note

ROOT = Path(__file__).resolve().parent.parent
NIGHTLY = ROOT / ".ci" / "nightly.json"
PACKAGES = {"agents": "tokengym.agents", "envs": "tokengym.envs", "rewards": "tokengym.rewards"}
FOLDERS = (*PACKAGES, "src", "benchmarks", "tests")
NOTHING_COLLECTED = 5
"""Exit status of pytest where none of the tests is for the night."""


def main() -> int:
    """Run the tests; returns 1 if one fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--since", help="commit to compare with (that of .ci/nightly.json)")
    parser.add_argument("--minutes", type=float, default=10.0, help="no test begins later (10)")
    parser.add_argument("--list", action="store_true", help="print the files of tests alone")
    chosen = parser.parse_args()
    since = chosen.since or last_night()
    if since is None:
        return 0
    changed = git(
        "diff", "--name-only", "--no-renames", since, "--", ".", f":!{NIGHTLY}"
    ).splitlines()
    tests = concerned(changed)
    print(
        f"{len(changed)} files changed since {since[:9]}: {len(tests)} files of tests", flush=True
    )
    if chosen.list or not tests:
        print(*tests, sep="\n")
        return 0
    order = ("--dist", "loadfile", "--no-loadscope-reorder")
    report = Path(os.environ.get(VARIABLE, ROOT / "build")) / "changed.xml"
    words = ("-m", "nightly", "--minutes", str(chosen.minutes), *order, f"--junitxml={report}")
    command = (sys.executable, str(ROOT / "src" / "tokengym"), "test", *words, *tests)
    status = subprocess.run(command, cwd=ROOT).returncode
    return int(status not in (0, NOTHING_COLLECTED))


def last_night() -> str | None:
    """Return the commit of the last nightly run, and say how long ago it was and what it found."""
    if not NIGHTLY.is_file():
        note("no nightly run is recorded: tests for the night, python3 .ci/nightly")
        return None
    record = json.loads(NIGHTLY.read_text(encoding="utf-8"))
    commit = str(record["commit"])
    if subprocess.run(("git", "merge-base", "--is-ancestor", commit, "HEAD"), cwd=ROOT).returncode:
        note(f"the nightly run's commit {commit[:9]} is not in this history: tests for the night")
        return None
    ago = int(git("rev-list", "--count", f"{commit}..HEAD"))
    failed = [name for name, part in record["parts"].items() if part["failed"]]
    found = f"failed: {', '.join(failed)}" if failed else "all passed"
    note(f"since the nightly run {ago} commits ago ({found}): {', '.join(record['parts'])}")
    if left := record["not_run"]:
        note(f"by that nightly run: {', '.join(left)}")
    return commit


def git(*words: str) -> str:
    """Return what a command of git prints."""
    return subprocess.run(
        ("git", "-C", ROOT, *words), check=True, capture_output=True, text=True
    ).stdout


def concerned(changed: Iterable[str]) -> list[str]:
    """Return the files of tests that changed files concern, those that import them first."""
    importers = reverse(imports())
    found: dict[str, int] = {}
    reached = dict.fromkeys(changed, 0)
    queue = list(reached)
    for path in queue:
        for importer in sorted(importers[path] | mentioning(path)):
            if importer not in reached:
                reached[importer] = reached[path] + 1
                queue.append(importer)
    for path, steps in reached.items():
        if is_test(path) and (ROOT / path).is_file():
            found[path] = steps
    return sorted(found, key=lambda path: (found[path], path))


def is_test(path: str) -> bool:
    """Return whether pytest collects a file."""
    return path.startswith("tests/") and Path(path).match("test_*.py")


@cache
def sources() -> dict[str, str]:
    """Return the texts of all Python files of the project, by path."""
    files = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}


def mentioning(path: str) -> set[str]:
    """Return the files that read a changed file: modules are imported, others are mentioned."""
    if path.endswith(".py") and path.startswith(tuple(f"{folder}/" for folder in FOLDERS)):
        return set()
    name = Path(path).name
    found = {file for file, text in sources().items() if name in text}
    if path.endswith((".md", ".ipynb", ".toml")) or path.startswith((".", "examples/")):
        found |= {file for file in sources() if file.startswith("tests/docs/") and is_test(file)}
    if path.startswith("tests/golden/"):
        found |= {file for file in sources() if "golden" in sources()[file].lower()}
    return found


@cache
def imports() -> dict[str, set[str]]:
    """Return the files that each Python file of the project imports."""
    by_name = {module_name(path): path for path in sources()}
    found: dict[str, set[str]] = {}
    for path, text in sources().items():
        named = set(names(ast.parse(text)))
        found[path] = {by_name[name] for name in named if name in by_name} - {path}
        if path.startswith("tests/"):
            found[path] |= set(fixtures(path, text))
    return found


def module_name(path: str) -> str:
    """Return the dotted name by which a file is imported."""
    parts = list(Path(path).with_suffix("").parts)
    if parts[0] in PACKAGES:
        parts[:1] = PACKAGES[parts[0]].split(".")
    if parts[0] == "src":
        parts = parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def names(tree: ast.Module) -> Iterator[str]:
    """Yield what a module imports, at its top or later, and modules that its texts name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"\btokengym(?:\.\w+)+", node.value)


def fixtures(path: str, text: str) -> Iterator[str]:
    """Yield the files `conftest.py` above a file of tests of which it names a fixture."""
    words = set(re.findall(r"\w+", text))
    for folder in Path(path).parents:
        above = str(folder / "conftest.py")
        if above != path and above in sources() and words & functions(above):
            yield above


@cache
def functions(path: str) -> set[str]:
    """Return the names of the functions at the top of a file."""
    body = ast.parse(sources()[path]).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef)}


def reverse(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return who imports each file."""
    importers: dict[str, set[str]] = defaultdict(set)
    for path, imported in graph.items():
        for one in imported:
            importers[one].add(path)
    return importers


if __name__ == "__main__":
    sys.exit(main())
