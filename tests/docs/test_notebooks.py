"""Every notebook runs from top to bottom, and prints what it was saved with."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import KernelManager, start_new_kernel
from nbclient import NotebookClient

from tests import preloaded

EXAMPLES = Path(__file__).parents[2] / "examples"
RESET = "%reset -f"
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")
SMALL = {"STEPS": 2, "HELD_OUT": 8}
"""Parameters of a notebook that trains: here the steps are shown to run, not to teach."""


@pytest.fixture(scope="module")
def kernel() -> Iterator[KernelManager]:
    """One kernel for all notebooks, which then share their imports; names are cleared between."""
    manager, client = start_new_kernel(kernel_name="python3")
    client.stop_channels()
    yield manager
    manager.shutdown_kernel(now=True)


def printed(cell: Any) -> str:
    """Return what a cell printed and what its last line came to, without pictures."""
    shown = (
        output.get("text") or output.get("data", {}).get("text/plain", "")
        for output in cell.get("outputs", [])
    )
    return "".join(shown)


def words_and_numbers(text: str) -> tuple[str, list[float]]:
    """Return a text without its numbers, and these.

    Hypothesis draws other examples with other modules imported, and processors round otherwise.
    """
    return NUMBER.sub("#", text), [float(found) for found in NUMBER.findall(text)]


@pytest.mark.nightly
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_prints_what_it_was_saved_with(path: Path, kernel: KernelManager) -> None:
    notebook = nbformat.read(path, as_version=4)
    saved = [printed(cell) for cell in notebook.cells]
    assert any(saved), "a notebook is kept with its outputs"
    parameters = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    for cell in parameters:
        for name, value in SMALL.items():
            cell.source = re.sub(rf"^{name} = \d+$", f"{name} = {value}", cell.source, flags=re.M)
    first = [RESET]
    if python := os.environ.get(preloaded.VARIABLE):
        first.append(f"__import__('sys').executable = {python!r}")  # for what it runs
    notebook.cells.insert(0, nbformat.v4.new_code_cell("\n".join(first)))
    client = NotebookClient(notebook, km=kernel, timeout=300)
    try:
        client.execute()
    finally:
        assert client.kc is not None
        client.kc.stop_channels()  # it leaves those of a kernel that others use open
    found = [printed(cell) for cell in notebook.cells[1:]]
    if parameters:
        assert [bool(text) for text in found] == [bool(text) for text in saved]
        return
    for text, before in zip(found, saved, strict=True):
        words, numbers = words_and_numbers(text)
        words_before, numbers_before = words_and_numbers(before)
        assert words == words_before
        assert numbers == pytest.approx(numbers_before, rel=0.05, abs=0.02)
