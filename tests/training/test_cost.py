"""Laws of the cost printed before a job: it matches what is played and grows with what is asked."""

from dataclasses import replace

from tokengym.agents.training.config import JobConfig, SftConfig
from tokengym.agents.training.cost import Cost, job_cost
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset, preset_for
from tokengym.envs import Episode, make_world

SETTINGS = preset("forecast", steps=10, groups_per_batch=4, group_size=2, evaluation_tasks=16)
MAX_TOKENS = 12  # as the world's own configuration has it


def cost_of(config: JobConfig) -> Cost:
    return job_cost(Job.resolve(config))


def test_tokens_read_are_those_of_the_prompts_times_the_rollouts() -> None:
    world = make_world(SETTINGS.world, SETTINGS.level, **SETTINGS.options)
    codec, tasks = Job.resolve(SETTINGS).codec, world.first_tasks("test", 16)
    prompts = [len(Episode(world.fork(), task, codec).observation) for task in tasks]
    rollouts = 10 * 4 * 2 + 2 * 16
    cost = cost_of(SETTINGS)
    assert cost.prefill == rollouts * sum(prompts) // len(prompts)
    assert cost.sampled == rollouts * MAX_TOKENS
    assert cost.trained == 10 * 4 * 2 * (sum(prompts) + len(prompts) * MAX_TOKENS) // len(prompts)


def test_replacement_groups_are_paid_for() -> None:
    cost = cost_of(SETTINGS)
    again = cost_of(replace(SETTINGS, filter="resample"))
    assert again.sampled - cost.sampled == 10 * 4 * 2 * MAX_TOKENS
    bounded = replace(SETTINGS, filter="resample", resample_tokens=1000)
    spent = cost_of(bounded)
    more = spent.prefill + spent.sampled - cost.prefill - cost.sampled
    assert 0.8 * 10 * 1000 <= more <= 10 * 1000
    assert spent.trained == again.trained == cost.trained


def test_demonstrations_are_trained_on_and_every_role_evaluated() -> None:
    settings = preset("disruption", steps=2, evaluation_tasks=4)
    cost = cost_of(settings)
    shown = cost_of(preset_for(SftConfig, "disruption", steps=2, evaluation_tasks=4))
    assert shown.trained == cost.trained
    assert shown.sampled * (2 * settings.groups_per_batch * settings.group_size + 8) == (
        cost.sampled * 8
    )
    both = cost_of(replace(settings, self_play=True))
    assert both.trained == 2 * cost.trained
