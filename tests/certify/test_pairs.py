"""Faults of kinds that graders have, each with a harmless twin, in a process of their own."""

import json
from pathlib import Path

import pytest

from tests.every import every
from tokengym.agents.certify.bench import CertifySettings
from tokengym.agents.certify.certificate import Certificate, certify_target
from tokengym.agents.certify.finding import Severity, Status
from tokengym.agents.certify.sandbox import Limits

FEW = CertifySettings(tasks=8, strategies=5, replies=20, drawn=40)
HEAD = """
import datetime, random, time
def exact(reply, answer):
    return float(reply.strip() == answer)
"""
PAIRS = {
    "hashes": (
        "it depends on PYTHONHASHSEED",
        "    return float(list({*reply.split()})[:1] == [answer])",
        "    return float(sorted({*reply.split()})[:1] == [answer])",
    ),
    "hour": (
        "it depends on the clock",
        "    late = datetime.datetime.now().hour % 2\n"
        "    return exact(reply, answer) * (1 - late / 2)",
        "    late = datetime.datetime(2020, 1, 1).hour % 2\n"
        "    return exact(reply, answer) * (1 - late / 2)",
    ),
    "calls": (
        "it depends on what was replied before",
        "    exact.n = getattr(exact, 'n', 0) + 1\n"
        "    return exact(reply, answer) if exact.n < 300 else 0.9 * exact(reply, answer)",
        "    exact.n = getattr(exact, 'n', 0) + 1\n    return exact(reply, answer)",
    ),
    "second": (
        "it depends on chance, or on the second",
        "    random.seed(int(time.time() * 2))\n    return exact(reply, answer) * random.random()",
        "    own = random.Random(len(reply))\n    return exact(reply, answer) * own.random()",
    ),
}
JUDGED = ("semantic.verifier_determinism", "runtime.episode_isolation", "semantic.replayability")

RESTING = ("gamed.several_answers", "fair.blanks", "fair.decoration", "fair.language")
"""Checks that would fail by chance where rewards do not repeat."""


def certificate(code: str, folder: Path) -> Certificate:
    (folder / "g.py").write_text(f"{HEAD}\ndef r(reply, answer):\n{code}\n")
    rows = ({"prompt": f"What is {n} times 7?", "answer": str(7 * n)} for n in range(120, 180))
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    options = {"prompts": f"{folder}/rows.jsonl", "declared": [0, 1]}
    return certify_target(f"{folder}/g.py:r", options, FEW, Limits(), only=[*JUDGED, *RESTING])


@pytest.mark.nightly
@every("kind", PAIRS)
def test_what_else_a_reward_depends_on_is_named(kind: str, tmp_path: Path) -> None:
    words, faulty, harmless = PAIRS[kind]
    made = certificate(faulty, tmp_path)
    failed = [one for one in made.findings if one.status is Status.FAILED]
    assert [one.severity for one in failed if one.check in JUDGED] == [Severity.DEFECT]
    if kind != "second":  # a seed of the second may differ at once, and then nothing is tried
        assert any(words in one.found for one in failed), failed
    scored = {one.check for one in failed if one.group in ("fair", "not gamed", "teaches")}
    # In one process and one hour these repeat: what is found of their scores is true.
    assert kind in ("hashes", "hour") or not scored, scored
    clean = certificate(harmless, tmp_path)
    assert not [one for one in clean.findings if one.check in JUDGED and one.counts]
