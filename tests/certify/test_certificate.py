"""A certificate: its JSON, what it must show, waivers, differences, pages and the command."""

import json
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.certify.faults import PaysForSilence
from tests.certify.synthetic import QUICK, Products
from tests.docs.pages import ROOT
from tokengym.agents.certify.certificate import (
    Certificate,
    certificate_schema,
    certify,
    read_certificate,
)
from tokengym.agents.certify.finding import CHECKS, Severity, Status
from tokengym.agents.certify.page import save
from tokengym.agents.certify.policy import Requirement, changes, read_waivers, waive
from tokengym.agents.cli import app
from tokengym.agents.viewer import open_runs, whole_page
from tokengym.envs.core.errors import DataError, OptionError
from tokengym.rewards.estimates import Estimate

ONLY = ["semantic.floor_gap", "runtime.reward_well_formed", "statistical.training_signal"]


@pytest.fixture(scope="module")
def clean() -> Certificate:
    return certify(Products(), "clean", QUICK, only=ONLY)


@pytest.fixture(scope="module")
def gamed() -> Certificate:
    return certify(PaysForSilence(), "gamed", QUICK, only=ONLY)


@pytest.mark.nightly
def test_a_certificate_is_read_back_and_keeps_its_schema(
    clean: Certificate, tmp_path: Path
) -> None:
    save(clean, tmp_path)
    assert read_certificate(tmp_path) == clean
    jsonschema = pytest.importorskip("jsonschema")
    written = json.loads((tmp_path / "certificate.json").read_text())
    jsonschema.validate(written, certificate_schema())
    page = whole_page(open_runs([tmp_path]), 10**6)
    assert all(name in page for name in ONLY)
    (tmp_path / "certificate.json").write_text('{"schema": 99}')
    with pytest.raises(DataError, match="schema 99"):
        read_certificate(tmp_path)


def test_requirements_name_classes_checks_and_bounds(
    clean: Certificate, gamed: Certificate
) -> None:
    def broken(text: str, certificate: Certificate) -> bool:
        return bool(Requirement.parse(text).unmet(certificate))

    assert [found.check for found in gamed.failed(Severity.RISK)] == ["semantic.floor_gap"]
    for text in ("risks", "semantic.floor_gap", "semantic.floor_gap<=0.5"):
        assert broken(text, gamed)
        assert not broken(text, clean)
    assert not broken("defects", gamed)
    assert broken("statistical.training_signal>=0.9", clean)
    bounds = ("semantic.floor_gap=1", "semantic.floor_gap<=.")
    for text in ("risk", "defects<=1", "no.such_check", *bounds):
        with pytest.raises(OptionError, match="--require takes"):
            Requirement.parse(text)


def test_a_failure_is_accepted_for_a_reason_and_a_target(
    gamed: Certificate, tmp_path: Path
) -> None:
    file = tmp_path / "waivers.toml"
    text = '[[waiver]]\ncheck = "semantic.floor_gap"\nreason = "by design"\ntarget = "{}"\n'
    file.write_text(text.format("ga*"))
    accepted = waive(gamed, read_waivers(file))
    assert accepted.failed(Severity.RISK) == []
    assert not Requirement.parse("semantic.floor_gap<=0.5").unmet(accepted)
    assert waive(gamed, read_waivers(file)).findings[1].waived in ("by design", "")
    file.write_text(text.format("other"))
    assert waive(gamed, read_waivers(file)) == gamed
    for damaged in ('check = "semantic.floor_gap"\nreason = " "', 'check = "x"\nreason = "y"'):
        file.write_text(f"[[waiver]]\n{damaged}\n")
        with pytest.raises(DataError, match="names a check and a reason"):
            read_waivers(file)
    file.write_bytes('[[waiver]]\nreason = "\u00e9"\n'.encode("latin-1"))
    with pytest.raises(DataError, match="utf-8"):
        read_waivers(file)
    file.write_text('waiver = ["gamed.echo"]\n')
    with pytest.raises(DataError, match=r"waivers\.toml: "):
        read_waivers(file)


def test_differences_need_intervals_that_do_not_meet(
    clean: Certificate, gamed: Certificate
) -> None:
    assert changes(clean, clean) == []
    assert [row[0] for row in changes(clean, gamed)] == ["semantic.floor_gap"]
    first, *rest = clean.findings
    assert first.estimate is None
    near = replace(first, estimate=Estimate(0.5, 0.4, 0.6))
    old = replace(clean, findings=(near, *rest))
    for estimate, differs in ((Estimate(0.65, 0.55, 0.75), False), (Estimate(0.8, 0.7, 0.9), True)):
        new = replace(clean, findings=(replace(near, estimate=estimate), *rest))
        assert bool(changes(old, new)) is bool(changes(new, old)) is differs


def test_the_page_says_how_many_checks_there_are() -> None:
    page = (ROOT / "docs" / "certify.md").read_text(encoding="utf-8")
    assert f"runs {len(CHECKS)} checks" in page


def test_only_known_checks_asked_for_are_run() -> None:
    assert len(certify(Products(), "clean", QUICK, only=ONLY[:1]).findings) == 1
    with pytest.raises(OptionError, match="--only must be one of"):
        certify(Products(), "clean", QUICK, only=["no.such_check"])


def test_the_command_writes_a_certificate_and_checks_requirements(tmp_path: Path) -> None:
    rows = [
        {"prompt": f"Task {g}", "reply": str(m), "reward": m / 4 if g else 0.5, "group": g}
        for g in range(8)
        for m in range(4)
    ]
    file, out = tmp_path / "rows.jsonl", tmp_path / "out"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    words = ["certify", str(file), "--out", str(out), "--tasks", "4"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    (folder,) = out.iterdir()
    made = read_certificate(folder)
    assert (made.target, made.settings.tasks) == (str(file), 4)
    assert sum(found.status is not Status.INAPPLICABLE for found in made.findings) >= 5
    strict = ["--require", "statistical.training_signal<=0.1", "--resume"]
    file.unlink()  # the certificate that is there is enough
    done = CliRunner().invoke(app, [*words, *strict])
    assert done.exit_code == 1
    assert "breaks statistical.training_signal<=0.1" in done.output
    assert isinstance(CliRunner().invoke(app, words).exception, DataError)
    same = ["certify", "diff", str(folder), str(folder)]
    assert "nothing changed" in CliRunner().invoke(app, same).output
    last = replace(made.findings[-1], status=Status.UNTOLD, found="[/red]")
    save(replace(made, findings=(*made.findings[:-1], last)), tmp_path / "new")
    other = CliRunner().invoke(app, ["certify", "diff", str(folder), str(tmp_path / "new")])
    assert "[/red]" in other.output


def test_targets_are_listed_one_a_line_in_utf_8(tmp_path: Path) -> None:
    row = {"prompt": "a", "reply": "b", "reward": 1.0}
    (tmp_path / "\u00e9.jsonl").write_text(json.dumps(row))
    (tmp_path / "targets").write_text(f"\n{tmp_path}/\u00e9.jsonl \n\n", encoding="utf-8-sig")
    words = ["certify", "--targets", f"{tmp_path}/targets", "--out", f"{tmp_path}/out"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert len([*(tmp_path / "out").iterdir()]) == 1


@pytest.mark.nightly
def test_a_target_of_a_file_has_options_of_its_own(tmp_path: Path) -> None:
    lake = "gymnasium:FrozenLake-v1"
    (tmp_path / "targets").write_text(f"{lake} --option is_slippery=false\n{lake}\n")
    words = ["certify", "--targets", f"{tmp_path}/targets", "--out", f"{tmp_path}/out"]
    quick = ["--tasks", "4", "--replies", "20", "--strategies", "2", "--drawn", "10"]
    done = CliRunner().invoke(app, [*words, *quick, "--workers", "2", "--patience", "0.2"])
    assert done.exit_code == 0, done.output
    made = {folder.name: read_certificate(folder) for folder in (tmp_path / "out").iterdir()}
    assert {name: dict(one.options) for name, one in made.items()} == {
        "gymnasium_FrozenLake-v1": {},
        "gymnasium_FrozenLake-v1_--option_is_slippery_false": {"is_slippery": False},
    }


def test_a_certificate_holds_for_its_settings_and_versions(clean: Certificate) -> None:
    known = replace(clean, package="numpy " + version("numpy"), options={"a": 1})
    settings, harder = {"a": 1}, dict[str, int]()
    assert known.holds_for("clean", settings, QUICK, harder)
    changes: list[dict[str, Any]] = [
        {"package": "numpy 0.1"},
        {"tokengym": "0.0.1"},
        {"settings": replace(QUICK, tasks=13)},
        {"options": {}},
        {"harder": {"level": 2}},
    ]
    for change in changes:
        assert not replace(known, **change).holds_for("clean", settings, QUICK, harder)


def test_a_range_is_given_low_end_first() -> None:
    for text in ("1", "1,0", "a,b", "nan,1", "0,inf"):
        done = CliRunner().invoke(app, ["certify", "forecast", "--declared", text])
        assert isinstance(done.exception, OptionError)
