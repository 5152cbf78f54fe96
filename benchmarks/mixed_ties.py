"""Ties of groups in which every simple policy has a rollout, with decimals as models write them.

    python benchmarks/mixed_ties.py                                     every level of every world
    python benchmarks/mixed_ties.py disruption --tasks 100
    python benchmarks/mixed_ties.py --markdown docs/tables.md

A group is one rollout of each simple baseline on one Task. Numbers with decimals are rounded to
two, as models write them. Returns are those of `tokengym check`: where outcomes are noisy, they are
scored against exact probabilities. Policies that tie on every Task do the same in other words, or
differ in what the level does not ask for; a second figure counts one of each such set.
"""

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tokengym.agents.analysis.markdown import markdown_table, write_block
from tokengym.agents.evaluation.scripted import play_all
from tokengym.agents.scale import scripted_opponents
from tokengym.envs import World, make_world, spec, specs
from tokengym.envs.core.play import Policy
from tokengym.envs.core.turn import Turn
from tokengym.envs.registry import baselines_at
from tokengym.rewards.arrays import Floats
from tokengym.rewards.ties import TieStatistics, tie_counts

BLOCK = "mixed_ties.py"
HEADER = ("world", "levels", "tied pairs", "policies that always tie", "tied pairs of the others")
_DECIMALS = re.compile(r"\d+\.\d+")
_EPS = 1e-6
"""Returns as near as this tie, as in `tie_counts`."""


def as_models_write(policy: Policy) -> Policy:
    """Return a policy that replies likewise, every fraction with two decimals."""

    def play(world: World, turn: Turn, rng: np.random.Generator) -> str:
        return _DECIMALS.sub(lambda match: f"{float(match[0]):.2f}", policy(world, turn, rng))

    return play


def simple_policies(world: World) -> Mapping[str, Policy]:
    """Return the simple baselines of a world by name, with decimals as models write them."""
    not_simple = {"oracle", *world.spec.planners}
    known = baselines_at(world).items()
    return {name: as_models_write(policy) for name, policy in known if name not in not_simple}


def measure(world: World, policies: Mapping[str, Policy], count: int) -> Sequence[str]:
    """Return a level's row: rates over groups of one rollout of each policy on one Task."""
    role, others = world.spec.roles[0], scripted_opponents(world)
    tasks = world.first_tasks("test", count)
    earned = {
        name: np.array([e.returns[role] for e in play_all(world, tasks, {**others, role: policy})])
        for name, policy in policies.items()
    }
    sets: dict[str, list[str]] = {}
    for name, returns_T in earned.items():
        first = next((one for one in sets if _tied(earned[one], returns_T).all()), name)
        sets.setdefault(first, []).append(name)
    rates = _rates([*earned.values()])
    apart = _rates([earned[first] for first in sets])
    return (
        *(world.spec.short_name, f"`{world.level}`"),
        f"{rates['reward_tie_pair_rate']:.3f}",
        "; ".join(", ".join(f"`{one}`" for one in alike) for alike in sets.values() if alike[1:]),
        f"{apart['reward_tie_pair_rate']:.3f}",
    )


def joined(rows: Iterable[Sequence[str]]) -> Sequence[Sequence[str]]:
    """Return a row for each set of a world's levels at which the same policies always tie."""
    sets: dict[tuple[str, str], list[Sequence[str]]] = {}
    for found in rows:
        sets.setdefault((found[0], found[3]), []).append(found)
    return [
        (
            *(world, ", ".join(row[1] for row in alike)),
            *(_range([row[2] for row in alike]), tie, _range([row[4] for row in alike])),
        )
        for (world, tie), alike in sets.items()
    ]


def _range(cells: Sequence[str]) -> str:
    return " to ".join(sorted({min(cells), max(cells)}))


def _rates(returns: Sequence[Floats]) -> TieStatistics:
    """Return the ties of groups of one rollout of each policy, from their returns by Task."""
    return tie_counts(np.stack(returns, axis=1)).statistics()


def _tied(a_T: Floats, b_T: Floats) -> npt.NDArray[np.bool_]:
    return np.abs(a_T - b_T) <= _EPS


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the worlds asked for, and print or write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("worlds", nargs="*", help="ids or short names of the worlds; all if none")
    parser.add_argument("--tasks", type=int, default=40, help="test Tasks per level")
    parser.add_argument("--markdown", type=Path, help="a page with a block for this table")
    chosen = parser.parse_args(arguments)
    rows = []
    for found in [spec(name) for name in chosen.worlds] or specs().values():
        for level in found.levels:
            world = make_world(found.id, level, **found.check_options)
            rows.append(measure(world, simple_policies(world), chosen.tasks))
            print(*rows[-1], flush=True)
    if chosen.markdown is not None:
        write_block(chosen.markdown, BLOCK, markdown_table(HEADER, joined(rows)))


if __name__ == "__main__":
    main()
