"""A world as an environment of verifiers before 0.4: `load_environment`, a `MultiTurnEnv`."""

import json
from collections.abc import Mapping
from typing import Any

import verifiers as vf
from datasets import Dataset

from tokengym.agents.adapters.skill import TaskScale, measure_scales
from tokengym.agents.chat_tools import next_messages, with_call
from tokengym.envs.rollouts import Playable, Rollout, Rollouts

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
    skill: bool = True,
    **options: Any,
) -> "WorldMultiTurnEnv":
    """Return a world for `verifiers<0.4` and packages built on it, such as retrain.

    Args:
        world: id or short name of the world, also with a level: `energy:small`.
        level: one of the world's levels; the first one if `None`.
        role: the role to play, see `Rollouts`.
        opponents: baselines' names of the other roles.
        split: where the training rows are from; those of the evaluation are from `test`.
        tasks: number of training rows.
        evaluation_tasks: number of rows of the evaluation, where it is not asked for more.
        skill: whether evaluations report skill, for which scripted policies play their Tasks.
        **options: options of the world.
    """
    rollouts = Rollouts(world, level, role=role, opponents=opponents, **options)
    return WorldMultiTurnEnv(rollouts, split, tasks, evaluation_tasks, skill)


class WorldMultiTurnEnv(vf.MultiTurnEnv):
    """Each row is a Task, each rollout has its own world; the reward is the role's return.

    Args:
        rollouts: the world and the role to play, or its name: `energy:small`; see `Rollouts.of`.
        split: where the training rows are from; those of the evaluation are from `test`.
        tasks: number of training rows.
        evaluation_tasks: number of rows of the evaluation, where it is not asked for more.
        skill: whether evaluations report skill, for which scripted policies play their Tasks.
        **settings: of `MultiTurnEnv`.
    """

    def __init__(
        self,
        rollouts: Playable,
        split: str = "train",
        tasks: int = 512,
        evaluation_tasks: int = 64,
        skill: bool = True,
        **settings: Any,
    ) -> None:
        self._rollouts = made = Rollouts.of(rollouts)
        self._evaluation_tasks = evaluation_tasks
        self._skill = skill
        tools = [vf.Tool(**tool.function) for tool in made.world.tools]
        super().__init__(
            max_turns=-1,
            rubric=WorldRubric(),
            dataset=lambda: _rows(made, split, tasks),
            eval_dataset=lambda: _rows(made, "test", self._evaluation_tasks),
            tool_defs=tools or None,
            **settings,
        )

    def _get_eval_inputs(
        self, num_examples: int = -1, rollouts_per_example: int = 1, *order: Any, **shuffle: Any
    ) -> list[Any]:
        """Return the rows of an evaluation: as many Tasks as are asked for, and their scales."""
        if num_examples > self._evaluation_tasks:
            self._evaluation_tasks, self.eval_dataset = num_examples, None  # built again
        known = len(self.get_eval_dataset())
        if known < num_examples:
            self.logger.warning("the test split has %d Tasks, not %d", known, num_examples)
        rows: list[Any] = super()._get_eval_inputs(
            num_examples, rollouts_per_example, *order, **shuffle
        )
        if self._skill:
            places = dict.fromkeys((row["info"]["split"], row["info"]["index"]) for row in rows)
            tasks = [self._rollouts.world.task(*place) for place in places]
            by_place = dict(zip(places, measure_scales(self._rollouts, tasks)[1], strict=True))
            for row in rows:
                row["info"]["scale"] = list(by_place[row["info"]["split"], row["info"]["index"]])
                row["task"] = json.dumps({**json.loads(row["task"]), "info": row["info"]})
        return rows

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
        said = next_messages(rollout.text, _last_message(state))
        if rollout.done:
            state["final_env_response"] = said
        return said


class WorldRubric(vf.Rubric):
    """The role's return; `_well_formed`, and in evaluations `skill` and `reachable`, beside it."""

    def __init__(self) -> None:
        super().__init__(funcs=[_total])
        self.add_metric(_well_formed)

    async def score_rollout(self, state: vf.State) -> None:
        """Score one rollout."""
        await super().score_rollout(state)
        _add_skill(state)

    async def score_group(self, states: list[vf.State]) -> None:
        """Score the rollouts of a row."""
        await super().score_group(states)
        for state in states:
            _add_skill(state)


def _add_skill(state: vf.State) -> None:
    if scale := state["info"].get("scale"):
        state["metrics"].update(TaskScale(*scale).metrics(state[_ROLLOUT]))


def _play_last_reply(state: vf.State) -> None:
    """Play the replies in the trajectory that the rollout does not have yet."""
    rollout: Rollout = state[_ROLLOUT]
    for step in state["trajectory"][len(rollout.well_formed) :]:
        if not rollout.done:
            reason = "length" if step["is_truncated"] else "stop"
            last = step["completion"][-1] if step["completion"] else None
            rollout.say(with_call(_text(step["completion"]), last), reason)


def _last_message(state: vf.State) -> Any:
    steps = state["trajectory"]
    return steps[-1]["completion"][-1] if steps and steps[-1]["completion"] else None


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
