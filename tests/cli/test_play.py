"""Laws of `tokengym play`: what is typed is played, explained and compared with the oracle."""

import builtins
import re

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from tokengym.agents.cli import app
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.form import ReplyForm
from tokengym.envs.registry import make_world, policy, specs


def type_into(words: str, *lines: str) -> Result:
    return CliRunner().invoke(app, ["play", *words.split()], input="\n".join(lines))


def test_enter_sends_one_line_unless_it_is_empty() -> None:
    played = type_into("forecast", "", "Probability: 0.4", "")
    assert played.exit_code == 0
    assert "(Enter sends)" in played.output
    assert "forecaster: reward +0.8480 = score +0.7980, form +0.0500" in played.output


def test_longer_replies_end_with_an_empty_line_or_input() -> None:
    answer = ("LABEL neutral", "P 0.2 0.5 0.3")
    played = type_into("disruption", *answer, "", *answer)
    assert played.exit_code == 0
    assert "(an empty line sends)" in played.output
    assert "well-formed; no reward yet" in played.output
    assert "predictor earned" in played.output


def test_replies_are_compared_by_what_they_are_worth() -> None:
    """Half-Brier by hand: .9 stated, and the oracle's line says what is true."""
    shown = type_into("forecast", "Probability: 0.9", "").output
    exact = float(re.findall(r"> Probability: ([0-9.]+)", shown)[-1])
    worth = 0.05 + 0.95 * (1.0 - (0.9 - exact) ** 2 - exact * (1.0 - exact))
    best = 0.05 + 0.95 * (1.0 - exact * (1.0 - exact))
    said = re.search(
        r"at most ([0-9.]+) can be expected \(optimum\)[\s\S]+"
        r"forecaster earns ([0-9.]+) on average over outcomes; this episode's replies ([0-9.]+)",
        shown,
    )
    assert said is not None
    assert [float(said[n]) for n in (1, 2, 3)] == pytest.approx([best, best, worth], abs=1e-4)


KNOWS = {
    "forecast:easy": "reads only what forecaster is shown (exact posterior)",
    "forecast:twins": "reads only what forecaster is shown (exact posterior)",
    "warehouse:pick": "reads only what lead is shown (exact search)",
    "energy:small": "may use the Task's hidden answer",
    "disruption:L2": "reads only what predictor is shown "
    "(posterior over challengers and papers, searched claims)",
    "disruption:L2 challenger": "may use the Task's hidden answer",
}
"""By level, and role if not the first, what the oracle knows."""


@pytest.mark.parametrize("case", KNOWS)
def test_the_end_shows_the_oracle_unless_it_played(case: str) -> None:
    place, _, role = case.partition(" ")
    world, level = place.split(":")
    call = ["play", world, "--level", level, *(["--role", role] if role else [])]
    played = CliRunner().invoke(app, [*call, "--policy", "random"])
    assert f"The oracle, which {KNOWS[case]}:" in played.output
    assert "; this episode's replies " in played.output
    alone = CliRunner().invoke(app, [*call, "--policy", "oracle"])
    assert alone.exit_code == 0
    assert "The oracle, which" not in alone.output


def test_the_end_of_the_input_leaves() -> None:
    played = type_into("energy", "BATTERY 1", "")
    assert played.exit_code == 0
    assert "You left before the end. Earned so far: operator 0.0000." in played.output


def test_an_interrupt_leaves_with_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(prompt: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(builtins, "input", interrupted)
    played = CliRunner().invoke(app, ["play", "energy"])
    assert played.exit_code == 130
    assert "You left before the end" in played.output


def test_other_roles_are_played_by_who_was_named() -> None:
    answer = ("LABEL neutral", "P 0.2 0.5 0.3")
    scripted = type_into("disruption", *answer, "", *answer).output
    silent = type_into("disruption --opponent challenger=null", *answer, "", *answer).output
    both = type_into(
        "disruption --opponent challenger=human", *answer, "", "ARGUE neutral", "", *answer
    ).output
    assert "are you sure?" in silent
    assert "are you sure?" not in scripted
    assert "argues for neutral and gives no reason" in both
    assert 'Form: a line "ARGUE" with disruptive, consolidating, neutral or nothing' in both


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ("--opponent judge=null", "has the roles"),
        ("--role judge", "has the roles"),
        ("--opponent predictor=null", "is the role you play"),
        ("--opponent challenger=nobody", "has the baselines"),
        ("--policy nobody", "has the baselines"),
    ],
)
def test_who_cannot_play_is_refused_before_the_game(words: str, rule: str) -> None:
    refused = CliRunner().invoke(app, ["play", "disruption", *words.split()])
    assert isinstance(refused.exception, OptionError)
    assert rule in str(refused.exception)
    assert not refused.output


@pytest.mark.parametrize(
    ("world", "level"),
    [(row.short_name, level) for row in specs().values() for level in row.levels],
)
def test_the_form_shown_is_that_of_the_oracles_replies(world: str, level: str) -> None:
    made = make_world(world, level)
    rng, oracle = np.random.default_rng(0), policy(world, "oracle")
    turn = made.start(made.task("train", 0))
    while not turn.done:
        form = made.reply_form
        assert isinstance(form, ReplyForm)
        assert form.words
        reply = oracle(made, turn, rng)
        assert not form.single_line or "\n" not in reply
        turn = made.reply(reply)
