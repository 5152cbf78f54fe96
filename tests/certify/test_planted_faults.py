"""Every check catches a fault that was planted for it, and passes the same environment without."""

import json
import re
import time
from dataclasses import replace
from typing import Any

import pytest

from tests.certify.faults import (
    PLANTED,
    AsksOthersInOtherWords,
    EndsOnlyWhenSolved,
    Leaks,
    PaysHugeSums,
    Repeatable,
    TellsWhetherItIsMore,
    Tidy,
)
from tests.certify.kinds import FAULTS
from tests.certify.synthetic import (
    QUICK,
    CostsNonsense,
    Guesses,
    Products,
    ReadsLines,
    ReadsTags,
    Seeded,
)
from tokengym.agents.certify.certificate import certify
from tokengym.agents.certify.checks import sound
from tokengym.agents.certify.finding import CHECKS, Severity, Status
from tokengym.agents.certify.source import SourceEpisode, TaskPlace
from tokengym.agents.certify.sources import MANY_TURNS


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("check", "faulty"),
    [(check, faulty) for check, all_of_it in PLANTED.items() for faulty in all_of_it],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_planted_fault_is_caught(
    check: str, faulty: type[Products], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sound, "_PLAYING", 60.0)  # however busy the machine is
    many = replace(QUICK, replies=3200)
    settings = many if check == "sound.memory" else QUICK
    (found,) = certify(faulty(), "faulty", settings, only=[check]).findings
    assert found.status is Status.FAILED, found
    assert found.found
    assert found.reproduce.startswith(f"tokengym certify faulty --only {check} ")
    assert found.reproduce.endswith(f" --replies {settings.replies} --drawn 60")


def test_a_source_that_cannot_start_stops_no_other_check() -> None:
    class Breaks(Products):
        def start(self, place: TaskPlace) -> SourceEpisode:
            raise KeyError(place.index)

    certificate = certify(Breaks(), "broken", QUICK)
    failed = [found for found in certificate.findings if found.status is Status.FAILED]
    assert {found.severity for found in failed} == {Severity.DEFECT}
    assert "KeyError: 0" in failed[0].found
    assert len({found.found for found in failed}) == len(failed)  # each Task is told of once
    assert Status.UNTOLD in {found.status for found in certificate.findings}


@pytest.mark.nightly
def test_sums_that_no_float_holds_end_in_findings() -> None:
    certificate = certify(PaysHugeSums(), "huge", QUICK)
    assert json.loads(certificate.to_json())
    (floor,) = (found for found in certificate.findings if found.check == "semantic.floor_gap")
    assert (floor.status, floor.estimate) == (Status.UNTOLD, None)


def test_memory_that_caches_may_have_filled_is_not_told() -> None:
    (found,) = certify(Leaks(), "leaks", QUICK, only=["sound.memory"]).findings
    assert (found.status, "may not have filled" in found.found) == (Status.UNTOLD, True)


def test_a_check_that_takes_too_long_stops_no_other() -> None:
    class Sluggish(Products):
        def reward(self, place: TaskPlace, text: str) -> Any:
            time.sleep(0.1)
            return super().reward(place, text)

    hurried = replace(QUICK, patience=0.25)
    only = ["gamed.fixed_reply", "leaked.splits"]
    slow, other = certify(Sluggish(), "slow", hurried, only=only).findings
    assert (slow.status, other.status) == (Status.UNTOLD, Status.PASSED)
    assert "its share of 0.25 s" in slow.found
    assert re.search(
        r"it played [1-9]\d* episodes in \d\.\d s of work and \d\.\d s of waiting", slow.found
    )
    assert slow.seconds[1] > 0.5


def test_every_check_has_a_planted_fault() -> None:
    others = {"statistical.difficulty_separation", "sound.scored_together"}
    assert {*PLANTED, *(exam.check for exam in FAULTS.values()), *others} == set(CHECKS)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "clean",
    [
        *(Products, Seeded, Guesses, Repeatable, Tidy, CostsNonsense),
        *(ReadsTags, ReadsLines, AsksOthersInOtherWords),
    ],
)
def test_nothing_is_found_in_an_environment_without_a_fault(clean: type[Products]) -> None:
    certificate = certify(clean(), "clean", replace(QUICK, tasks=8, strategies=5, drawn=40))
    assert [found for found in certificate.findings if found.status is Status.FAILED] == []


def test_a_hint_that_leaves_something_to_find_is_no_leak() -> None:
    (found,) = certify(TellsWhetherItIsMore(), "hi", QUICK, only=["leaked.observation"]).findings
    assert found.status is Status.PASSED, found


def test_an_endless_episode_without_a_limit_is_a_property() -> None:
    class Walk(EndsOnlyWhenSolved):
        facts = replace(EndsOnlyWhenSolved.facts, turns=MANY_TURNS)

    (found,) = certify(Walk(), "walk", QUICK, only=["sound.ends"]).findings
    assert (found.status, found.severity) == (Status.FAILED, Severity.PROPERTY)
    assert found.found.endswith("do not end in 64 replies, the most that certify plays")


class PaysEverything(Products):
    def __init__(self, tasks: int) -> None:
        self.facts = replace(Products.facts, splits=(), size=2 * tasks)

    def reward(self, place: TaskPlace, text: str) -> Any:
        return 1.0


@pytest.mark.nightly
@pytest.mark.parametrize(("tasks", "status"), [(5, Status.UNTOLD), (6, Status.FAILED)])
def test_too_few_tasks_do_not_exclude_gaming(tasks: int, status: Status) -> None:
    for check in ("semantic.floor_gap", "statistical.adversarial_floor"):
        (found,) = certify(PaysEverything(tasks), "pays", QUICK, only=[check]).findings
        assert found.status is status, found
        assert status is Status.FAILED or "5 Tasks" in found.found
