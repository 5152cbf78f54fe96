"""Laws of scripted play: who draws from what, and who must be there."""

import pytest

from tokengym.envs import baselines, make_world, play
from tokengym.envs.core.episode import TextEpisode, role_stream
from tokengym.envs.core.errors import EpisodeStateError, OptionError, RoleError
from tokengym.envs.core.turn import StopReason

NOISY = baselines("forecast")["noisy"]


def test_a_seed_tells_plays_apart_and_repeats_them() -> None:
    world = make_world("forecast")
    task = world.task("train", 0)
    replies = [play(world, task, NOISY, seed).replies for seed in (None, 0, 1, (1, 2), 1)]
    assert replies[2] == replies[4]
    assert len(set(replies)) == 4


def test_streams_depend_on_task_role_and_key_alone() -> None:
    world = make_world("forecast")
    one, other = world.first_tasks("train", 2)

    def draw() -> list[float]:
        streams = [role_stream(one, "a"), role_stream(one, "b"), role_stream(other, "a")]
        streams += [role_stream(one, "a", 1), role_stream(one, "a", 1, 2)]
        return [stream.random() for stream in streams]

    assert len(set(draw())) == 5
    assert draw() == draw()


def test_what_is_missing_or_over_is_refused() -> None:
    world = make_world("disruption")
    task = world.task()
    with pytest.raises(RoleError, match="no policy for the role 'challenger'"):
        play(world, task, {"predictor": baselines("disruption")["random"]})
    with pytest.raises(RoleError, match="has the roles"):
        TextEpisode(world, task, roles=("nobody",))
    with pytest.raises(OptionError, match="token_budget must be at least 1, got 0"):
        TextEpisode(world, task, token_budget=0)
    episode = TextEpisode(make_world("forecast"), make_world("forecast").task())
    episode.say("Probability: 0.5")
    with pytest.raises(EpisodeStateError, match="the episode is over"):
        episode.say("again")
    with pytest.raises(EpisodeStateError, match="the episode is over"):
        episode.stop(StopReason.ABANDONED)
