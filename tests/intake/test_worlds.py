"""Laws of the intake in every world: what guards is kept, what is odd is read or named."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from typer.testing import CliRunner

from tests.energy.test_data import BUILDING, PLAIN, building_rows, plain_rows, write
from tests.forecasting.questions_file import plain, prompts_of, world_of, write_lines
from tokengym.agents.cli.data import data
from tokengym.agents.cli.data_audit import levels_of
from tokengym.agents.cli.options import add_data
from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.disruption.data import read_papers
from tokengym.envs.disruption.data.openalex import read_works
from tokengym.envs.disruption.world import DisruptionWorld
from tokengym.envs.energy.data import read as read_days
from tokengym.envs.registry import make_world
from tokengym.envs.warehouse.data import read as read_records


def paper(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "openalex_id": f"W{number}",
        "title": f"A map of lake {number}",
        "abstract": "We chart it.",
        "publication_year": 2000,
        "cited_by_count": 31,
        "cd_index": 0.32,
        "novelty_score": None,
        "conventionality_score": None,
        "disruption_label": "disruptive",
        "novelty_label": None,
        "primary_field": "Geology",
        **changes,
    }


def work(**changes: Any) -> dict[str, Any]:
    return {"id": "https://openalex.org/W7", "title": "T", "publication_year": 2001, **changes}


def sales(path: Path, rows: int = 60, header: str = "period,sku,qty") -> Path:
    lines = [f"{period}.0,7.0,{period % 4}.0" for period in range(rows)]
    path.write_text("\n".join([header, *lines, "", " ", ",,", ""]))
    return path


# Clean


HOSTILE = "We chart it. <|im_end|>\u202eabc\u200b</s> [INST] &lt;think&gt; <b>bold</b>"


def test_papers_are_shown_as_clean_as_questions(tmp_path: Path) -> None:
    rows = [paper(k, abstract=HOSTILE, title=f"{HOSTILE} {k}") for k in range(30)]
    world = make_world("disruption", data=write_lines(tmp_path / "papers.jsonl", rows))
    shown = world.start(world.task("train", 0)).text
    for mark in ("<|", "|>", "\u202e", "\u200b", "</s>", "[INST]", "<think>", "&lt;", "<b>"):
        assert mark not in shown
    assert "We chart it. (|im_end|)abc(/s) (INST) (think) bold" in shown


def test_invisible_and_endless_questions_are_rejected(tmp_path: Path) -> None:
    rows = [
        plain(1, question="\u3164\u200b"),
        plain(2, background="x" * 4_000_000),
        plain(3, outcomes=["a", "a\u200b"], outcome=0),
        *map(plain, range(10, 20)),
    ]
    report = world_of(write_lines(tmp_path / "q.jsonl", rows)).data_report
    assert report is not None
    reasons = report.every
    assert len(reasons) == 3
    assert "nothing that can be seen" in reasons[0]
    assert "a text has 4,000,000 characters, more than 1,000,000" in reasons[1]


# Together


def test_papers_near_in_title_or_abstract_lie_in_one_split(tmp_path: Path) -> None:
    abstract = "We measure how deep the lakes of the north have been in each of ten winters."
    rows = [
        paper(
            10 * k + version,
            title=[f"The depth of lake {k}", f"Depths of Lake {k}.", f"A study: {k}"][version],
            abstract=f"{abstract} Lake {k}." if version != 1 else "",
            publication_year=2000 + version,
        )
        for k in range(40)
        for version in range(3)
    ]
    world = make_world("disruption", data=write_lines(tmp_path / "papers.jsonl", rows))
    assert isinstance(world, DisruptionWorld)
    found: dict[int, set[str]] = {}
    for split in SPLITS:
        for index in range(world.size(split) or 0):
            source = world.task(split, index).answer["source"]
            found.setdefault(int(source[1:]) // 10, set()).add(split)
    assert len(found) == 40
    assert all(len(splits) == 1 for splits in found.values())
    assert "120 papers with title or abstract in near-equal words" in str(world.data_report)


def test_near_and_telling_questions_leave_the_train_split(tmp_path: Path) -> None:
    extra = [
        plain(20, id="a", event="a", question="Will the dam be opened?", closed_at="2025-02-01",
              resolves_at="2025-03-15"),
        plain(50, id="b", event="b", question="Will they open the dam", resolves_at="2025-03-15"),
        plain(21, id="c", event="c", question="Will the Kestrel, winner of the regatta, sail on?"),
        plain(51, id="d", event="d", question="Which boat wins the regatta?",
              outcomes=["Merlin", "Kestrel"], outcome="Kestrel"),
    ]  # fmt: skip
    path = write_lines(tmp_path / "q.jsonl", [*map(plain, range(60)), *extra])
    world = world_of(path, cutoff="2025-02-15")
    assert world.data_report is not None
    assert [world.data_report.guards[name].found for name in ("repeated", "telling")] == [1, 1]
    train = [world.task("train", index).answer["key"] for index in range(world.size("train") or 0)]
    assert not {"a", "c"} & set(train)
    assert "c tells the outcome of d" in str(world.data_report)
    assert sum("regatta" in prompt for prompt in prompts_of(world)) == 1


def test_comparisons_apart_in_a_sign_are_not_one_question(tmp_path: Path) -> None:
    rows = [
        {**plain(n, question=f"Will it be {sign} 5 on day {n}?", outcome=outcome), "event": None,
         "id": f"{n}{sign}"}
        for n in range(20)
        for sign, outcome in (("<", 0), (">", 1))
    ]  # fmt: skip
    report = world_of(write_lines(tmp_path / "q.jsonl", rows)).data_report
    assert report is not None
    assert (report.guards["merged"].found, report.dropped) == (0, ())


# Typos


@pytest.mark.parametrize(
    ("outcomes", "outcome", "read"),
    [
        (["1", "2", "3"], 1, None),
        (["1", "2", "3"], "2", None),
        (["0", "1"], 1, 1),
        (["1", "2", "3"], 0, 0),
        (["1", "2", "3"], "3", 2),
        (["yes", "no"], 1, None),
        (["no", "yes"], 1, 1),
        (["a", "b"], 1.0, 1),
        (["a", "b"], "b", 1),
    ],
)
def test_ambiguous_outcomes_are_refused(
    outcomes: list[str], outcome: object, read: int | None, tmp_path: Path
) -> None:
    rows = [plain(1, outcomes=outcomes, outcome=outcome), plain(40)]
    world = world_of(write_lines(tmp_path / "q.jsonl", rows))
    assert world.data_report is not None
    if read is None:
        (rejected,) = world.data_report.every
        assert "is the name of one outcome and the index of another" in rejected
    else:
        assert not world.data_report.dropped
        answers = [world.task(s, i).answer for s in SPLITS for i in range(world.size(s) or 0)]
        assert next(a["outcome"] for a in answers if a["key"] == "q1") == read


def test_misspelt_fields_are_named_with_the_ones_that_were_meant(tmp_path: Path) -> None:
    rows = [plain(1, closed_att="2025-01-03"), plain(40, sources=[{"text": "x", "datte": "2025"}])]
    report = world_of(write_lines(tmp_path / "q.jsonl", rows)).data_report
    assert report is not None
    assert "closed_att (did you mean 'closed_at'?)" in str(report)
    assert "a source has the field 'datte' (did you mean 'date'?)" in report.every[0]
    with pytest.raises(DataError, match=r"first_yr \(did you mean 'first_year'\?\)"):
        list(read_papers(write_lines(tmp_path / "p.jsonl", [paper(1, first_yr=None)])))
    days = write(tmp_path / "d.csv", [*PLAIN, "carbon_kg_kwh"], [[*r, 0.2] for r in plain_rows(5)])
    assert "carbon_kg_kwh (did you mean 'carbon_kg_per_kwh'?)" in str(read_days(days).report)
    records = read_records(sales(tmp_path / "s.csv", header="period,sku,qty"))
    assert (records.notes, records.refused) == ((), ())
    double = write(tmp_path / "twice.csv", [*PLAIN, "load_kw"], [[*r, 9] for r in plain_rows(5)])
    with pytest.raises(DataError, match=r"twice\.csv, line 1: the column 'load_kw' comes twice"):
        read_days(double)


# As tools write them


def test_sales_with_whole_numbers_as_floats_are_the_same_sales(tmp_path: Path) -> None:
    floats = read_records(sales(tmp_path / "floats.csv"))
    path = tmp_path / "whole.csv"
    path.write_text(sales(tmp_path / "again.csv").read_text().replace(".0", "").replace(",", ";"))
    assert read_records(path).digest == floats.digest


def test_papers_with_whole_numbers_as_floats_are_the_same_papers(tmp_path: Path) -> None:
    facts = {"count": 12.0, "age": 7.0, "venues": 5.0, "fields": 2.0}
    rows = [
        paper(1, publication_year=2000.0, cited_by_count=31.0, references=facts),
        paper(1, references={name: int(number) for name, number in facts.items()}),
    ]
    one, other = read_papers(write_lines(tmp_path / "papers.jsonl", rows))
    assert one == other
    assert repr(one) == repr(other)
    with pytest.raises(DataError, match="publication_year must be a whole number"):
        list(read_papers(write_lines(tmp_path / "p.jsonl", [paper(1, publication_year=2000.5)])))


def test_a_decimal_comma_among_decimal_points_is_refused(tmp_path: Path) -> None:
    lines: list[list[Any]] = [PLAIN, *([row[0], "1,234", *row[2:]] for row in plain_rows(3))]
    path = tmp_path / "d.csv"
    path.write_text("\n".join(";".join(f"{cell}" for cell in line) for line in lines))
    with pytest.raises(DataError, match=r"load_kw is '1,234' .* one decimal sign is needed"):
        read_days(path)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("zone", "year"),
    [
        ("Africa/Cairo", 2024),
        ("Asia/Amman", 2021),
        ("America/Sao_Paulo", 2018),
        ("Asia/Tehran", 2021),
        ("Australia/Lord_Howe", 2024),
    ],
)
def test_local_times_are_cut_where_clocks_change(zone: str, year: int, tmp_path: Path) -> None:
    start, offsets = datetime(year, 1, 1, tzinfo=UTC), []
    rows: list[list[object]] = []
    for hour in range(330 * 24):
        local = (start + timedelta(hours=hour)).astimezone(ZoneInfo(zone))
        offsets.append(local.utcoffset())
        rows.append([local.replace(tzinfo=None).isoformat(), 1, 0, 0.2, 0.05, 1])
    series = read_days(write(tmp_path / "d.csv", PLAIN, rows))
    changes = [at for at in range(1, len(offsets)) if offsets[at] != offsets[at - 1]]
    assert changes
    assert [at for at, _ in series.cuts] == changes
    assert all("clocks go" in part.why for part in series.report.dropped)


def test_a_little_sun_below_zero_is_none_and_counted(tmp_path: Path) -> None:
    rows = plain_rows(5)
    rows[2][2], rows[3][2] = -0.01, "-0.04"
    report = read_days(write(tmp_path / "d.csv", PLAIN, rows)).report
    assert "2 readings of sun just below 0, as inverters draw at night, are 0" in report.notes
    rows[4][2] = -0.4
    with pytest.raises(DataError, match="a pv is never negative"):
        read_days(write(tmp_path / "d.csv", PLAIN, rows))


# No silent half


@pytest.mark.parametrize(
    "change",
    [
        {"title": ["a"]},
        {"referenced_works": "W1"},
        {"referenced_works": [1]},
        {"publication_year": True},
        {"publication_year": 2005.7},
        {"primary_location": ["x"]},
        {"abstract_inverted_index": {"we": ["0"]}},
        {"type": 3},
    ],
)
def test_a_work_of_wrong_types_is_refused_or_skipped(
    change: Mapping[str, Any], tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "works.jsonl", [work(**change), work(id="W8")])
    with pytest.raises(DataError, match=r"works\.jsonl:1: not a work: "):
        list(read_works([path]))
    skipped: list[str] = []
    assert [one.id for one in read_works([path], skipped=skipped)] == ["W8"]
    assert len(skipped) == 1


def test_unplayed_demand_is_named_in_the_first_line(tmp_path: Path) -> None:
    rows = [[*row, 2.0, 0.5] for row in building_rows(2)]
    header = [*BUILDING, "heating_demand", "dhw_demand"]
    report = str(read_days(write(tmp_path / "Building_1.csv", header, rows)).report)
    lost, load = 48 * 2.5, sum(float(str(row[2])) for row in rows)
    assert report.splitlines()[0] == (
        f"{lost:,.0f} of {lost + load:,.0f} kWh of demand are not counted: heating_demand 96, "
        "dhw_demand 24"
    )


def test_few_questions_without_any_to_train_on_are_said(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "q.jsonl", [plain(1), plain(2)])
    assert "nothing is left for train" in str(world_of(path).data_report)


# The audit


@pytest.mark.nightly
def test_audits_read_alike_for_every_world(tmp_path: Path) -> None:
    files = {
        "forecast": write_lines(tmp_path / "q.jsonl", map(plain, range(60))),
        "energy": write(tmp_path / "d.csv", PLAIN, plain_rows()),
        "warehouse": sales(tmp_path / "s.csv"),
        "disruption": write_lines(tmp_path / "p.jsonl", map(paper, range(60))),
    }
    for world, path in files.items():
        for named in ([], ["--world", world]):
            shown = CliRunner().invoke(data, ["audit", str(path), "--json", *named])
            assert shown.exit_code == 0, shown.output
            found = json.loads(shown.output)
            assert found["world"] == world
            assert sum(found["rows"].values()) in (60, 480)
            played = [kept for kept in found["kept"].values() if isinstance(kept, dict)]
            assert played
            assert all(kept["train"] for kept in played)
            assert set(found) == {*["world", "rows", "kept", "dropped", "leaks", "notes", "every"]}


def test_data_that_are_named_twice_are_read_together(tmp_path: Path) -> None:
    """As `--data A --data B` gives them, for worlds whose files hold rows of one kind."""
    rows = {"forecast": map(plain, range(40)), "disruption": map(paper, range(60))}
    for name, each in rows.items():
        lines = list(each)
        halves = [
            write_lines(tmp_path / f"{name}{n}.jsonl", part)
            for n, part in enumerate((lines[::2], lines[1::2]))
        ]
        whole = write_lines(tmp_path / f"{name}.jsonl", lines)
        sizes = []
        for files in (halves, halves[::-1], [whole]):
            said: dict[str, Any] = {"options": {"prompt": "full"}}
            add_data(said, files, None)
            world = make_world(name, **said["options"])
            sizes.append([world.size(split) for split in SPLITS])
        assert sizes[0] == sizes[1] == sizes[2]
    unsaid: dict[str, Any] = {}
    add_data(unsaid, None, None)
    assert unsaid == {}


@pytest.mark.parametrize("name", ["forecast", "energy", "warehouse", "disruption"])
def test_audits_name_faults_of_unreadable_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / "utf16.csv"
    path.write_bytes("id,question\n1,Will it?\n".encode("utf-16"))
    with pytest.raises(DataError, match=r"utf16\.csv"):
        levels_of(name, {"data": str(path)})
    with pytest.raises(OptionError, match="nonesuch"):
        levels_of(name, {"data": str(path), "nonesuch": 1})


def test_audits_of_unplayable_data_give_reasons_by_level(tmp_path: Path) -> None:
    path = sales(tmp_path / "few.csv", rows=5)
    with pytest.raises(DataError, match=r"keep stock only(.|\n)*windows of \d+ periods"):
        levels_of("warehouse", {"data": str(path)})
