"""Laws of flat floors: energy's rule is its own option, and no rule changes what lies above."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.studies import play_group
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world, spec, specs
from tokengym.rewards.control import SAFE_RETURN, FlatFloor

WORLDS = sorted(specs())


def floor_of(world: str) -> FlatFloor:
    floor = spec(world).flat_floor
    assert floor is not None
    return floor


def test_every_world_has_a_flat_floor_to_compare_with() -> None:
    assert [name for name in WORLDS if floor_of(name).option] == ["tokengym/Energy-v2"]


@pytest.mark.parametrize("level", ["small", "household"])
def test_energys_rule_pays_what_its_option_pays(level: str) -> None:
    graded, flat = make_world("energy", level), make_world("energy", level, flat_floor=True)
    rules = baselines("energy")

    def policy(world: World, turn: Turn, rng: np.random.Generator) -> str:
        return "no idea" if rng.random() < 0.6 else rules["hold"](world, turn, rng)

    kept_for_little = False
    for index in range(4):
        task = graded.task("test", index)
        runs = [
            play_group(world, shared, policy, 6)
            for world, shared in ((graded, task), (flat, flat.adopt(task)))
        ]
        earned, paid = (np.array([run.returns["operator"] for run in group]) for group in runs)
        fallen = np.array([run.metrics["safety_floor_mass"] > 0.0 for run in runs[0]])
        assert floor_of("tokengym/Energy-v2").flattened(earned, fallen).tolist() == paid.tolist()
        kept_for_little |= bool((~fallen & (earned < SAFE_RETURN)).any())
    assert kept_for_little or level == "household"


@given(st.sampled_from(WORLDS), st.lists(st.floats(-1, 1.5), min_size=2, max_size=8))
def test_thresholds_level_only_the_returns_below_them(world: str, rewards: list[float]) -> None:
    floor = floor_of(world)
    flat = floor.flattened(np.array(rewards))
    for before, after in zip(rewards, flat, strict=True):
        assert after == (before if before >= floor.below else floor.pays)


def test_only_wrong_final_labels_fall() -> None:
    made = make_world("disruption")
    floor = floor_of(made.spec.id)
    policies = {
        "predictor": baselines("disruption")["random"],
        "challenger": baselines("disruption")["null"],
    }
    seen = set()
    for index in range(12):
        for run in play_group(made, made.task("test", index), policies, 4):
            correct = sum(
                turn.terms.get("predictor", {}).get("correctness", 0.0) for turn in run.turns
            )
            fell = bool(floor.flattened(np.array([run.returns["predictor"]]))[0] == floor.pays)
            assert fell == (correct < 0.0)
            seen.add(fell)
    assert seen == {False, True}
