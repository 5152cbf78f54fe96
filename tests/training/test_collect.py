"""Laws of rolling out a step: what is kept, dropped and replaced, its cost, what is logged."""

import asyncio
from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np
import pytest
import tinker
from tinker_cookbook.rl.train import Config

from tests.every import quick_first
from tests.training.rollouts import Scripted, collector_config, noisy
from tokengym.agents.tinker.dataset import TaskDataset, TaskDatasetBuilder
from tokengym.agents.training.batches.collect import RolloutCollector
from tokengym.agents.training.config import Algorithm
from tokengym.agents.training.loop import StepBatch
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.task import Task
from tokengym.envs.registry import make_world
from tokengym.envs.tokens.codec import ByteCodec, Message

GROUPS, SIZE = 6, 4
BYTES = ByteCodec()


@cache
def dataset(first: int, groups: int, world: str = "forecast") -> TaskDataset:
    builder = TaskDatasetBuilder(
        world=world,
        codec="byte",
        first_task=first,
        n_batches=4 if groups > 1 else 4096,
        groups_per_batch=groups,
        group_size=SIZE,
        level="small" if world == "energy" else None,
        options={"credit": True} if world == "energy" else {},
        self_play=world == "disruption",
    )
    return asyncio.run(builder())[0]


def draw(
    algorithm: Algorithm, says: Callable[[str, int, float], str] = noisy, step: int = 1
) -> StepBatch:
    return drawn_from(algorithm, dataset(0, GROUPS), says, step)


def drawn_from(
    algorithm: Algorithm,
    tasks: TaskDataset,
    says: Callable[[str, int, float], str] = noisy,
    step: int = 1,
    script: Scripted | None = None,
) -> StepBatch:
    config = collector_config("forecast")
    source = RolloutCollector(config, algorithm, tasks, dataset(500_000, 1))
    client = cast(tinker.SamplingClient, script or Scripted(says))
    return asyncio.run(source.batch(step, client))


def advantages(drawn: StepBatch) -> list[float]:
    """The advantage of every rollout that is sent."""
    return [advantage_of(datum) for datum in drawn.data]


def advantage_of(datum: tinker.Datum) -> float:
    values = np.asarray(datum.loss_fn_inputs["advantages"].data)
    return float(values[np.asarray(datum.loss_fn_inputs["mask"].data) > 0][0])


def same(text: str, number: int, temperature: float) -> str:
    return "Probability: 0.500"


def middle_spread() -> float:
    """A resolution that about half of the groups do not reach."""
    spreads = np.array(advantages(draw(Algorithm()))).reshape(GROUPS, SIZE)
    return float(np.median(np.ptp(spreads, axis=1)))


def test_dropped_groups_are_not_sent_and_change_nothing() -> None:
    least = middle_spread()
    kept = draw(Algorithm(min_spread=least))
    dropped = draw(Algorithm(filter="drop", min_spread=least))
    dead = GROUPS - kept.metrics["groups/live"]
    assert 0 < dead < GROUPS
    assert len(kept.data) == GROUPS * SIZE
    assert len(dropped.data) == (GROUPS - dead) * SIZE
    assert [value for value in advantages(kept) if value] == pytest.approx(advantages(dropped))
    assert dropped.metrics["groups/trained"] == GROUPS - dead
    assert kept.metrics["groups/trained"] == GROUPS


@pytest.mark.nightly
def test_curves_are_over_what_was_drawn_whatever_is_dropped() -> None:
    """Verl 5228 logs rewards before the filter: after it, every curve is of what was kept."""
    least = middle_spread()
    tellings = [
        {name: value for name, value in draw(algorithm).metrics.items() if name.startswith("env/")}
        for algorithm in (
            Algorithm(min_spread=least),
            Algorithm(filter="drop", min_spread=least),
            Algorithm(filter="resample", min_spread=least),
        )
    ]
    assert tellings[0] == tellings[1] == tellings[2]


def test_dead_groups_are_replaced_until_the_batch_is_full() -> None:
    algorithm = Algorithm(filter="resample", min_spread=middle_spread(), resample_tokens=10**6)
    drawn = draw(algorithm)
    told = drawn.metrics
    assert len(drawn.data) == GROUPS * SIZE
    assert all(np.abs(np.array(advantages(drawn)).reshape(GROUPS, SIZE)).max(axis=1) > 0)
    assert told["groups/live"] == told["groups/trained"] == GROUPS
    assert told["groups/drawn"] == GROUPS + told["groups/further"]
    assert (told["groups/missing"], told["groups/budget_ended"]) == (0, 0)


@pytest.mark.parametrize("budget", [0, 3000, 9000])
def test_a_budget_ends_the_search_and_is_not_exceeded(budget: int) -> None:
    """TRL 4764 and 3708, twinkle 288: resampling with a bound that holds when nothing helps."""
    drawn = draw(Algorithm(filter="resample", resample_tokens=budget), same)
    told = drawn.metrics
    assert told["tokens/further"] <= budget + 300  # prompts differ by a few characters
    assert told["groups/further"] == told["groups/drawn"] - GROUPS
    assert told["groups/budget_ended"] == 1
    assert told["groups/missing"] == GROUPS
    assert not drawn.data


def test_unbudgeted_steps_spend_about_their_groups_cost() -> None:
    told = draw(Algorithm(filter="resample"), same).metrics
    own = told["env/all/total_ob_tokens"] + told["env/all/total_ac_tokens"]
    assert 0 < told["tokens/further"] <= 1.1 * own
    assert told["groups/budget_ended"] == 1


@pytest.mark.nightly
def test_the_same_step_draws_the_same_groups_again() -> None:
    algorithm = Algorithm(filter="resample", min_spread=middle_spread())
    first, again = draw(algorithm), draw(algorithm)
    assert [one.model_input.to_ints() for one in first.data] == [
        one.model_input.to_ints() for one in again.data
    ]


def test_a_batch_that_ties_everywhere_sends_nothing_where_dropped() -> None:
    """Verl 5228 raised where all groups were filtered."""
    dropped = draw(Algorithm(filter="drop"), same)
    assert not dropped.data
    assert dropped.metrics["groups/trained"] == 0
    assert dropped.metrics["groups/live"] == 0
    kept = draw(Algorithm("group_standardised"), same)
    assert advantages(kept) == [0.0] * GROUPS * SIZE


@pytest.mark.parametrize("filter_", ["keep", "drop"])
def test_over_live_groups_alone_each_weighs_one_over_their_number(filter_: str) -> None:
    """TRL 6367: dead groups filled up the denominator and diluted everyone else's gradient."""
    least = middle_spread()
    everyone = draw(Algorithm(filter=filter_, min_spread=least))  # type: ignore[arg-type]
    alive = draw(
        Algorithm(filter=filter_, min_spread=least, denominator="live")  # type: ignore[arg-type]
    )
    scale = GROUPS / everyone.metrics["groups/live"]
    assert alive.metrics["loss/scale"] == pytest.approx(scale)
    assert np.array(advantages(alive)) == pytest.approx(
        scale * np.array(advantages(everyone)), rel=1e-5
    )


@pytest.mark.nightly
def test_where_every_group_lives_the_denominators_are_one() -> None:
    assert draw(Algorithm(denominator="live")).metrics["loss/scale"] == 1.0
    assert draw(Algorithm(denominator="live"), same).metrics["loss/scale"] == 1.0


def shown(text: str) -> str:
    """What a script reads of an opening in bytes."""
    return bytes(
        token for token in BYTES.render([Message(text, own=False)]) if token < 256
    ).decode()


def earned(task: Task, reply: str) -> float:
    """The return of a forecast in training."""
    world = make_world("forecast", label="expected")
    world.start(world.adopt(task))
    world.reply(reply)
    return world.returns["forecaster"]


def test_credit_by_turn_differs_within_one_conversation() -> None:
    tasks = dataset(0, 2, "energy")

    def says(text: str, number: int, temperature: float) -> str:
        return f"BATTERY {(number - 1.5) * (1 + len(text) % 3) * 0.5:.2f}"

    drawn = drawn_from(Algorithm("group_standardised", "exact"), tasks, says)
    values = np.asarray(drawn.data[0].loss_fn_inputs["advantages"].data)
    assert len(drawn.data) == 2 * SIZE
    assert len(np.unique(np.round(values[values != 0], 4))) > 1


def test_exact_credit_is_refused_where_the_world_knows_none() -> None:
    with pytest.raises(OptionError, match="credit"):
        draw(Algorithm(credit="exact"))


def test_replacing_groups_needs_others() -> None:
    with pytest.raises(OptionError, match="further groups"):
        RolloutCollector(cast(Config, None), Algorithm(filter="resample"), dataset(0, GROUPS), None)


def debate(text: str, number: int, temperature: float) -> str:
    """A debater of either role whose replies differ with the sample."""
    if "A predictor answered" in text:
        return f"ARGUE neutral\nCLAIM n_i >= {number}"
    share = (number + 1) / 10
    return f"LABEL neutral\nP {share:.1f} 0.1 {0.9 - share:.1f}\nCLAIM n_k >= 0"


@quick_first("estimator", ["group_centred", "leave_one_out", "group_standardised"])
def test_each_role_is_compared_with_its_own_kind_alone(estimator: Any) -> None:
    tasks = dataset(0, 2, "disruption")
    made = Algorithm(estimator, filter="drop")
    one = drawn_from(made, tasks, debate, step=0)
    assert (
        one.metrics["groups/drawn"] >= one.metrics["groups/live"] == one.metrics["groups/trained"]
    )
    assert one.metrics["groups/drawn"] == 4  # two Tasks, both roles of each
    assert one.metrics["env/all/total_episodes"] == 2 * SIZE * 2
    # Of each role alone: what one earns changes nothing for the other, nor pays to deal.
    for first in range(0, len(one.data), SIZE):
        group = [advantage_of(datum) for datum in one.data[first : first + SIZE]]
        assert len(group) == SIZE
        assert sum(group) == pytest.approx(0.0, abs=1e-5)
