"""Rollouts: the same episode as the world's own, with opponents, in text and in tokens."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tokengym.envs import (
    EpisodeStateError,
    OptionError,
    RoleError,
    Rollout,
    Rollouts,
    UnknownWorldError,
    baselines,
    is_complete,
    make_world,
    play,
)
from tokengym.envs.tokens.codec import ByteCodec

WORLDS = ("forecast", "warehouse", "energy", "disruption")


def finish(rollout: Rollout, name: str) -> None:
    """Play the rest with a baseline."""
    policy = baselines(rollout.task.world)[name]
    rng = np.random.default_rng(0)
    while not rollout.done:
        rollout.say(policy(rollout.episode.world, rollout.turn, rng), "stop")


def test_a_role_meets_the_usual_opponent_and_is_paid() -> None:
    rollouts = Rollouts("disruption", role="challenger", opponents={"predictor": "oracle"})
    rollout = rollouts.start(rollouts.world.task("test", 0))
    finish(rollout, "oracle")
    both = play(make_world("disruption"), rollout.task, baselines("disruption")["oracle"])
    assert rollout.total == both.returns["challenger"]
    assert Rollouts("disruption").opponents.keys() == {"challenger"}


def test_rollouts_do_not_disturb_each_other() -> None:
    rollouts = Rollouts("warehouse", "stock")
    tasks = rollouts.world.first_tasks("train", 8)

    def play_one(task: object) -> float:
        rollout = rollouts.start(task)  # type: ignore[arg-type]
        finish(rollout, "oracle")
        return rollout.total

    alone = [play_one(task) for task in tasks]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(play_one, tasks)) == alone


@pytest.mark.parametrize("reason", ["length", "MAX_TOKENS", "max_tokens", "model_length", "abort"])
def test_a_cut_off_reply_is_malformed_whatever_its_end(reason: str) -> None:
    for codec in (None, "byte"):
        rollouts = Rollouts("forecast", codec=codec)
        rollout = rollouts.start(rollouts.world.task())
        if codec is None:
            rollout.say("Probability: 0.5", reason)
        else:
            rollout.act(ByteCodec().write("Probability: 0.5"), reason)
        assert rollout.well_formed == [False]
    assert not is_complete(reason)


@pytest.mark.parametrize("reason", [None, "stop", "STOP", "end_turn", "eos", "tool_calls"])
def test_other_ends_are_complete(reason: str | None) -> None:
    assert is_complete(reason)


def test_wrong_roles_and_replies_after_the_end_are_refused() -> None:
    for wrong in ({"role": "judge"}, {"role": "predictor", "opponents": {"predictor": "oracle"}}):
        with pytest.raises(RoleError, match="one is played"):
            Rollouts("disruption", **wrong)
    with pytest.raises(OptionError, match="baselines"):
        Rollouts("disruption", opponents={"challenger": "nobody"})
    rollouts = Rollouts("forecast")
    rollout = rollouts.start(rollouts.world.task())
    with pytest.raises(RoleError):
        rollout.act([1])
    rollout.say("Probability: 0.5")
    with pytest.raises(EpisodeStateError):
        rollout.say("Probability: 0.5")


@pytest.mark.parametrize(
    "given",
    [
        "energy:small",
        {"world": "energy:small"},
        {"world": "energy", "level": "small"},
        make_world("energy", "small"),
        Rollouts("energy", "small"),
    ],
    ids=["name", "mapping with a name", "mapping", "world", "rollouts"],
)
def test_adapters_take_rollouts_by_name_by_arguments_or_made(given: Any) -> None:
    rollouts = Rollouts.of(given)
    assert (rollouts.world.spec.short_name, rollouts.world.level) == ("energy", "small")
    assert rollouts is given or not isinstance(given, Rollouts)


def test_arguments_given_beside_a_name_are_those_of_rollouts() -> None:
    assert Rollouts.of("disruption:L2", role="challenger").role == "challenger"
    assert Rollouts.of({"world": "forecast", "prompt": "terse"}).world.prompt == "terse"


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ("energy:huge", OptionError, "has the levels .* got 'huge'"),
        ("enrgy:small", UnknownWorldError, "did you mean 'energy'"),
        ({"world": "energy:small", "level": "day"}, OptionError, "names a level already"),
        ({"level": "small"}, OptionError, "a name such as 'energy:small'"),
        (7, OptionError, "a name such as 'energy:small'"),
    ],
)
def test_what_names_no_rollouts_is_refused(given: Any, error: type, said: str) -> None:
    with pytest.raises(error, match=said):
        Rollouts.of(given)
