"""What records alone can tell is told: ties against a count by hand, rewards, length, splits."""

import json
import math
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.certify.synthetic import QUICK
from tokengym.agents.certify.certificate import certify
from tokengym.agents.certify.finding import Finding, Status
from tokengym.agents.certify.sources import open_source

CLEAN: list[dict[str, Any]] = [
    {"prompt": f"Task {g}", "reply": f"{m} " * m, "reward": (5 * m + g) % 8 / 8, "group": g}
    for g in range(12)
    for m in range(8)
]


def findings(folder: Path, rows: list[dict[str, Any]]) -> dict[str, Finding]:
    file = folder / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    certificate = certify(open_source(str(file), {}), str(file), QUICK)
    return {found.check: found for found in certificate.findings}


def failed(found: dict[str, Finding]) -> set[str]:
    return {name for name, finding in found.items() if finding.status is Status.FAILED}


def test_clean_records_pass_what_applies_to_them(tmp_path: Path) -> None:
    found = findings(tmp_path, CLEAN)
    assert failed(found) == set()
    for name in ("semantic.oracle_max", "gamed.echo", "sound.memory", "runtime.seed_control"):
        assert found[name].status is Status.INAPPLICABLE, name


def test_groups_without_advantage_are_counted_as_by_hand(tmp_path: Path) -> None:
    rows = [{**row, "reward": float(row["reward"] > 0.8)} for row in CLEAN]
    groups = [[row["reward"] for row in rows if row["group"] == g] for g in range(12)]
    dead = [
        sum(len(set(four)) == 1 for four in combinations(group, 4)) / math.comb(8, 4)
        for group in groups
    ]
    found = findings(tmp_path, rows)["statistical.training_signal"]
    assert f"{sum(dead) / 12:.2f} of 4" in found.found
    assert found.estimate is not None
    assert found.estimate.value == sum(len(set(group)) == 1 for group in groups) / 12


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"reward": math.nan}, "runtime.reward_well_formed"),
        ({"reward": "much"}, "runtime.reward_well_formed"),
        ({"reward": 10**400}, "runtime.reward_well_formed"),
        ({"reward": 0.5}, "statistical.reward_reachability"),
        ({"prompt": "Task 0"}, "leaked.repeated_prompts"),
    ],
)
def test_faults_of_records_are_caught(tmp_path: Path, change: dict[str, Any], check: str) -> None:
    rows = [{**row, **(change if row["group"] or check[0] != "r" else {})} for row in CLEAN]
    assert check in failed(findings(tmp_path, rows))


def test_length_that_pays_and_splits_that_share_prompts_are_caught(tmp_path: Path) -> None:
    rows = [{**row, "reward": len(row["reply"]) / 100} for row in CLEAN]
    assert "fair.length" in failed(findings(tmp_path, rows))
    splits = [
        {**row, "split": split, "group": f"{split} {row['group']}"}
        for row in CLEAN
        for split in ("train", "test")
    ]
    assert "leaked.splits" in failed(findings(tmp_path, splits))
    apart = [{**row, "prompt": f"{row['split']} {row['prompt']}"} for row in splits]
    assert "leaked.splits" not in failed(findings(tmp_path, apart))
