"""Whose groups are counted: scripts, a function of the user's, a model behind an endpoint."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.certify.synthetic import QUICK, Guesses, Products
from tokengym.agents.certify.certificate import certify
from tokengym.agents.certify.finding import Finding, Status
from tokengym.agents.certify.players import player
from tokengym.agents.certify.source import TaskPlace
from tokengym.envs.core.errors import OptionError

SOLVER = """
import re

def small_products(text, turn):
    first, second = map(int, re.findall(r"\\d+", text))
    return str(first * second if first < 1000 else 7)
"""
SIGNAL = "statistical.training_signal"
APART = "statistical.difficulty_separation"


class Large(Products):
    def factors(self, place: TaskPlace) -> tuple[int, int]:
        first, second = super().factors(place)
        return 10 * first, second


def found(source: Products, check: str, policy: str, harder: Products | None = None) -> Finding:
    settings = replace(QUICK, policy=policy, tasks=4)
    setting = (harder, {"level": "large"}) if harder else None
    (finding,) = certify(source, "it", settings, harder=setting, only=[check]).findings
    return finding


@pytest.fixture
def solver(tmp_path: Path) -> str:
    (tmp_path / "solver.py").write_text(SOLVER)
    return f"{tmp_path}/solver.py:small_products"


def test_a_harder_setting_has_to_be_harder_for_the_policy(solver: str) -> None:
    apart = found(Products(), APART, solver, Large())
    assert apart.status is Status.PASSED
    assert apart.estimate is not None
    assert apart.estimate.value == pytest.approx(1.0, abs=0.01)
    assert "--harder level=large" in apart.reproduce
    assert "solver.py:small_products" in apart.reproduce
    alike = found(Products(), APART, solver, Products())
    assert (alike.status, alike.estimate) == (Status.FAILED, (0.0, 0.0, 0.0, 8))
    assert found(Large(), APART, solver, Products()).status is Status.FAILED


def test_headroom_says_whose_policy_leaves_it(solver: str) -> None:
    scripted = found(Products(), "statistical.headroom", "noisy")
    assert scripted.found.endswith("of the range more than noisy (a script of ours)")
    own = found(Large(), "statistical.headroom", solver)
    assert own.status is Status.PASSED
    assert own.found.endswith(f"of the range more than {solver}")


def test_scripts_without_a_harder_setting_tell_nothing(solver: str) -> None:
    assert found(Products(), APART, "noisy", Large()).status is Status.UNTOLD
    assert found(Products(), APART, solver).status is Status.INAPPLICABLE


def test_who_is_always_right_teaches_nothing_and_others_do(solver: str) -> None:
    right = found(Products(), SIGNAL, solver)
    assert (right.status, right.estimate.value) == (Status.FAILED, 1.0)
    assert found(Products(), SIGNAL, "others").status is Status.PASSED


@pytest.mark.nightly
def test_a_model_reads_the_whole_conversation() -> None:
    pytest.importorskip("aiohttp", reason="needs the extra `openai` or `tinker`")
    from tests.evaluation.endpoint_server import Endpoint, serving

    def answer(body: dict[str, Any]) -> tuple[str, str, None]:
        first, second = re.findall(r"\d+", body["messages"][0]["content"])
        return str(int(first) * int(second)), "stop", None

    with serving(Endpoint(answer)) as endpoint:
        right = found(Guesses(), SIGNAL, f"openai:solver@{endpoint.url}")
    assert (right.status, right.estimate.value) == (Status.FAILED, 1.0)
    last = endpoint.asked[-1]["messages"]
    assert [message["role"] for message in last] == ["user", "assistant", "user"]
    assert last[2]["content"] == "Once more, please."


def test_who_is_unknown_is_refused() -> None:
    with pytest.raises(OptionError, match=r"--policy takes \['noisy', 'others'\], openai"):
        player("nobody")
