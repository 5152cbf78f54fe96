"""Worlds in ART: the page's rollout function makes groups of trajectories."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("art.trajectories", reason="needs openpipe-art, and Python 3.12")

import art

from tests.neighbours.commands import MAX_TOKENS, OPTIONS, PLAYED, TASKS, Served
from tests.neighbours.reference import WORLDS, play_own, replies_by_text
from tests.neighbours.scripted_model import scripted_model
from tests.neighbours.test_page import SNIPPETS
from tokengym.envs import Rollouts

PAGE: dict[str, Any] = {}
exec(SNIPPETS["with_art.py"], PAGE)


def model(folder: Path, url: str, key: str = "none", name: str = "scripted") -> Any:
    """Return an endpoint as ART's model."""
    return art.Model(
        name=name,
        project="tokengym",
        inference_base_url=url,
        inference_api_key=key,
        base_path=str(folder),
    )


def groups(size: int, indices: range, *words: Any, **sampling: Any) -> list[Any]:
    """Play the test Tasks at the indices, each `size` times."""

    async def play() -> list[Any]:
        return [
            await art.trajectory_group(
                [PAGE["play"](*words, "test", index, **sampling) for _ in range(size)]
            )
            for index in indices
        ]

    return asyncio.run(play())


@pytest.mark.parametrize("world", WORLDS)
def test_a_group_of_art_is_the_same_episode(
    world: str, tmp_path: Path, shows: Callable[[str, str], None]
) -> None:
    own = play_own(world, index=1)
    answers = replies_by_text(own)
    with scripted_model(lambda text: (answers[text], "stop")) as url:
        (made,) = groups(3, range(1, 2), Rollouts(world), model(tmp_path, url))
    assert len(made) == 3
    assert not made.exceptions
    for trajectory in made:
        said = trajectory.messages()
        assert [one["content"] for one in said if one["role"] == "user"] == own.texts[:-1]
        assert [one["content"] for one in said if one["role"] == "assistant"] == own.replies
        assert trajectory.reward == sum(own.rewards)
        assert trajectory.metrics["well_formed"] == 1.0
    shows("plays", world)
    shows("group", world)


def test_a_reply_that_was_cut_off_is_malformed(tmp_path: Path) -> None:
    with scripted_model(lambda text: ("Probability: 0.5", "length")) as url:
        ((trajectory,),) = groups(1, range(1), Rollouts("forecast"), model(tmp_path, url))
    assert trajectory.metrics["well_formed"] == 0.0


@pytest.mark.parametrize("played", PLAYED)
def test_the_documented_lines_find_what_our_evaluation_found(
    played: str, tmp_path: Path, shows: Callable[[str, str], None]
) -> None:
    served, rollouts = Served(), Rollouts(played, **OPTIONS)
    policy = model(tmp_path, served.url, served.key, served.model)
    greedy = {"temperature": 0, "max_tokens": MAX_TOKENS}
    made = groups(1, range(TASKS), rollouts, policy, **greedy)
    assert [trajectory.reward for (trajectory,) in made] == served.returns(played)
    shows("own command", f"art.trajectory_group: {played}")
