"""What the warehouse demonstrates is what its best rule does, without routes nobody can copy."""

import numpy as np
import pytest

from tokengym.envs.core.rollout import play
from tokengym.envs.registry import baselines, make_world, spec
from tokengym.envs.warehouse.demonstrations import demonstrate


@pytest.mark.parametrize("level", ["pick_small", "pick", "stock_small", "lease_small", "full"])
def test_demonstrations_are_nearly_as_good_as_the_best_rule(level: str) -> None:
    world = make_world("warehouse", level)
    found = {}
    for name, policy in {
        "demonstrated": demonstrate,
        "rule": baselines("warehouse")["replan"],
    }.items():
        records = [
            play(world, task, policy, np.random.default_rng(0))
            for task in world.first_tasks("train", 3)
        ]
        assert all(record.metrics.get("well_formed", 1.0) == 1.0 for record in records)
        found[name] = np.mean([record.returns["lead"] for record in records])
        replies = [reply for record in records for reply in record.replies]
        if name == "demonstrated":
            assert not any(":" in reply for reply in replies)
    assert found["demonstrated"] >= found["rule"] - 0.1


def test_the_warehouse_names_its_demonstrations() -> None:
    assert spec("warehouse").demonstrations.endswith(":demonstrate")
