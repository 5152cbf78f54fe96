"""The notebooks of `examples/` as pages of the site, with the outputs they were saved with."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
_LONGEST = 60
"""Lines of an output that a page shows."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each notebook, its pictures, and the notebook itself to download."""
    for file in notebook_files(config):
        files.append(file)
    return files


def notebook_files(config: MkDocsConfig) -> Iterator[File]:
    """Yield the files that the site has of the notebooks."""
    for path in sorted(EXAMPLES.glob("*.ipynb")):
        pictures: dict[str, bytes] = {}
        cells = nbformat.read(path, as_version=4).cells
        text = "\n\n".join(_cell(cell, path.stem, pictures) for cell in cells)
        title, _, rest = text.partition("\n")
        note = f"[Download this notebook]({path.name}){{ download }}"
        page = f"{title}\n\n{note}\n{rest}\n"
        yield File.generated(config, f"notebooks/{path.stem}.md", content=page)
        yield File.generated(config, f"notebooks/{path.name}", content=path.read_bytes())
        for name, content in pictures.items():
            yield File.generated(config, f"notebooks/{name}", content=content)


def _cell(cell: Any, name: str, pictures: dict[str, bytes]) -> str:
    """Return a cell as Markdown; what it drew is added to `pictures`."""
    if cell.cell_type == "markdown":
        return str(cell.source)
    shown = [f"```python\n{cell.source}\n```"]
    printed = ""
    for output in cell.outputs:
        data = output.get("data", {})
        if output.output_type == "stream":
            printed += output.text
        elif "image/png" in data:
            picture = f"{name}-{len(pictures) + 1}.png"
            pictures[picture] = base64.b64decode(data["image/png"])
            shown.append(f"![{data.get('text/plain', picture)}]({picture})")
        elif "text/html" in data:
            shown.append(f"<div>\n{data['text/html']}\n</div>")
        elif "text/plain" in data:
            printed += data["text/plain"] + "\n"
    if printed:
        lines = printed.rstrip().splitlines()
        more = [f"… {len(lines) - _LONGEST} more lines"] if len(lines) > _LONGEST else []
        text = "\n".join(lines[:_LONGEST] + more)
        shown.insert(1, f"~~~~text\n{text}\n~~~~")
    return "\n\n".join(shown)
