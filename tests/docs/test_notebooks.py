"""Every notebook runs from top to bottom."""

from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import KernelManager, start_new_kernel
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[2] / "examples"
RESET = "%reset -f"


@pytest.fixture(scope="module")
def kernel() -> Iterator[KernelManager]:
    """One kernel for all notebooks, which then share their imports; names are cleared between."""
    manager, client = start_new_kernel(kernel_name="python3")
    client.stop_channels()
    yield manager
    manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_runs_from_top_to_bottom(path: Path, kernel: KernelManager) -> None:
    notebook = nbformat.read(path, as_version=4)
    shown = [bool(cell.get("outputs")) for cell in notebook.cells if cell.cell_type == "code"]
    assert any(shown), "a notebook is kept with its outputs"
    notebook.cells.insert(0, nbformat.v4.new_code_cell(RESET))
    client = NotebookClient(notebook, km=kernel, timeout=300)
    try:
        client.execute()
    finally:
        assert client.kc is not None
        client.kc.stop_channels()  # it leaves those of a kernel that others use open
    assert any(cell.get("outputs") for cell in notebook.cells)
