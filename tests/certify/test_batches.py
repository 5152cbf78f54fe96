"""Graders that take batches are called with several completions of several prompts."""

import json
from pathlib import Path

import pytest

from tests.certify.synthetic import QUICK, Products
from tokengym.agents.certify.certificate import certify
from tokengym.agents.certify.finding import Finding, Severity, Status
from tokengym.agents.certify.sources import open_source

RIGHT = "[float(c.strip() == a) for c, a in zip(completions, answer)]"
GRADERS = {
    "right": (RIGHT, ""),
    "one reward": ("[float(completions[0].strip() == answer[0])]", "earns 1 reward"),
    "a number": ("float(completions[0].strip() == answer[0])", "earns 1.0, not a reward for each"),
    "one too few": (f"{RIGHT}[: max(len(completions) - 1, 1)]", "earns 23 rewards"),
    "the mean": (f"[sum({RIGHT}) / len(answer)] * len(answer)", "the same, their mean, 0.25"),
    "the best": (f"[max({RIGHT})] * len(answer)", "the same, 1.0"),
    "the answer before": (
        "[float(c.strip() == answer[max(i - 1, 0)]) for i, c in enumerate(completions)]",
        "something else than alone",
    ),
    "sorted": (f"sorted({RIGHT})", "something else than alone"),
    "the shortest is dropped": (
        "[float(c.strip() == a and (len(answer) == 1 or c != min(completions, key=len))) "
        "for c, a in zip(completions, answer)]",
        "something else than alone",
    ),
    "no more than eight": (f"{RIGHT} if len(answer) <= 8 else 1 / 0", "ZeroDivisionError"),
}


def judged(code: str, folder: Path) -> Finding:
    (folder / "g.py").write_text(f"def r(completions, answer, **columns):\n    return {code}\n")
    rows = ({"prompt": f"What is {n} times 7?", "answer": str(7 * n)} for n in range(120, 180))
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    source = open_source(f"{folder}/g.py:r", {"prompts": str(folder / "rows.jsonl")})
    (found,) = certify(source, "grader", QUICK, only=["sound.scored_together"]).findings
    return found


@pytest.mark.parametrize("grader", GRADERS)
def test_a_batch_earns_what_its_replies_earn_alone(grader: str, tmp_path: Path) -> None:
    code, words = GRADERS[grader]
    found = judged(code, tmp_path)
    assert found.status is (Status.FAILED if words else Status.PASSED), found
    assert words in found.found
    assert found.severity is Severity.DEFECT


def test_batches_of_what_takes_one_reply_are_not_judged() -> None:
    (found,) = certify(Products(), "one", QUICK, only=["sound.scored_together"]).findings
    assert (found.status, found.found) == (Status.INAPPLICABLE, "it scores one reply at a time")
