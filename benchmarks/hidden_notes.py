"""What listening to a challenger is worth where it has notes that the predictor does not see.

    python -m benchmarks.hidden_notes --tasks 200 --markdown docs/worlds/disruption.md

Predictors that take different things from the challenge play test Tasks, and are scored against
the exact posterior. `off script` is a challenger that argues for a random label and
states two random counts of its notes.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.pages import write_block
from tokengym.agents.reports.markdown import markdown_table
from tokengym.envs.core.play import PlayedEpisode, Policy, play
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.disruption.baselines import stated
from tokengym.envs.disruption.inference import at_face_value
from tokengym.envs.disruption.labels import DISRUPTION_LABELS
from tokengym.envs.disruption.world import CHALLENGER, PREDICTOR, DisruptionWorld
from tokengym.envs.registry import baselines, make_world
from tokengym.rewards.arrays import Floats
from tokengym.rewards.estimates import Estimate, mean_estimate

BLOCK, LEVELS = "hidden_notes.py", ("L2", "private")
ORACLE, LOGISTIC = "models the types and their columns (`oracle`)", "regression (`logistic`)"
DEAF, GULLIBLE = "exact, but ignores the challenger", "exact, but takes it at face value"


def _ignores(world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    debate = DisruptionWorld.cast(world)
    return stated(debate, debate.compiled.own)


def _believes(world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    debate = DisruptionWorld.cast(world)
    own, argument = debate.compiled.own, debate.argument
    told = at_face_value(debate.compiled.evidence, argument) if argument else None
    return stated(debate, own if told is None else (told,))


def _off_script(world: World, _turn: Turn, rng: np.random.Generator) -> str:
    evidence = DisruptionWorld.cast(world).compiled.evidence
    names = evidence.noted_features
    two = [names[place] for place in rng.choice(len(names), 2, replace=False)]
    lines = [f"CLAIM {name} = {evidence.notes[name]}" for name in two]
    return "\n".join([f"ARGUE {rng.choice(DISRUPTION_LABELS)}", *lines])


def _earned(records: Sequence[PlayedEpisode]) -> Floats:
    return np.array([record.returns[PREDICTOR] for record in records])


def _mean(values: Floats) -> Estimate:
    return mean_estimate(values.tolist())


def measure(level: str, count: int) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return the rows of a level, and sentences on what is paired by Task."""
    world, known = make_world("disruption", level, label="expected"), baselines("disruption")
    tasks = world.first_tasks("test", count)
    sides: dict[str, Policy] = {
        ORACLE: known["oracle"],
        LOGISTIC: known["logistic"],
        DEAF: _ignores,
        GULLIBLE: _believes,
        "states thirds (`null`)": known["null"],
    }

    def debates(name: str, challenger: Policy) -> list[PlayedEpisode]:
        roles = {PREDICTOR: sides[name], CHALLENGER: challenger}
        return [play(world, task, roles, seed=0) for task in tasks]

    played = {name: debates(name, known["scripted"]) for name in sides}
    scripted = {name: _earned(records) for name, records in played.items()}
    off = {name: _earned(debates(name, _off_script)) for name in (ORACLE, LOGISTIC, DEAF)}
    rows: list[tuple[str, ...]] = [
        (name, str(_mean(values)), str(_mean(off[name])) if name in off else "")
        for name, values in scripted.items()
    ]
    moved = [(_report(one.replies[0]), _report(one.replies[2])) for one in played[ORACLE]]
    flips = np.mean([first[0] != last[0] for first, last in moved])
    shifts = np.mean([np.abs(last[1] - first[1]).max() > 0.1 for first, last in moved])
    return rows, [
        f"At `{level}`, paired by Task, modelling the types earns "
        f"{_mean(scripted[ORACLE] - scripted[DEAF])} more than ignoring the challenger, and "
        f"believing everything {_mean(scripted[DEAF] - scripted[GULLIBLE])} less. Off script it "
        f"earns {_mean(off[ORACLE] - off[LOGISTIC])} more than regression. The "
        f"challenge changes the oracle's label in {flips:.0%} of debates, and a probability of its "
        f"report by more than 0.1 in {shifts:.0%}."
    ]


def _report(reply: str) -> tuple[str, Floats]:
    label, report, *_ = reply.splitlines()
    return label, np.array(report.split()[1:], float)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure both levels, and print or write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=200, help="test Tasks of each level")
    parser.add_argument("--markdown", type=Path, help="a page with a block for the table")
    chosen = parser.parse_args(arguments)
    found = {level: measure(level, chosen.tasks) for level in LEVELS}
    header = ["predictor"]
    for level in LEVELS:
        header += [f"`{level}`", f"`{level}`, off script"]
    sides = zip(*(rows for rows, _ in found.values()), strict=True)
    table = markdown_table(
        header, [(pair[0][0], *(cell for row in pair for cell in row[1:])) for pair in sides]
    )
    shown = "\n\n".join([table, *(" ".join(notes) for _, notes in found.values())])
    if chosen.markdown is None:
        print(shown)
    else:
        write_block(chosen.markdown, BLOCK, shown)


if __name__ == "__main__":
    main()
