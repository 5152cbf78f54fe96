"""Ties under graded rewards and under flat floors: the table of `docs/results.md`, as Markdown.

    python benchmarks/flat_floors.py
    python benchmarks/flat_floors.py --worlds forecast --tasks 200

The first level of every world, played by `noisy`, with its own graded rewards and with
`WorldSpec.flat_floor`.
"""

import argparse
from collections.abc import Iterator, Sequence

import numpy as np

from tokengym.agents.evaluation.plan import EvaluationPlace, EvaluationPlan
from tokengym.agents.evaluation.played_ties import tie_study
from tokengym.agents.evaluation.ties import TieStudy, study_of
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.reports.markdown import markdown_table
from tokengym.envs import World, make_world
from tokengym.envs.registry import specs

SIZES = (4, 8, 16)
FLOORS = ("graded", "flat")

HEADER = (*("world", "floor", "below it", "tied pairs"), *(f"dead, G = {size}" for size in SIZES))


def study_ties(world: World, tasks: int) -> dict[str, TieStudy]:
    """Play groups of the largest size by `noisy`; returns their ties by kind of floor.

    Args:
        world: one with a flat floor to compare with; in the debate no opponent argues.
        tasks: test Tasks, one per group.
    """
    spec, names = world.spec, world.spec.roles
    opponents = dict.fromkeys(names[1:], "null")
    place = EvaluationPlace(spec.id, world.level, names[0], opponents, {}, "test", tasks)
    plan = EvaluationPlan((place,), ("noisy",), max(SIZES))
    played = tie_study(EvaluatedWorld.resolve(place, plan.seed), plan, SIZES)
    floor = world.spec.flat_floor
    assert floor is not None
    graded = np.asarray(played.rewards)
    fallen = graded < floor.below if played.fallen is None else np.asarray(played.fallen)
    return {
        kind: study_of(
            world,
            played.policy,
            rewards.tolist(),
            SIZES,
            fallen=fallen.tolist(),
            malformed=played.malformed,
        )
        for kind, rewards in zip(FLOORS, (graded, floor.flattened(graded, fallen)), strict=True)
    }


def ties_rows(worlds: Sequence[str], tasks: int) -> Iterator[Sequence[str]]:
    """Yield the rows of the table of ties."""
    for name in worlds:
        for floor, study in study_ties(make_world(name), tasks).items():
            # The pair rate does not depend on the size: the largest knows it best.
            largest = study.sizes[-1].rates
            pairs = largest["reward_tie_pair_rate"]
            yield (
                *(name, floor, f"{largest['floor_mass'].value:.0%}"),
                f"{pairs.value:.3f} ({pairs.low:.3f} to {pairs.high:.3f})",
                *(f"{1.0 - row.useful.value:.3f}" for row in study.sizes),
            )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--worlds", default=",".join(row.short_name for row in specs().values()), help="short names"
    )
    parser.add_argument("--tasks", type=int, default=48, help="groups per row")
    options = parser.parse_args(arguments)
    print(markdown_table(HEADER, list(ties_rows(options.worlds.split(","), options.tasks))))


if __name__ == "__main__":
    main()
