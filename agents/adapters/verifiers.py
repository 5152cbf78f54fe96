"""A world as an environment of verifiers before 0.4: `load_environment`, a `MultiTurnEnv`."""

import json
from collections.abc import Mapping
from typing import Any

import verifiers as vf
from datasets import Dataset

from tokengym.envs.adapters.start import Rollout, Rollouts

_ROLLOUT = "tokengym_rollout"


def load_environment(
    world: str = "forecast",
    level: str | None = None,
    *,
    role: str | None = None,
    opponents: Mapping[str, str] | None = None,
    split: str = "train",
    tasks: int = 512,
    evaluation_tasks: int = 64,
    **options: Any,
) -> "WorldMultiTurnEnv":
    """Return a world for `verifiers<0.4` and packages built on it, such as retrain.

    Args:
        world: id or short name of the world.
        level: one of the world's levels; the first one if `None`.
        role: the role to play, see `Rollouts`.
        opponents: baselines' names of the other roles.
        split: where the training rows are from; those of the evaluation are from `test`.
        tasks: number of training rows.
        evaluation_tasks: number of rows of the evaluation.
        **options: options of the world.
    """
    rollouts = Rollouts(world, level, role=role, opponents=opponents, **options)
    return WorldMultiTurnEnv(
        rollouts,
        dataset=lambda: _rows(rollouts, split, tasks),
        eval_dataset=lambda: _rows(rollouts, "test", evaluation_tasks),
    )


class WorldMultiTurnEnv(vf.MultiTurnEnv):
    """Each row is a Task, each rollout has its own world; the reward is the role's return.

    Args:
        rollouts: the world and the role to play.
        **settings: of `MultiTurnEnv`.
    """

    def __init__(self, rollouts: Rollouts, **settings: Any) -> None:
        rubric = vf.Rubric(funcs=[_total])
        rubric.add_metric(_well_formed)
        super().__init__(max_turns=-1, rubric=rubric, **settings)
        self._rollouts = rollouts

    # verifiers calls it final, but nothing else sees a row before the client is asked for.
    async def init_state(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, input: Any, client: Any, model: str, sampling_args: Any = None
    ) -> vf.State:
        """Begin a row. retrain samples by itself and passes no client, which verifiers requires."""
        client = vf.ClientConfig() if client is None else client
        return await super().init_state(input, client, model, sampling_args)

    async def setup_state(self, state: vf.State) -> vf.State:
        """Start a rollout of the row's Task."""
        where = state["info"]
        state[_ROLLOUT] = self._rollouts.start_at(where["split"], where["index"])
        state["turn_rewards"] = state[_ROLLOUT].rewards
        return state

    async def env_response(self, messages: vf.Messages, state: vf.State, **_: Any) -> vf.Messages:
        """Play the last reply and return the world's answer."""
        rollout: Rollout = state[_ROLLOUT]
        _play_last_reply(state)
        said = [{"role": "user", "content": rollout.text}]
        if rollout.done:
            state["final_env_response"] = said
        return said


def _play_last_reply(state: vf.State) -> None:
    """Play the replies in the trajectory that the rollout does not have yet."""
    rollout: Rollout = state[_ROLLOUT]
    for step in state["trajectory"][len(rollout.well_formed) :]:
        if not rollout.done:
            reason = "length" if step["is_truncated"] else "stop"
            rollout.say(_text(step["completion"]), reason)


def _text(completion: Any) -> str:
    last = completion[-1] if completion else ""
    if isinstance(last, str):
        return completion if isinstance(completion, str) else last
    content = last["content"] if isinstance(last, Mapping) else last.content
    return content or ""


async def _total(state: vf.State) -> float:
    """The role's return; where verifiers ended the rollout, the rest counts as empty replies."""
    _play_last_reply(state)
    state[_ROLLOUT].stop()
    return float(state[_ROLLOUT].total)


async def _well_formed(state: vf.State) -> float:
    """Share of well-formed replies."""
    return float(state[_ROLLOUT].share_well_formed)


def _rows(rollouts: Rollouts, split: str, count: int) -> Dataset:
    rows = []
    for task in rollouts.world.first_tasks(split, count):
        row = {
            "prompt": [{"role": "user", "content": rollouts.start(task).text}],
            "answer": "",
            "info": {"split": split, "index": task.index, "task_id": task.fingerprint},
        }
        # From 0.2 on a row's `task` must be all of it as JSON; retrain passes on what it finds.
        rows.append({**row, "task": json.dumps({**row, "example_id": task.index})})
    return Dataset.from_list(rows)
