"""The table of formats on the page is what the readers do."""

from pathlib import Path

from benchmarks.data_formats import BLOCK, formats_table
from benchmarks.pages import read_block

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "own_data.md"


def test_the_page_shows_what_is_read_of_each_format_and_why_rows_are_refused() -> None:
    assert read_block(PAGE, BLOCK) == formats_table()
