"""The table of formats on the page is what the readers do."""

from pathlib import Path

import pytest

from benchmarks.pages import read_block
from benchmarks.paper_formats import BLOCK, table

pytest.importorskip("pyarrow")

PAGE = Path(__file__).parents[2] / "docs" / "worlds" / "disruption.md"


def test_the_page_shows_what_is_read_of_each_format_and_why_rows_are_refused() -> None:
    assert read_block(PAGE, BLOCK) == table()
