"""Laws of cells without a value, in every world: one list of words, and what a bad cell costs."""

from pathlib import Path
from typing import Any

import pytest

from tests.every import every
from tests.forecasting.questions_file import plain, prompts_of, world_of, write_lines
from tests.intake.test_worlds import paper
from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.data import read_papers
from tokengym.envs.intake.numbers import is_missing, read_number, read_share
from tokengym.envs.warehouse.data import OrderBook, read

WORDS = (
    "", "unavailable", "unknown", "#N/A", "--", "n/a", "NULL", "None", "NaN", "-", ".", "N/E",
    "<NA>", "#N/A N/A", "-1.#IND", "#DIV/0!", "?", "\u2014", "Missing", "nil", "\\N", " na ", "..",
    "no data",
)  # fmt: skip


@every("word", WORDS)
def test_a_word_for_no_value_is_missing_and_no_number(word: str) -> None:
    assert is_missing(word)
    assert read_number(word) is None


@pytest.mark.parametrize(
    "value", [0, 0.0, False, "0", "-1", ".5", "Nan Goldin", "No", "nonempty", []]
)
def test_what_has_a_value_is_not_missing(value: object) -> None:
    assert not is_missing(value)


def test_a_share_may_be_in_percent() -> None:
    for text, share in {"62%": 0.62, "62 %": 0.62, ".5%": 0.005, "0.62": 0.62, "100%": 1.0}.items():
        assert read_share(text) == share
    assert (read_share(0.62), read_share("%"), read_share("x%")) == (0.62, None, None)


@every("word", WORDS[1:])
def test_questions_may_lack_optional_fields(word: str, tmp_path: Path) -> None:
    optional = ("event", "background", "closed_at", "outcomes", "thresholds", "price", "sources")
    worlds = [
        world_of(
            write_lines(
                tmp_path / f"{k}.jsonl",
                [{**plain(number), **dict.fromkeys(optional, value)} for number in range(20)],
            )
        )
        for k, value in enumerate((None, word))
    ]
    assert prompts_of(worlds[0]) == prompts_of(worlds[1])
    report = worlds[1].data_report
    assert report is not None
    assert report.refused == 0


def test_prices_in_percent_are_read(tmp_path: Path) -> None:
    prices: dict[str, Any] = {"62%": 0.62, "0.62": 0.62, "5 %": 0.05, "n/a": None}
    rows = [plain(k, price=price) for k, price in enumerate([*prices, "62", "120%", "a lot"])]
    rows += [plain(k) for k in range(20, 40)]
    world = world_of(write_lines(tmp_path / "q.jsonl", rows))
    assert world.data_report is not None
    assert [reason.partition("got ")[2] for reason in world.data_report.every] == [
        "'62'", "'120%'", "'a lot'",
    ]  # fmt: skip


@every("word", WORDS[1:])
def test_a_paper_may_have_a_word_for_no_score(word: str, tmp_path: Path) -> None:
    row = paper(1, novelty_score=word, novelty_label=word, references=word, field_median=word)
    (found,) = read_papers(write_lines(tmp_path / "p.jsonl", [row]))
    assert (found.novelty_score, found.novelty_label, found.references) == (None, None, None)


def test_slots_without_a_number_cost_their_row(tmp_path: Path) -> None:
    slots, orders = tmp_path / "slots.csv", tmp_path / "orders.csv"
    cells = [f"s{k},{k},1,40" for k in range(20)]
    header = "order_id,release_min,due_min,sku,qty,value"
    orders.write_text("\n".join([header, *(f"O{k},{k},{k + 9},s{k},1,2" for k in range(20))]))
    for count in (1, 2, 3):
        spoiled = [f"s{k},{k},1,many" if k < count else cells[k] for k in range(20)]
        slots.write_text("\n".join(["sku,aisle,row,qty", *spoiled]))
        if count == 3:
            with pytest.raises(
                DataError, match=r"line 2: qty is 'many', not a number; 3 of 20 rows"
            ):
                read([orders, slots])
            continue
        with pytest.warns(UserWarning, match=r"slots\.csv, line 2: qty is 'many'"):
            book = read([orders, slots])
        assert isinstance(book, OrderBook)
        assert len(book.orders) == 20 - count
        assert sum(refusal.rows for refusal in book.refused) == 2 * count


def test_slots_of_which_none_has_a_number_are_refused(tmp_path: Path) -> None:
    slots, orders = tmp_path / "slots.csv", tmp_path / "orders.csv"
    slots.write_text("sku,aisle,row,qty\na,0,1,unknown\nb,1,1,\n")
    orders.write_text("order_id,release_min,due_min,sku,qty,value\nO,0,9,a,1,2\n")
    with pytest.raises(DataError, match=r"slots\.csv: no row with a readable qty is left"):
        read([orders, slots])


def test_compact_periods_and_times_are_dates_in_the_warehouse(tmp_path: Path) -> None:
    path = tmp_path / "demand.csv"
    days = ["20240130", "20240131", "20240201", "20240202"]
    path.write_text("\n".join(["period,sku,qty", *(f"{day},a,{k}" for k, day in enumerate(days))]))
    history = read(path)
    assert getattr(history, "demand") == {"a": (0, 1, 2, 3)}  # noqa: B009
    path.write_text("period,sku,qty\n0203-01,a,1\n0203-02,a,1\n")
    with pytest.raises(DataError, match=r"'0203-01' is not .* of the years 1900 to 2199"):
        read(path)
