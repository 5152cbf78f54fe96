"""The law of opponents: what they draw chooses no later Task."""

from collections.abc import Callable

import pytest

from tokengym.envs.gymnasium.aec_env import TextAECEnv
from tokengym.envs.gymnasium.env import TextEnv

REPLY = "LABEL neutral\nP 0.2 0.3 0.5"


def tasks_of_gymnasium(challenger: str) -> list[str]:
    env = TextEnv("disruption", mode="text", opponents={"challenger": challenger})
    found = []
    for seed in (0, None, None):
        _, info = env.reset(seed=seed)
        found.append(info["task"])
        env.step(REPLY)
    return found


def tasks_of_pettingzoo(challenger: str) -> list[str]:
    env = TextAECEnv("disruption", mode="text", opponents={"challenger": challenger})
    found = []
    for seed in (0, None, None):
        env.reset(seed=seed)
        found.append(env.infos["predictor"]["task"])
        env.step(REPLY)
    return found


@pytest.mark.parametrize("tasks_of", [tasks_of_gymnasium, tasks_of_pettingzoo])
def test_an_opponent_that_draws_chooses_no_later_task(tasks_of: Callable[[str], list[str]]) -> None:
    assert tasks_of("noisy") == tasks_of("scripted")
