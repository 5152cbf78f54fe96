"""Tables of pages: reading the blocks that commands write, and tables with a row for each key."""

from collections.abc import Mapping
from pathlib import Path

from tokengym.agents.analysis.markdown import find_block, markdown_table


def read_block(page: Path, name: str) -> str:
    """Return the text of a block.

    Raises:
        OptionError: if the page has no such block, or several.
    """
    return find_block(page, name)[2].strip("\n")


def keyed_table(label: str, rows: Mapping[str, Mapping[str, str]]) -> str:
    """Return a table with one row per key; the keys, as code, are in a column called `label`.

    Args:
        label: header of the first column.
        rows: cells by key and column; all rows have the columns of the first.
    """
    columns = list(next(iter(rows.values())))
    cells = [[f"`{key}`", *(row[column] for column in columns)] for key, row in rows.items()]
    return markdown_table([label, *columns], cells)


def table_rows(text: str) -> list[list[str]]:
    """Return the cells of a table of Markdown, its header first."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [rows[0], *rows[2:]]
