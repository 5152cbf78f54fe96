"""The page of the group-size study, `docs/study.md`, and its pictures, from `docs/study.json`.

    python benchmarks/group_size_page.py

`group_size_study.py` makes the figures. Every number and every claim of the page is computed here
from them; the template beside this script holds what does not depend on them.
"""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from matplotlib.figure import Figure

from tokengym.agents.analysis.markdown import markdown_table
from tokengym.envs.registry import spec

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "study.json"
TEMPLATE = Path(__file__).with_suffix(".md.j2")

FLOOR_NAMES = ("graded", "flat")
FULL_SEEDS = 2
_SMOOTHING = 0.8

Study = Mapping[str, Any]


def page(study: Study) -> str:
    """Return the page."""
    lessons = {
        f"{world}, {floor} floor": lesson(study, world, floor) for world, floor in _lessons(study)
    }
    template = jinja2.Template(
        TEMPLATE.read_text(encoding="utf-8"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    shown: str = template.render(
        plan=study["plan"],
        pilot=len(study["plan"]["seeds"]) < FULL_SEEDS,
        ties={name: ties_table(study, name) for name in ("noisy", "start")},
        smallest={name: smallest(study, name) for name in ("noisy", "start")},
        floors={name: floor_cost(study, name) for name in ("noisy", "start")},
        rules={world: spec(world).flat_floor for world in _worlds(study)},
        lessons=lessons,
        energy=energy_floors(study),
        minutes=sum(cell["seconds"] for cell in study["cells"].values()) / 60.0,
    )
    return shown


def ties_table(study: Study, policy: str) -> str:
    """Return rates by world, floor and size: dead groups, and tied pairs."""
    sizes = _sizes(study)
    header = ["world", "floor", "below it", *(f"dead, G = {size}" for size in sizes)]
    header += [*(f"pairs, G = {size}" for size in sizes), "enough"]
    rows = []
    for world in _worlds(study):
        for floor in FLOOR_NAMES:
            told = study["cells"][f"{world}-{policy}"]["floors"][floor]
            by_size = [told["sizes"][str(size)] for size in sizes]
            rows.append(
                [
                    world,
                    floor,
                    f"{by_size[-1]['mass']:.0%}",
                    *(f"{1 - row['useful'][0]:.3f}" for row in by_size),
                    *(f"{row['pairs'][0]:.3f}" for row in by_size),
                    enough(told),
                ]
            )
    return markdown_table(header, rows)


def enough(told: Mapping[str, Any]) -> str:
    """Return the smallest size that is enough, `none` where every group ties whatever its size."""
    alive = any(row["useful"][0] > 0.0 for row in told["sizes"].values())
    return str(told["recommended"]) if alive else "none"


def smallest(study: Study, policy: str) -> Mapping[str, Mapping[str, str]]:
    """Return the smallest size that is enough, by floor and world."""
    return {
        floor: {
            world: enough(study["cells"][f"{world}-{policy}"]["floors"][floor])
            for world in _worlds(study)
        }
        for floor in FLOOR_NAMES
    }


def floor_cost(study: Study, policy: str) -> Mapping[str, Mapping[str, float]]:
    """Return by world the share of dead groups of the smallest size, with either floor."""
    size = str(_sizes(study)[0])
    return {
        world: {
            floor: 1
            - study["cells"][f"{world}-{policy}"]["floors"][floor]["sizes"][size]["useful"][0]
            for floor in FLOOR_NAMES
        }
        for world in _worlds(study)
    }


def lesson(study: Study, world: str, floor: str) -> Mapping[str, Any]:
    """Return how a lesson went: a table by size, which size was fastest, and by what chance."""
    runs = {size: _runs(study, world, floor, size) for size in _sizes(study)}
    pace = {size: [float(np.mean(_reward(run))) for run in found] for size, found in runs.items()}
    after = {size: [run["after"][0] for run in found] for size, found in runs.items()}
    rows = [
        [
            str(size),
            _shown(pace[size]),
            _shown(after[size]),
            f"{np.mean([np.mean(_series(run, 'reward_uniform_group_rate')) for run in found]):.3f}",
            f"{np.mean([run['tokens'] for run in found]):,.0f}",
            f"{np.mean([run['seconds'] for run in found]):,.0f}",
            str(sum(run["collapse"] is not None for run in found)),
        ]
        for size, found in runs.items()
    ]
    header = ["G", "mean return while learning", "held-out return after"]
    header += ["dead groups", "tokens", "seconds", "collapsed"]
    fastest = max(pace, key=lambda size: float(np.mean(pace[size])))
    rest = [value for size, values in pace.items() if size != fastest for value in values]
    return {
        "table": markdown_table(header, rows),
        "fastest": fastest,
        "ahead": len(pace[fastest]) > 1 and min(pace[fastest]) > max(rest),
        # That some size has all the best runs, if the size makes no difference.
        "chance": len(pace) / math.comb(len(pace[fastest]) + len(rest), len(pace[fastest])),
        "pace": {size: float(np.mean(values)) for size, values in pace.items()},
        "after": {size: float(np.mean(values)) for size, values in after.items()},
        "before": float(np.mean([run["before"][0] for run in _starts(study, world)])),
        "oracle": _runs(study, world, floor, _sizes(study)[0])[0]["oracle"],
    }


def energy_floors(study: Study) -> Mapping[str, Mapping[str, Any]]:
    """Return what learning on either floor came to in energy, all sizes together."""
    told = {}
    for floor in FLOOR_NAMES:
        runs = [run for size in _sizes(study) for run in _runs(study, "energy", floor, size)]
        told[floor] = {
            "after": _reach([run["after"][0] for run in runs]),
            "mean": float(np.mean([run["after"][0] for run in runs])),
            "violations": float(np.mean([run["violations"] for run in runs])),
            "dead": float(
                np.mean([np.mean(_series(run, "reward_uniform_group_rate")) for run in runs])
            ),
        }
    return told


def draw_ties(study: Study, path: Path) -> None:
    """Draw the pair rate by size for each world, policy and floor."""
    sizes, worlds = _sizes(study), _worlds(study)
    figure = Figure(figsize=(12, 3.4), layout="constrained")
    every = figure.subplots(1, len(worlds), sharey=True)
    for axes, world in zip(every, worlds, strict=True):
        for policy, colour in (("noisy", "#1f5f99"), ("start", "#c46210")):
            for floor, style in (("graded", "-"), ("flat", "--")):
                told = study["cells"][f"{world}-{policy}"]["floors"][floor]["sizes"]
                pairs = np.array([told[str(size)]["pairs"] for size in sizes])
                reach = np.clip([pairs[:, 0] - pairs[:, 1], pairs[:, 2] - pairs[:, 0]], 0.0, None)
                axes.errorbar(
                    sizes,
                    pairs[:, 0],
                    reach,
                    ls=style,
                    color=colour,
                    marker="o",
                    capsize=3,
                    label=f"{policy}, {floor}",
                )
        axes.set(title=world, xlabel="group size", xticks=sizes)
    every[0].set(ylabel="tied pairs", ylim=(-0.02, 1.02))
    handles, labels = every[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=110)


def draw_lessons(study: Study, path: Path) -> None:
    """Draw the return by step of each lesson, one line a run."""
    figure = Figure(figsize=(12, 6.4), layout="constrained")
    lessons = _lessons(study)
    every = list(figure.subplots(2, -(-len(lessons) // 2)).flat)
    for axes in every[len(lessons) :]:
        axes.set_axis_off()
    for axes, (world, floor) in zip(every, lessons, strict=False):
        for size, colour in zip(_sizes(study), ("#c46210", "#1f5f99", "#3a7d44"), strict=True):
            for at, run in enumerate(_runs(study, world, floor, size)):
                reward = _smooth(_reward(run))
                label = f"G = {size}" if at == 0 else None
                axes.plot(range(1, len(reward) + 1), reward, color=colour, lw=1.2, label=label)
        axes.set(title=f"{world}, {floor} floor", xlabel="step", ylabel="mean return, smoothed")
        axes.legend(loc="lower right")
    figure.savefig(path, dpi=110)


def _sizes(study: Study) -> list[int]:
    return list(study["plan"]["sizes"])


def _worlds(study: Study) -> list[str]:
    return list(study["plan"]["steps"])


def _lessons(study: Study) -> list[tuple[str, str]]:
    """Worlds and floors that were learned on."""
    return [(world, floor) for world, floor in study["plan"]["lessons"]]


def _runs(study: Study, world: str, floor: str, size: int) -> list[Any]:
    seeds = study["plan"]["seeds"]
    return [study["cells"][f"{world}-{floor}-G{size}-seed{seed}"] for seed in seeds]


def _starts(study: Study, world: str) -> list[Any]:
    """Runs that evaluated the starting policy on the graded scale."""
    return [run for size in _sizes(study) for run in _runs(study, world, "graded", size)]


def _series(run: Mapping[str, Any], name: str) -> list[float]:
    return [value for value in run["series"][name] if value is not None]


def _reward(run: Mapping[str, Any]) -> list[float]:
    return _series(run, "reward/total")


def _reach(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


def _shown(values: Sequence[float]) -> str:
    low, high = _reach(values)
    return f"{low:.3f}" if len(values) == 1 else f"{low:.3f} to {high:.3f}"


def _smooth(values: Sequence[float]) -> list[float]:
    smooth: list[float] = []
    for value in values:
        smooth.append(_SMOOTHING * smooth[-1] + (1 - _SMOOTHING) * value if smooth else value)
    return smooth


def main() -> None:
    """Write the page and its pictures beside the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA, help="the figures; the page goes there")
    data: Path = parser.parse_args().data
    study = json.loads(data.read_text())
    data.with_suffix(".md").write_text(page(study), encoding="utf-8")
    draw_ties(study, data.with_name(f"{data.stem}_ties.png"))
    draw_lessons(study, data.with_name(f"{data.stem}_lessons.png"))


if __name__ == "__main__":
    main()
