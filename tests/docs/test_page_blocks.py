"""Laws of generated blocks: they change nothing around them, and hold what the code makes today."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.level_tables import BLOCK, LEVELS_HEADER, main
from benchmarks.pages import block_names, read_block, table_rows, write_block
from tokengym.agents.reports.markdown import markdown_table
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import specs

ROOT = Path(__file__).parents[2]
PAGE = "before\n\n<!-- made by a -->\nold\n<!-- end of a -->\nbetween\n<!-- made by b -->\n"
PAGE += "<!-- end of b -->\nafter\n"


def test_a_block_is_written_in_place_and_read_again(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert block_names(page) == ["a", "b"]
    for text in ("new", "newer\n\nand longer"):
        write_block(page, "a", text)
        assert read_block(page, "a") == text
    assert read_block(page, "b") == ""
    shown = page.read_text()
    assert shown.startswith("before\n\n<!-- made by a -->\n\nnewer")
    assert shown.endswith(
        "and longer\n\n<!-- end of a -->\nbetween" + PAGE.rpartition("between")[2]
    )


def test_a_block_that_is_not_there_or_twice_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE + PAGE)
    for name, count in (("a", 2), ("c", 0)):
        with pytest.raises(OptionError, match=f"has {count}"):
            write_block(page, name, "text")
    assert page.read_text() == PAGE + PAGE


CELLS = st.text(st.characters(codec="ascii", exclude_characters="|\n\r\x0b\x0c\x1c\x1d\x1e"))


@given(st.lists(st.lists(CELLS.map(str.strip), min_size=3, max_size=3), min_size=1, max_size=4))
def test_a_table_is_read_as_it_was_written(rows: list[list[str]]) -> None:
    shown = markdown_table(rows[0], rows[1:])
    assert [[" ".join(c.split()) for c in row] for row in table_rows(shown)] == [
        [" ".join(cell.split()) for cell in row] for row in rows
    ]


def test_the_table_of_levels_has_every_level() -> None:
    header, *rows = table_rows(read_block(ROOT / "docs" / "worlds.md", f"{BLOCK}, by level"))
    assert tuple(header) == LEVELS_HEADER
    assert [(row[0], row[1]) for row in rows] == [
        (row.short_name, f"`{level}`") for row in specs().values() for level in row.levels
    ]
    for row in rows:
        low, high = map(float, row[2].split(" to "))
        means = [float(cell.split()[0]) for cell in row[3:6]]
        assert low <= min(means) <= max(means) <= high


def test_the_ladders_of_every_page_are_those_of_the_file(tmp_path: Path) -> None:
    """One command writes them all; it measures nothing of the levels we ship."""
    pages = {ROOT / "README.md", *(ROOT / "docs" / "worlds").glob("*.md")}
    copies = {page: tmp_path / page.name for page in pages}
    for page, copy in copies.items():
        copy.write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
    main([*map(str, copies.values())])
    for page, copy in copies.items():
        assert copy.read_text(encoding="utf-8") == page.read_text(encoding="utf-8")
        assert any(name.startswith(BLOCK) for name in block_names(page))
