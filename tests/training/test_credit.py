"""Laws of credit: what is compared, one advantage a turn, nothing from what is dead."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tinker_cookbook.rl.data_processing import compute_advantages
from tinker_cookbook.rl.types import TrajectoryGroup

from tests.every import every
from tests.training.rollouts import group_of, groups, rollout
from tokengym.agents.training.batches.credit import advantages, spreads
from tokengym.agents.training.batches.datums import turn_table
from tokengym.agents.training.config import Algorithm
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset
from tokengym.envs.core.errors import OptionError
from tokengym.rewards.advantages import group_standardised, leave_one_out, reinforce_plus_plus

ALL = [
    Algorithm(estimator, credit)
    for estimator in ("group_centred", "group_standardised", "leave_one_out", "reinforce_plus_plus")
    for credit in ("episode", "turn", "exact")
]
batches = st.lists(groups, min_size=1, max_size=4)


@pytest.mark.nightly
@given(batches)
def test_by_default_advantages_are_the_cookbooks(drawn: list[TrajectoryGroup]) -> None:
    table = turn_table(drawn)
    found = advantages(Algorithm(), table)
    for n, expected_G in enumerate(compute_advantages(drawn)):
        for g, expected in enumerate(expected_G.tolist()):
            mine = found[n, g][table.taken_NGT[n, g]]
            assert mine == pytest.approx(np.full(len(mine), expected), abs=1e-5)


@pytest.mark.nightly
@settings(max_examples=150)
@given(choices=st.sampled_from(ALL), drawn=batches, least=st.floats(0.0, 3.0))
def test_dead_groups_and_untaken_turns_get_nothing(
    choices: Algorithm, drawn: list[TrajectoryGroup], least: float
) -> None:
    coarse = Algorithm(choices.estimator, choices.credit, min_spread=least)
    table = turn_table(drawn)
    found, dead_N = advantages(coarse, table), spreads(coarse, table) <= least
    assert found.shape == table.taken_NGT.shape
    assert not found[~table.taken_NGT].any()
    assert not found[dead_N].any()
    assert np.isfinite(found).all()


@pytest.mark.nightly
@given(batches)
def test_estimators_are_those_of_the_library_on_whole_returns(drawn: list[TrajectoryGroup]) -> None:
    table = turn_table(drawn)
    returns, counted = table.returns_NG(), table.counted_NG()
    tokens = table.tokens_NGT.sum(axis=2)
    for choices, expected in (
        (Algorithm("group_standardised"), group_standardised(returns, counted)),
        (Algorithm("leave_one_out"), leave_one_out(returns, counted)),
        (Algorithm("reinforce_plus_plus"), reinforce_plus_plus(returns, tokens, counted)),
    ):
        first = advantages(choices, table)[:, :, 0]
        assert first == pytest.approx(np.where(counted, expected, 0.0))


@pytest.mark.nightly
@given(batches)
def test_credit_by_turn_centres_the_returns_to_go(drawn: list[TrajectoryGroup]) -> None:
    table = turn_table(drawn)
    found = advantages(Algorithm(credit="turn"), table)
    expected = np.zeros_like(found)
    for n, g, t in zip(*np.nonzero(table.taken_NGT), strict=True):
        to_go = table.rewards_NGT[n, table.taken_NGT[n, :, t], t:].sum(axis=1)
        if len(to_go) > 1:
            expected[n, g, t] = table.rewards_NGT[n, g, t:].sum() - to_go.mean()
    assert found == pytest.approx(expected)


def test_returns_that_tie_are_live_if_turns_differ() -> None:
    table = turn_table([group_of([1.0, 0.0], [0.0, 1.0])])
    assert spreads(Algorithm(), table).tolist() == [0.0]
    assert spreads(Algorithm(credit="turn"), table).tolist() == [1.0]


def test_exact_credit_counts_what_later_turns_lost() -> None:
    turns = [([1], [2], 0.0), ([1], [2], 0.5)]
    drawn = [rollout(turns, credits) for credits in ([0.0, -4.0], [-2.0, 0.0])]
    table = turn_table([TrajectoryGroup(drawn, [0.0, 0.0], [{}, {}])])
    found = advantages(Algorithm(credit="exact"), table)
    assert found.tolist() == [[[-1.0, -2.0], [1.0, 2.0]]]
    assert spreads(Algorithm(credit="exact"), table).tolist() == [4.0]


def test_putting_a_bad_answer_off_earns_no_exact_credit() -> None:
    """Credited alone the first turn that waits, at .01, would beat the one that answers, at .1."""
    answers = rollout([([1], [2], 0.7)], [-0.1])
    waits = rollout([([1], [2], 0.0), ([1], [2], 0.7)], [-0.01, -0.1])
    table = turn_table([TrajectoryGroup([answers, waits], [0.0, 0.0], [{}, {}])])
    at_once, later = advantages(Algorithm(credit="exact"), table)[0, :, 0]
    assert at_once > later


@pytest.mark.parametrize("choices", ALL, ids=lambda one: f"{one.estimator}-{one.credit}")
def test_one_rollout_has_no_spread_however_many_its_neighbours_have(choices: Algorithm) -> None:
    """Nor do turns that only one rollout of a group took: padding is nothing to compare with."""

    def group(*rows: list[float]) -> TrajectoryGroup:
        drawn = [rollout([([1], [2, 3], pay) for pay in row], row) for row in rows]
        return TrajectoryGroup(drawn, [0.0] * len(drawn), [{} for _ in drawn])

    one, several = group([3.0]), group([0.0], [1.0], [5.0])
    # Both earn 2 from the first turn on, and only one of them has a second.
    lonely = group([2.0], [1.0, 1.0])
    table = turn_table([one, several, lonely])
    assert spreads(choices, table).tolist() == [0.0, 5.0, 0.0]
    found = advantages(choices, table)
    assert not found[0].any()
    assert not found[2].any()
    assert found[1].any()


@pytest.mark.parametrize("world", ["forecast", "disruption", "energy"])
def test_a_run_that_standardises_a_proper_score_says_so(world: str) -> None:
    for estimator in ("group_standardised", "group_centred", "leave_one_out"):
        notice = str(Job.resolve(preset(world, estimator=estimator)).estimator_notice)
        noticed = estimator == "group_standardised" and world != "energy"
        assert ("take group_centred" in notice) == noticed, estimator


def test_credit_by_turn_is_refused_where_the_end_alone_pays() -> None:
    assert preset("forecast", "update", credit="turn").credit == "turn"
    for world in ("forecast", "energy", "warehouse", "disruption"):
        with pytest.raises(OptionError, match="pays once, at the end"):
            preset(world, credit="turn")


@every(
    ("place", "credit"),
    [
        (("energy", "small"), "exact"),
        (("energy", "commit"), "episode"),
        (("warehouse", "aisle"), "exact"),
        (("warehouse", "pick_online"), "episode"),
        (("disruption", "L2"), "episode"),
    ],
)
def test_jobs_take_exact_credit_where_it_is_known(place: tuple[str, str], credit: str) -> None:
    assert preset(*place).credit == credit
    assert preset(*place, credit="episode").credit == "episode"
