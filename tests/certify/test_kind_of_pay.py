"""How a grader pays is guessed and told, and advice is apt for it."""

import json
import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tokengym.agents.certify.bench import CertifySettings
from tokengym.agents.certify.certificate import Certificate, certify
from tokengym.agents.certify.finding import Severity, Status
from tokengym.agents.certify.page import certificate_report
from tokengym.agents.certify.sources.python import RewardFunction
from tokengym.envs.core.seeding import generator

FEW = CertifySettings(tasks=8, strategies=5, replies=20, drawn=40)
Row = dict[str, Any]
RNG = generator("kinds")
WORDS = ("red", "blue", "green", "pink", "grey", "gold", "navy", "ruby", "lime", "sand", "plum")


def chance(reply: str) -> float:
    match = re.search(r"(?<![\d.])(0?\.\d+|[01](?:\.0+)?)(?![\d.])", reply)
    return float(match[0]) if match else math.nan


def brier(reply: str, row: Row) -> float:
    said = chance(reply)
    return 0.0 if math.isnan(said) else 1.0 - (said - row["outcome"]) ** 2


def log_score(reply: str, row: Row) -> float:
    said = chance(reply)
    right = said if row["outcome"] else 1.0 - said
    return 0.0 if math.isnan(said) else 1.0 + max(math.log(max(right, 0.01)), -4.0) / 4.6


def f1(reply: str, row: Row) -> float:
    said, right = (Counter(re.findall(r"\w+", t.lower())) for t in (reply, row["reference"]))
    return 2.0 * (said & right).total() / max((said + right).total(), 1)


def items(reply: str, row: Row) -> float:
    said, right = ({*re.findall(r"\w+", text.lower())} for text in (reply, row["reference"]))
    return len(said & right) / len(said | right)


def relative(reply: str, row: Row) -> float:
    numbers = re.findall(r"-?\d+(?:\.\d+)?", reply.replace(",", ""))
    right = float(row["reference"])
    return max(0.0, 1.0 - 2.0 * abs(float(numbers[-1]) - right) / right) if numbers else 0.0


def same_number(reply: str, row: Row) -> float:
    numbers = re.findall(r"-?\d+(?:\.\d+)?", reply.replace(",", ""))
    return float(numbers[-1:] != [] and float(numbers[-1]) == float(row["reference"]))


def last(pattern: str) -> Callable[[str, Row], float]:
    return lambda reply, row: float(re.findall(pattern, reply)[-1:] == [row["reference"]])


def with_form(reply: str, row: Row) -> float:
    formed = re.fullmatch(r"[+-]?\d+(\.\d+)?", reply.strip())
    return max(float(reply.strip() == row["reference"]), 0.1 * bool(formed))


def in_tags(reply: str, row: Row) -> float:
    inside = reply.rpartition("<answer>")[2].partition("</answer>")[0]
    return float(inside.strip() == row["reference"])


def first_line(reply: str, row: Row) -> float:
    return float(reply.strip().partition("\n")[0].strip() == row["reference"])


def asked(number: int) -> str:
    return f"Case {number}: {int(RNG.integers(100, 999))} of {int(RNG.integers(100, 999))}?"


def forecasts(number: int) -> Row:
    p = float(RNG.choice([0.07, 0.2, 0.38, 0.55, 0.71, 0.9]))
    return {"prompt": asked(number), "reference": str(p), "outcome": int(RNG.random() < p)}


def outcomes(number: int) -> Row:
    outcome = number % 3 % 2
    return {"prompt": asked(number), "reference": str(outcome), "outcome": outcome}


def outcomes_in_words(number: int) -> Row:
    return {"prompt": asked(number), "reference": ("false", "true")[number % 3 % 2]}


def colours(number: int) -> Row:
    drawn = RNG.choice(WORDS, 4, replace=False)
    return {"prompt": f"Which colours has flag {number}?", "reference": ", ".join(drawn)}


def products(number: int) -> Row:
    a, b = (int(one) for one in RNG.integers(100, 999, 2))
    return {"prompt": f"What is {a} times {b}?", "reference": str(a * b)}


def choices(number: int) -> Row:
    return {"prompt": asked(number), "reference": "ABCD"[int(RNG.integers(4))]}


CLEAN: dict[str, tuple[str, Callable[[str, Row], float], Callable[[int], Row], str]] = {
    "Brier score of forecasts": ("proper_score", brier, forecasts, "{}"),
    "Brier score of outcomes": ("proper_score", brier, outcomes, "{}"),
    "log score": ("proper_score", log_score, outcomes, "{}"),
    "log score of forecasts": ("proper_score", log_score, forecasts, "{}"),
    "F1": ("partial_credit", f1, colours, "{}"),
    "share of items": ("partial_credit", items, colours, "{}"),
    "relative error": ("partial_credit", relative, products, "{}"),
    "equal number": ("pass_fail", same_number, products, "{}"),
    "choice": ("pass_fail", last(r"\b[ABCD]\b"), choices, "{}"),
    "box": ("pass_fail", last(r"\\boxed\{([^{}]*)\}"), products, r"\boxed{{{}}}"),
    "a tenth for the form": ("partial_credit", with_form, products, "{}"),
    "in tags or alone": ("pass_fail", in_tags, products, "{}"),
    "first line": ("pass_fail", first_line, products, "{}"),
    "true or false": ("pass_fail", last("true|false"), outcomes_in_words, "{}"),
}


def judged(name: str, folder: Path, settings: CertifySettings = FEW, **more: Any) -> Certificate:
    _, grade, row, form = CLEAN[name]
    rows = folder / "rows.jsonl"
    rows.write_text("".join(f"{json.dumps(row(number))}\n" for number in range(60)))
    source = RewardFunction(lambda prompt, reply, row: grade(reply, row), rows, form=form)
    return certify(source, name, settings, **more)


@pytest.mark.nightly
@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_grader_of_any_kind_is_not_accused(name: str, tmp_path: Path) -> None:
    made = judged(name, tmp_path)
    assert made.kind == CLEAN[name][0]
    failed = [one for one in made.findings if one.status is Status.FAILED]
    assert [one for one in failed if one.severity is not Severity.PROPERTY] == []
    advice = {one.check for one in failed if one.group == "teaches"}
    # Wrong products in form all earn the tenth: it is so, and said.
    tied = {"teaches.wrong_replies"} if name == "a tenth for the form" else set[str]()
    assert advice == tied, failed


def test_the_kind_is_told_with_who_said_so(tmp_path: Path) -> None:
    only = ["gamed.fixed_reply"]
    guessed = judged("Brier score of outcomes", tmp_path, only=only)
    assert guessed.findings[0].status is Status.INAPPLICABLE
    assert "Judged as proper_score, as its rewards look" in certificate_report(guessed).lines[1]
    named = CertifySettings(tasks=8, kind="partial_credit")
    said = judged("Brier score of outcomes", tmp_path, named, only=only)
    assert said.findings[0].status in (Status.FAILED, Status.UNTOLD, Status.PASSED)
    assert certificate_report(said).lines[1] == "Judged as partial_credit (--kind)."
