"""Learn to recall from demonstrations, from many bits a reply and from one, and draw the figure.

    python -m tokengym_recall --points 10,20,40

All three begin with the weights of a few supervised steps on replies that have the form and random
digits: what is learned afterwards is the memory. Run it again to resume.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure

from tokengym.agents import (
    Job,
    Progress,
    RunFolder,
    SftConfig,
    TrainConfig,
    preset_for,
    run_experiment,
)
from tokengym.agents.evaluation.trained import read_trained
from tokengym.rewards import mean_estimate

METHODS = {
    "demonstrations (10 bits each)": (SftConfig, "many"),
    "rewards of many bits": (TrainConfig, "many"),
    "rewards of one bit": (TrainConfig, "one"),
}
"""Source of learning, the settings, and the world's option `bits`."""


def learned(
    config: SftConfig | TrainConfig, folder: Path, points: list[int]
) -> list[tuple[int, list[float]]]:
    """Train one run on, from point to point; returns steps and recall on each held-out Task."""
    curve = []
    for steps in points:
        path = folder / f"after-{steps}.json"
        if not path.exists():
            run = RunFolder(folder)
            run_experiment(Job.resolve(replace(config, steps=steps)), run, Progress())
            (found,) = read_trained(run).values()
            if not curve:
                curve.append((0, list(found.before.paid_T)))
                (folder / "after-0.json").write_text(json.dumps(curve[0][1]))
            path.write_text(json.dumps(found.after.paid_T))
        elif not curve:
            curve.append((0, json.loads((folder / "after-0.json").read_text())))
        curve.append((steps, json.loads(path.read_text())))
    return curve


def main() -> None:
    """Read the options, train, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs/recall"))
    parser.add_argument("--points", default="10,20,40", help="steps after which to evaluate")
    parser.add_argument("--form-steps", type=int, default=40)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--level", default="one")
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--tasks", type=int, default=128, help="held-out Tasks")
    parser.add_argument("--model")
    parser.add_argument("--base-url")
    said = parser.parse_args()
    points = [int(point) for point in said.points.split(",")]
    usual = {
        "level": said.level,
        "groups_per_batch": said.groups,
        "group_size": said.group_size,
        "evaluation_tasks": said.tasks,
        "lr_schedule": "constant",
        "learning_rate": said.learning_rate,
        "model": said.model,
        "base_url": said.base_url,
    }
    form = RunFolder(said.runs / "form")
    if form.exists is False or form.outcome is None:
        begin = preset_for(
            SftConfig, "recall", demonstrations="random", steps=said.form_steps, **usual
        )
        run_experiment(Job.resolve(begin), form, Progress())
    figure = Figure(figsize=(6, 3.8), layout="constrained")
    axes = figure.subplots()
    rows = {}
    for name, (kind, bits) in METHODS.items():
        more = {"demonstrations": "oracle"} if kind is SftConfig else {"patience": 0}
        config = preset_for(
            kind,
            "recall",
            start=str(form.folder.resolve()),
            options={"bits": bits},
            **usual,
            **more,
        )
        folder = said.runs / f"{kind.command}-{bits}"
        curve = [(steps, mean_estimate(found)) for steps, found in learned(config, folder, points)]
        episodes = [steps * said.groups * said.group_size for steps, _ in curve]
        below = [mean.value - mean.low for _, mean in curve]
        above = [mean.high - mean.value for _, mean in curve]
        means = [mean.value for _, mean in curve]
        axes.errorbar(episodes, means, [below, above], fmt="o-", capsize=3, label=name)
        rows[name] = {count: mean for count, (_, mean) in zip(episodes, curve, strict=True)}
        print(f"{name}: " + ", ".join(f"{mean} after {n}" for n, mean in rows[name].items()))
    axes.axhline(0.1, color="grey", ls=":", label="guessing")
    axes.set(xlabel="replies to learn from", ylabel="share of digits recalled", ylim=(-0.02, 1.02))
    axes.legend(fontsize=8)
    figure.savefig(said.runs / "recall.png", dpi=150)
    (said.runs / "recall.json").write_text(json.dumps(rows, indent=1) + "\n")
    print(f"figure: {said.runs / 'recall.png'}")


if __name__ == "__main__":
    main()
