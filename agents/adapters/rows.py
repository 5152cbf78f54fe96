"""Rows of data by which trainers name Tasks; `rollouts.json_lines.write_rows` saves them."""

import json
from collections.abc import Iterator
from typing import Any

from tokengym.envs.rollouts import Playable, Rollouts


def task_rows(rollouts: Playable, split: str, count: int) -> Iterator[dict[str, Any]]:
    """Yield the first Tasks of a split as examples that SkyRL, verl and NeMo Gym read.

    SkyRL reads `prompt` and `env_class`, and hands `split` and `index` to the environment. verl
    reads `prompt`, `agent_name`, `data_source` and `reward_model`, and hands `extra_info` to the
    agent loop. NeMo Gym reads `agent_ref` and `responses_create_params`, whose input the world's
    first text is added to, and which declare the world's tools, and hands `split` and `index` to
    the server. Where a world has tools, `tools` declares them once more as JSON text: a table of
    `datasets` gives all tools the union of their properties, filled with `None`. TRL has examples
    of its own, see `trl.task_rows`.

    Args:
        rollouts: the world and the role to play, see `Rollouts.of`.
        split: where the Tasks are from.
        count: how many, the first ones; all if there are fewer.
    """
    made = Rollouts.of(rollouts)
    tools = [{"type": "function", **tool.function, "strict": False} for tool in made.world.tools]
    declared = {"tools": tools} if tools else {}
    as_text = {"tools": json.dumps(tools)} if tools else {}
    for task in made.world.first_tasks(split, count):
        where = {"split": split, "index": task.index}
        yield {
            "prompt": [{"role": "user", "content": made.start(task).text}],
            "env_class": "tokengym",
            "agent_name": "tokengym",
            "agent_ref": {"type": "responses_api_agents", "name": "tokengym_agent"},
            "data_source": f"{made.world.spec.short_name}:{made.world.level}",
            "responses_create_params": {"input": [], **declared},
            "reward_model": {"style": "rule", "ground_truth": task.fingerprint},
            "extra_info": where,
            **where,
            **as_text,
        }
