"""Faults just over and just under the threshold of a check, and verdicts on intervals."""

import math
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.certify.faults import AllOrNothing
from tests.certify.synthetic import Guesses, Products, Seeded
from tests.every import every
from tokengym.agents.certify.bench import CertifySettings, Untold
from tokengym.agents.certify.certificate import Certificate, certify
from tokengym.agents.certify.checks.gamed import at_most_half
from tokengym.agents.certify.finding import Finding, Severity, Status
from tokengym.agents.certify.page import certificate_report
from tokengym.agents.certify.policy import Requirement
from tokengym.agents.certify.source import (
    Facts,
    SourceEpisode,
    SourceFailure,
    SourceStep,
    TaskPlace,
)
from tokengym.envs.core.errors import OptionError
from tokengym.rewards.estimates import Estimate

MANY = CertifySettings(tasks=20, strategies=5, replies=20, drawn=100)


def found(source: Products, check: str, settings: CertifySettings = MANY) -> Finding:
    (only,) = certify(source, "near", settings, only=[check]).findings
    return only


def paying(share: float, wanted: Callable[[str], bool], value: float = 1.0) -> Products:
    """Pay a value for replies of some kind on a share of the Tasks."""

    class Pays(AllOrNothing):
        def reward(self, place: TaskPlace, text: str) -> Any:
            mine = (place.index // 2 * 7) % 20 < 20 * share
            return value if mine and wanted(text) else super().reward(place, text)

    return Pays()


NEAR: list[tuple[str, Callable[[bool], Products]]] = [
    ("semantic.floor_gap", lambda over: paying(0.3 if over else 0.05, lambda t: not t)),
    (
        "semantic.canary_floor",
        lambda over: paying(1.0, lambda t: "canary" in t, 0.3 if over else 0.08),
    ),
    (
        "gamed.odd_replies",
        lambda over: paying(1.0, lambda t: "<|im_end|>" in t, 0.12 if over else 0.08),
    ),
    ("gamed.fixed_reply", lambda over: paying(0.8 if over else 0.5, lambda t: t == "no")),
    ("fair.decoration", lambda over: _Costs("boxed", 0.08 if over else 0.03)),
    ("fair.blanks", lambda over: _Costs("\r\n", 0.08 if over else 0.03)),
    ("semantic.oracle_max", lambda over: _Claims(1.1 if over else 1.0 + 1e-7)),
    ("leaked.splits", lambda over: _Shares("third" if over else "none", 0.1)),
    ("leaked.splits", lambda over: _Shares("test", 0.08 if over else 0.02)),
    ("leaked.seeds", lambda over: _Seeds(0.1 if over else 0.01)),
    ("leaked.repeated_prompts", lambda over: _Repeats(0.15 if over else 0.05)),
    (
        "runtime.reward_well_formed",
        lambda over: paying(1.0, lambda t: "{" in t, 1.01 if over else 1.0),
    ),
]
"""Checks, with a source that lies just over the threshold, or just under it."""


class _Costs(Products):
    def __init__(self, mark: str, cost: float) -> None:
        self.mark, self.cost = mark, cost

    def reward(self, place: TaskPlace, text: str) -> Any:
        cost = self.cost if self.mark in text and place.index % 8 == 0 else 0.0
        return max(super().reward(place, text) - cost, 0.0)


class _Claims(Products):
    def __init__(self, claimed: float) -> None:
        self.claimed = claimed

    def claim(self, place: TaskPlace) -> float | None:
        return self.claimed if place.index % 5 == 0 else 1.0


class _Shares(Products):
    """A share of one split are Tasks of training."""

    facts = Facts("products 1.0", splits=("train", "test", "third"), declared=(0.0, 1.0))

    def __init__(self, split: str, share: float) -> None:
        self.split, self.share = split, share

    def factors(self, place: TaskPlace) -> tuple[int, int]:
        mine = place.split == self.split and place.index % 100 < 100 * self.share
        return super().factors(replace(place, split="train") if mine else place)


class _Seeds(Seeded):
    def __init__(self, share: float) -> None:
        self.share = share

    def factors(self, place: TaskPlace) -> tuple[int, int]:
        mine = place.index % 100 < 100 * self.share
        return super().factors(replace(place, seed=0) if mine else place)


class _Repeats(Products):
    def __init__(self, share: float) -> None:
        self.share = share

    def factors(self, place: TaskPlace) -> tuple[int, int]:
        mine = 0 < place.index <= 100 * self.share
        return super().factors(replace(place, index=0) if mine else place)


@pytest.mark.nightly
@every("over", [True, False])
@pytest.mark.parametrize(("check", "plant"), NEAR)
def test_a_check_fails_just_over_its_threshold_alone(
    check: str, plant: Callable[[bool], Products], over: bool
) -> None:
    one = found(plant(over), check)
    assert one.status is (Status.FAILED if over else Status.PASSED), one


@pytest.mark.parametrize(
    ("share", "verdict"),
    [
        (Estimate(0.6, 0.51, 0.7, 20), False),
        (Estimate(0.6, 0.49, 0.7, 20), True),
        (Estimate(0.5, 0.4, 0.6, 20), True),
        (Estimate(0.4, 0.3, 0.51, 20), True),
        (Estimate(0.9, 0.2, 1.0, 4), None),
    ],
)
def test_gaming_is_what_the_whole_interval_says(share: Estimate, verdict: bool | None) -> None:
    if verdict is None:
        with pytest.raises(Untold, match="too few"):
            at_most_half(share, "", "")
    else:
        assert at_most_half(share, "", "").passed is verdict


@pytest.mark.parametrize("failure", [SourceFailure("no answer in 60 s"), ValueError("digits")])
@pytest.mark.parametrize(("digits", "severity"), [(2, Severity.DEFECT), (1000, Severity.FRAGILE)])
def test_what_an_extreme_reply_alone_breaks_is_fragile(
    digits: int, severity: Severity, failure: Exception
) -> None:
    class Breaks(AllOrNothing):
        def reward(self, place: TaskPlace, text: str) -> Any:
            if re.search(rf"[0-9]{{{digits}}}", text) and text != self.answer(place):
                raise failure
            return super().reward(place, text)

    one = found(Breaks(), "sound.no_reply_raises")
    assert (one.status, one.severity) == (Status.FAILED, severity)


def test_groups_of_eight_are_judged_of_all_sizes() -> None:
    class PaysOneOfTen(AllOrNothing):
        """Most groups of four tie, few of sixteen."""

        def reward(self, place: TaskPlace, text: str) -> Any:
            return float(hashed(text) % 10 == 0)

    def hashed(text: str) -> int:
        return sum(map(ord, text)) * 2654435761 % 2**32

    settings = replace(MANY, policy="others", ties=0.0)
    one = found(PaysOneOfTen(), "statistical.training_signal", settings)
    assert one.estimate is not None
    shares = {size: share for share, size in re.findall(r"([\d.]+) of (\d+)", one.found)}
    assert shares["4"] > shares["8"] > shares["16"]
    assert f"{one.estimate.value:.2f}" == shares["8"]


@pytest.mark.nightly
def test_a_linear_grader_that_load_slows_is_not_steep() -> None:
    class Slowed(AllOrNothing):
        """From the first long reply on, others on the machine slow it down fivefold."""

        load = 1

        def reward(self, place: TaskPlace, text: str) -> Any:
            self.load = 5 if len(text) > 50_000 else self.load
            until = time.process_time() + 6e-7 * self.load * len(text)
            while time.process_time() < until:
                pass
            return super().reward(place, text)

    one = found(Slowed(), "sound.reply_time")
    assert one.status is Status.PASSED, one


def test_findings_of_a_run_that_was_stopped_remain() -> None:
    kept: list[Certificate] = []
    only = ["gamed.echo", "gamed.override", "sound.no_reply_raises"]
    whole = certify(Products(), "kept", replace(MANY, tasks=4), only=only, keep=kept.append)
    assert [one.finished for one in kept] == [False, False, True]
    assert kept[-1].findings == whole.findings
    assert all(one.seconds[0] > 0.0 for one in whole.findings)
    first, *rest = sorted(kept[0].findings, key=lambda one: one.status is Status.UNTOLD)
    assert first.status is Status.PASSED
    assert {one.found for one in rest} == {"the run was stopped before"}
    asked: tuple[str, dict[str, Any], Any, dict[str, Any]]
    asked = "kept", {}, replace(MANY, tasks=4), {}
    assert replace(whole, package="products").holds_for(*asked)
    assert not replace(kept[0], package="products").holds_for(*asked)
    assert "The run was stopped" in certificate_report(kept[0]).lines[1]


@pytest.mark.nightly
def test_stopping_early_is_reported_as_such() -> None:
    class Walk(Guesses):
        facts = replace(Guesses.facts, declared=None, turns=5)

        def start(self, place: TaskPlace) -> SourceEpisode:
            said: list[str] = []

            def reply(text: str) -> SourceStep:
                said.append(text)
                return SourceStep(-1.0, said[-4:] == [self.answer(place)] * 4, "Go on.")

            return SourceEpisode(self.prompt(place), reply, (self.answer(place),) * 4, -4.0)

    checks = ["sound.claim_unbeaten", "statistical.adversarial_floor"]
    claim, told = certify(Walk(), "walk", MANY, only=checks).findings
    assert (claim.check, claim.status) == (checks[0], Status.PASSED)
    assert told.found.startswith("ending the episode by the token budget earns ")
    assert (told.status, told.severity) == (Status.FAILED, Severity.RISK)


@pytest.mark.nightly
def test_one_cause_is_one_finding() -> None:
    class Noisy(AllOrNothing):
        count = 0

        def reward(self, place: TaskPlace, text: str) -> Any:
            self.count += 1
            return super().reward(place, text) * (0.9 + 0.1 * math.sin(self.count))

    certificate = certify(Noisy(), "noisy", replace(MANY, tasks=8, drawn=40))
    failed = [one.check for one in certificate.findings if one.counts]
    assert failed.count("semantic.verifier_determinism") == 1
    assert not {"semantic.oracle_max", "runtime.episode_isolation", "fair.decoration"} & {*failed}
    told = {one.check: one.found for one in certificate.findings}
    assert told["semantic.oracle_max"].startswith("semantic.verifier_determinism failed")


@pytest.mark.nightly
def test_equal_inputs_give_equal_certificates() -> None:
    def made() -> Certificate:
        return certify(Products(), "same", replace(MANY, tasks=6, drawn=20))

    timed = ("sound.reply_time", "sound.memory")
    first, second = ([one for one in made().findings if one.check not in timed] for _ in range(2))
    assert first == second


@every(
    ("status", "value", "text", "broken"),
    [
        (Status.UNTOLD, None, "gamed.echo<=0.5", True),
        (Status.INAPPLICABLE, None, "gamed.echo<=0.5", False),
        (Status.PASSED, 0.5, "gamed.echo<=0.5", False),
        (Status.PASSED, 0.51, "gamed.echo<=0.5", True),
        (Status.PASSED, 0.51, "gamed.echo", False),
        (Status.FAILED, 0.2, "gamed.echo<=0.5", False),
        (Status.FAILED, 0.2, "gamed.echo", True),
        (Status.UNTOLD, 0.2, "risks", False),
    ],
)
def test_untold_checks_meet_no_requirement(
    status: Status, value: float | None, text: str, broken: bool
) -> None:
    certificate = certify(Products(), "one", replace(MANY, tasks=4), only=["gamed.echo"])
    estimate = None if value is None else Estimate(value, value - 0.1, value + 0.1)
    one = replace(certificate.findings[0], status=status, estimate=estimate)
    judged = replace(certificate, findings=(one,))
    assert bool(Requirement.parse(text).unmet(judged)) is broken
    with pytest.raises(OptionError, match="was not run"):
        Requirement.parse("gamed.override<=1").unmet(judged)
