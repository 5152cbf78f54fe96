"""The leaderboard: evaluations whose recorded replies are replayed and scored again.

    tokengym evaluate forecast warehouse energy disruption --policy POLICY --out results/mine
    python -m benchmarks.leaderboard --add "my model" results/mine --markdown docs/leaderboard.md

`--add` verifies the folders, each of which has one policy, and packs them under a name beside this
file. The table is made of what is packed: every reply is replayed without a model, and an entry
whose figures do not follow from its replies is refused. Worlds of one entry may be in several
folders; all entries of a world have the same Tasks.
"""

import argparse
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tokengym.agents.analysis.markdown import markdown_table, write_block
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.verify import verify_evaluation
from tokengym.envs.registry import spec, specs

PACKED = Path(__file__).parent / "leaderboard"
BLOCK = "leaderboard.py"


class Row(NamedTuple):
    """What an entry earns in one world: `PolicyResult` as JSON, and the Tasks it was played on."""

    result: dict[str, Any]
    tasks: tuple[str, ...]


def rows_of(folder: Path) -> Iterator[Row]:
    """Replay an evaluation; yields the results of its one policy, world by world.

    Raises:
        SystemExit: if anything differs from what is recorded, or there are several policies.
    """
    evaluation = EvaluationFolder.open(folder)
    verified = verify_evaluation(evaluation)
    data = evaluation.read()
    if verified.differences:
        sys.exit(f"{folder}: {verified.differences[0]} ({len(verified.differences)} differences)")
    if len({row["policy"] for row in data["results"]["policies"]}) != 1:
        sys.exit(f"{folder} has several policies: evaluate each in a folder of its own")
    for result, world in zip(data["results"]["policies"], data["worlds"], strict=True):
        yield Row(result, tuple(world["fingerprints"]))


def pack(name: str, folders: Sequence[Path]) -> None:
    """Verify evaluations and pack what replays them, without what is made from it."""
    for folder in folders:
        list(rows_of(folder))
    PACKED.mkdir(exist_ok=True)
    with zipfile.ZipFile(PACKED / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for number, folder in enumerate(folders):
            for file in sorted(folder.rglob("*.json*")):
                packed.write(file, f"{number}/{file.relative_to(folder)}")


def entries() -> dict[str, list[Row]]:
    """Replay all that is packed; returns the rows of each entry by its name."""
    found: dict[str, list[Row]] = {}
    tasks: dict[tuple[str, str], tuple[str, ...]] = {}
    for file in sorted(PACKED.glob("*.zip")):
        with tempfile.TemporaryDirectory() as unpacked, zipfile.ZipFile(file) as packed:
            packed.extractall(unpacked)
            found[file.stem] = [
                row for part in sorted(Path(unpacked).iterdir()) for row in rows_of(part)
            ]
        for row in found[file.stem]:
            place = (row.result["world"], row.result["level"])
            if tasks.setdefault(place, row.tasks) != row.tasks:
                sys.exit(f"{file.name}: its Tasks of {place} are not those of the other entries")
    return found


def table(found: dict[str, list[Row]]) -> str:
    """Return a row for each entry with its skill in every world, the best mean first."""
    places = [(one.id, one.levels[0]) for one in specs().values()]
    rows = []
    for name, results in found.items():
        skills = {(row.result["world"], row.result["level"]): row.result for row in results}
        values = [skills[place]["skill"] for place in places if place in skills]
        cells = [_skill(skills[place]) if place in skills else "" for place in places]
        mean = np.mean([value["value"] for value in values]) if len(values) == len(places) else None
        malformed = np.mean([row.result["malformed"]["value"] for row in results])
        # Means are of all worlds, or there is none.
        shown = ("", "") if mean is None else (f"{mean:.2f}", f"{malformed:.0%}")
        order = -np.inf if mean is None else float(mean)
        rows.append((order, (name, shown[0], *cells, shown[1])))
    rows.sort(key=lambda row: -row[0])
    worlds = [spec(world).short_name for world, _ in places]
    header = ("policy", f"mean of {len(worlds)}", *worlds, f"malformed, mean of {len(worlds)}")
    return markdown_table(header, [row for _, row in rows])


def _skill(result: dict[str, Any]) -> str:
    skill = result["skill"]
    return f"{skill['value']:.2f} ({skill['low']:.2f} to {skill['high']:.2f})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Pack an entry, and write the page's table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--add", metavar="NAME", help="of the entry that the folders are")
    parser.add_argument("folders", metavar="FOLDER", type=Path, nargs="*", help="an evaluation")
    parser.add_argument("--markdown", type=Path, help="the page to write")
    chosen = parser.parse_args(arguments)
    if (chosen.add is None) != (not chosen.folders):
        parser.error("--add NAME takes the folders of its evaluations, and they take a name")
    if chosen.add:
        pack(chosen.add, chosen.folders)
    shown = table(entries())
    print(shown)
    if chosen.markdown:
        write_block(chosen.markdown, BLOCK, shown)


if __name__ == "__main__":
    main()
