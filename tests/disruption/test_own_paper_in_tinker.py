"""The project's first use: a paper made by hand, an environment over it, two steps, a reward."""

import asyncio
from typing import Any

import pytest

from tokengym.envs import Paper
from tokengym.envs.core.errors import DataError, OptionError

pytest.importorskip("tinker_cookbook")

from tokengym.agents import PaperEnv

PAPER = Paper(
    openalex_id="W2741809807",
    title="A study of things",
    abstract="We introduce a way to look at things.",
    publication_year=2003,
    cited_by_count=120,
    cd_index=0.44,
    novelty_score=0.82,
    conventionality_score=0.35,
    disruption_label="disruptive",
    novelty_label="novel",
    primary_field="Biology",
)
"""As the debate was first described: novelty and conventionality are shares in [0, 1]."""


def debate(said: str, **options: Any) -> float:
    """Give an answer, give it again with a true quote, and return the reward."""

    async def play() -> float:
        env = PaperEnv(PAPER, **options)
        await env.initial_observation()
        result = await env.step(list(env.codec.write(said)))
        assert not result.episode_done
        assert result.reward == 0.0
        result = await env.step(list(env.codec.write(f'{said}\nQUOTE "We introduce"')))
        assert result.episode_done
        return result.reward

    return asyncio.run(play())


@pytest.mark.parametrize("challenger", ["null", "scripted", "noisy"])
def test_a_paper_made_by_hand_is_debated_in_tokens(challenger: str) -> None:
    loss = 0.5 * (0.2**2 + 2 * 0.1**2)
    reward = debate("LABEL disruptive\nP 0.8 0.1 0.1", challenger=challenger)
    assert 0.5 + 1.25 * (1 - loss) + 0.05 < reward < 1.9375


@pytest.mark.parametrize("bounded", [False, True])
def test_the_reward_as_first_described_judges_both_targets_at_once(bounded: bool) -> None:
    options: dict[str, Any] = {"target": "both", "reward": "original", "bounded": bounded}
    shares = "P 0.8 0.1 0.1 0.6 0.2 0.2"
    loss = 0.5 * (0.5 * (0.04 + 0.02) + 0.5 * (0.16 + 0.08))
    for label, right in (("novel", 1.0), ("balanced", -1.0)):
        reward = debate(f"LABEL disruptive {label}\n{shares}", **options)
        if bounded:
            reward = 4.0 * reward - 2.0
        adapted = 0.2 * (1 - loss)
        # The judge knows disruption from the quote, and nothing of novelty.
        assert right + adapted + 0.1 < reward < right + adapted + 0.3


ANSWER = "LABEL disruptive\nP 0.8 0.1 0.1"


@pytest.mark.parametrize(
    "said",
    [
        '{"label": "disruptive", "confidence": 0.8}',
        '```json\n{"prediction": "Disruptive", "probability": 80}\n```',
        '{"disruption": {"disruptive": 0.8, "consolidating": 0.1, "neutral": 0.1}}',
        "I think that the paper is disruptive, not neutral (confidence 80%).",
        "Disruptive: 0.8, consolidating: 0.1, neutral: 0.1.",
    ],
)
@pytest.mark.parametrize("reward", ["proper", "original"])
def test_unambiguous_text_or_json_is_paid_like_the_form(said: str, reward: str) -> None:
    assert debate(said, reward=reward) == pytest.approx(debate(ANSWER, reward=reward))


@pytest.mark.parametrize(
    "said",
    [
        "It is hard to say.",
        "Either disruptive or neutral, confidence 0.8.",
        '{"label": "disruptive", "probabilities": {"disruptive": 2, "neutral": 0, '
        '"consolidating": 0}}',
        "Disruptive: I am 80% sure. No, 20% sure.",
    ],
)
def test_an_answer_in_doubt_stays_malformed(said: str) -> None:
    env = PaperEnv(PAPER, reward="original")

    async def play() -> float:
        await env.initial_observation()
        first = await env.step(list(env.codec.write(said)))
        assert first.metrics["malformed"] == 1.0
        result = await env.step(list(env.codec.write(said)))
        assert result.episode_done
        return result.reward

    assert asyncio.run(play()) == -1.0


def test_quotes_of_a_json_answer_are_claims() -> None:
    bare = '{"label": "disruptive", "confidence": 0.8}'
    quoting = '{"label": "disruptive", "confidence": 0.8, "quotes": ["We introduce"]}'

    async def play(last: str) -> float:
        env = PaperEnv(PAPER, reward="original")
        await env.initial_observation()
        await env.step(list(env.codec.write(bare)))
        return (await env.step(list(env.codec.write(last)))).reward

    assert asyncio.run(play(quoting)) > asyncio.run(play(bare)) + 0.2


def test_a_papers_environment_states_its_play_and_pay() -> None:
    env = PaperEnv(PAPER)
    assert (env.target, env.reward) == ("disruption", "proper")
    told = "PaperEnv(W2741809807, level='L2', target='{}', reward='{}', in [{}])"
    assert repr(env) == told.format("disruption", "proper", "-1.8, 1.9375")
    env = PaperEnv(PAPER, target="both", reward="original")
    assert (env.target, env.reward) == ("both", "original")
    assert repr(env) == told.format("both", "original", "-1, 1.5")


def test_what_cannot_be_played_is_refused() -> None:
    with pytest.raises(OptionError, match=r"baselines .* got 'nobody'"):
        PaperEnv(PAPER, challenger="nobody")
    with pytest.raises(OptionError, match="reward"):
        PaperEnv(PAPER, reward="described")
    unlabelled = Paper(
        **{
            **{name: getattr(PAPER, name) for name in PAPER.__slots__},
            "novelty_score": None,
            "novelty_label": None,
        }
    )
    with pytest.raises(DataError, match="no novelty_label"):
        PaperEnv(unlabelled, target="novelty")
