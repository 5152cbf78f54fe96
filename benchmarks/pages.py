"""Reading the tables that commands write into pages."""

from pathlib import Path

from tokengym.agents.reports.markdown import find_block


def read_block(page: Path, name: str) -> str:
    """Return the text of a block.

    Raises:
        OptionError: if the page has no such block, or several.
    """
    return find_block(page, name)[2].strip("\n")


def table_rows(text: str) -> list[list[str]]:
    """Return the cells of a table of Markdown, its header first."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [rows[0], *rows[2:]]
