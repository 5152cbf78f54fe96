"""The project's first use: a paper made by hand, an environment over it, two steps, a reward."""

import asyncio

import pytest

from tokengym.envs.disruption.challengers import CHALLENGERS
from tokengym.envs.disruption.paper import Paper
from tokengym.envs.disruption.world import DisruptionWorld
from tokengym.envs.registry import make_world

PAPER = Paper(
    openalex_id="W2741809807",
    title="A study of things",
    abstract="We introduce a way to look at things.",
    publication_year=2003,
    cited_by_count=120,
    cd_index=0.44,
    novelty_score=-0.4,
    conventionality_score=1.2,
    disruption_label="disruptive",
    novelty_label="balanced",
    primary_field="Biology",
)


@pytest.mark.parametrize("challenger", list(CHALLENGERS))
def test_a_paper_made_by_hand_is_debated_in_tokens(challenger: str) -> None:
    pytest.importorskip("tinker_cookbook")
    from tokengym.agents.tinker.env import TinkerEnv

    async def debate() -> float:
        world = make_world("tokengym/Disruption-v0")
        assert isinstance(world, DisruptionWorld)
        env = TinkerEnv(
            world,
            world.task_from_paper(PAPER),
            "byte",
            opponents={"challenger": CHALLENGERS[challenger]},
        )
        await env.initial_observation()
        said = "LABEL disruptive\nP 0.8 0.1 0.1"
        tokens = list(env.codec.write(said))
        result = await env.step(tokens)
        assert not result.episode_done
        assert result.reward == 0.0
        result = await env.step(list(env.codec.write(f'{said}\nQUOTE "We introduce"')))
        assert result.episode_done
        return result.reward

    loss = 0.5 * (0.2**2 + 2 * 0.1**2)
    reward = asyncio.run(debate())
    assert 0.5 + 1.25 * (1 - loss) + 0.05 < reward < 1.9375
