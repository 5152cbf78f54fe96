"""Laws of the cost told before a job: it matches what is played and grows with what is asked."""

from dataclasses import replace

import pytest

from tokengym.agents.analysis.evaluation import held_out_tasks
from tokengym.agents.training.config import preset
from tokengym.agents.training.cost import job_cost
from tokengym.envs import ByteCodec, Episode, make_world

SETTINGS = preset("forecast", steps=10, groups_per_batch=4, group_size=2, evaluation_tasks=16)


def test_tokens_read_are_those_of_the_prompts_times_the_rollouts() -> None:
    tasks = held_out_tasks(SETTINGS)
    world = make_world(SETTINGS.world, SETTINGS.level)
    prompts = [len(Episode(world.fork(), task, "byte").observation) for task in tasks]
    rollouts = 10 * 4 * 2 + 2 * 16
    cost = job_cost(SETTINGS, ByteCodec(), tasks)
    assert cost.prefill == rollouts * sum(prompts) // len(prompts)
    assert cost.sampled == rollouts * SETTINGS.max_tokens


@pytest.mark.parametrize("name", ["steps", "groups_per_batch", "group_size", "max_tokens"])
def test_more_costs_more(name: str) -> None:
    tasks = held_out_tasks(SETTINGS)
    more = replace(SETTINGS, **{name: 2 * getattr(SETTINGS, name)})
    assert (
        job_cost(more, ByteCodec(), tasks).trained > job_cost(SETTINGS, ByteCodec(), tasks).trained
    )


def test_greedy_rollouts_and_groups_in_place_of_others_are_paid_for() -> None:
    tasks = held_out_tasks(SETTINGS)
    cost = job_cost(SETTINGS, ByteCodec(), tasks)
    greedy = job_cost(replace(SETTINGS, estimator="remax"), ByteCodec(), tasks)
    assert greedy.sampled - cost.sampled == 10 * 4 * SETTINGS.max_tokens
    again = job_cost(replace(SETTINGS, filter="resample"), ByteCodec(), tasks)
    assert again.sampled - cost.sampled == 10 * 4 * 2 * SETTINGS.max_tokens
    bounded = replace(SETTINGS, filter="resample", resample_tokens=1000)
    spent = job_cost(bounded, ByteCodec(), tasks)
    more = spent.prefill + spent.sampled - cost.prefill - cost.sampled
    assert 0.8 * 10 * 1000 <= more <= 10 * 1000
    assert spent.trained == again.trained == greedy.trained == cost.trained


def test_demonstrations_are_trained_on_and_not_sampled_and_every_role_is_evaluated() -> None:
    settings = preset("disruption", steps=2, evaluation_tasks=4)
    tasks = held_out_tasks(settings)
    cost = job_cost(settings, ByteCodec(), tasks)
    shown = job_cost(replace(settings, sft=True), ByteCodec(), tasks)
    assert shown.trained == cost.trained
    assert shown.sampled * (2 * settings.groups_per_batch * settings.group_size + 8) == (
        cost.sampled * 8
    )
    both = job_cost(replace(settings, self_play=True), ByteCodec(), tasks)
    assert both.trained == 2 * cost.trained
