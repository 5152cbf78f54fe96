"""`tokengym probe`: which gradient a trainer follows, read off one update of a tiny model."""

import shlex
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from tokengym.agents.cli.shown import show
from tokengym.agents.settings import name_values
from tokengym.envs.core.errors import OptionError
from tokengym.installed import require_extra

if TYPE_CHECKING:
    from tokengym.agents.probe.sampled import Reply
    from tokengym.agents.probe.verdict import ProbeVerdict

probe = typer.Typer(
    help="Check from one update of a tiny model which gradient a trainer follows.",
    no_args_is_help=True,
)
Seed = Annotated[int, typer.Option(min=0, help="seed of the model and the rollouts")]
Given = Annotated[
    list[str] | None,
    typer.Option("--set", help="NAME=VALUE of the trainer, once or more: adds a column"),
]
Accepted = Annotated[
    list[str] | None,
    typer.Option(help="'biased by choice: NAME' that is meant, once or more; else it exits with 3"),
]


def _finite(value: float) -> float:
    """Return a temperature.

    Raises:
        OptionError: if it is none.
    """
    if not 1e-3 <= value <= 1e3:
        raise OptionError(f"--temperature must be from 0.001 to 1000, got {value}")
    return value


Temperature = Annotated[float, typer.Option(callback=_finite, help="sampling temperature")]


@probe.command()
def export(
    folder: Annotated[Path, typer.Argument(help="new folder")],
    seed: Seed = 0,
    group_size: Annotated[int, typer.Option(min=2, help="rollouts in a group")] = 4,
) -> None:
    """Write a tiny model and designed rollouts, to train on with any trainer for one step."""
    require_extra("probe", "the probe")
    from tokengym.agents.probe.policy import write_tiny_model
    from tokengym.agents.probe.rollouts import write_rollouts
    from tokengym.agents.probe.worlds import designed_rollouts

    if folder.exists():
        raise OptionError(f"{folder} must be a new folder, it exists")
    folder.mkdir(parents=True)
    write_tiny_model(folder / "model", seed)
    write_rollouts(folder / "rollouts.jsonl", designed_rollouts(seed, group_size))
    typer.echo(f"Train {folder / 'model'} on {folder / 'rollouts.jsonl'} for one step, in float32.")


@probe.command()
def read(
    before: Annotated[
        list[Path], typer.Option(help="model or checkpoint before the update; once per seed")
    ],
    after: Annotated[list[Path], typer.Option(help="checkpoint after it; once per seed")],
    rollouts: Annotated[list[Path], typer.Option(help="its rollouts, JSONL; once per seed")],
    model: Annotated[
        Path | None, typer.Option(help="model directory, if --before is only a file of weights")
    ] = None,
    temperature: Temperature = 1.0,
    accept: Accepted = None,
) -> None:
    """Judge an update by the checkpoints before and after it; exit with 1 if it is wrong.

    Give the three options twice, for updates of two seeds, to have a fault confirmed.
    """
    require_extra("probe", "the probe")
    from tokengym.agents.probe.policy import load_checkpoint, load_model
    from tokengym.agents.probe.rollouts import read_rollouts
    from tokengym.agents.probe.steps import Training
    from tokengym.agents.probe.verdict import confirmed, exit_status, worst

    if not len(before) == len(after) == len(rollouts) <= 2:
        raise OptionError(
            "--before, --after and --rollouts are given once each, or twice each for two seeds; "
            f"got {len(before)}, {len(after)} and {len(rollouts)}"
        )
    if len(set(rollouts)) < len(rollouts):
        raise OptionError(f"--rollouts must be of two seeds, got {rollouts[0]} twice")
    verdicts = []
    for first, second, rows in zip(before, after, rollouts, strict=True):
        policy = load_model(model or first)
        names = [name for name, _ in policy.named_parameters()]
        checkpoints = [load_checkpoint(one, names) for one in (first, second)]
        batch = read_rollouts(rows, policy.get_input_embeddings().num_embeddings)
        training = Training(policy, batch, checkpoints, temperature)
        verdicts.append(worst(training.verdicts()))
    words: list[object] = ["tokengym", "probe", "read"]
    for first, second, rows in zip(before, after, rollouts, strict=True):
        words += ["--before", first, "--after", second, "--rollouts", rows]
    words += ["--model", model] if model is not None else []
    words += ["--temperature", temperature] if temperature != 1.0 else []
    command = shlex.join(map(str, words))
    if len(verdicts) == 1:
        command += " and the same options for an update of `tokengym probe export --seed 1`"
    verdict = confirmed(verdicts[0], verdicts[1] if len(verdicts) == 2 else None, command)
    typer.echo(str(verdict))
    raise typer.Exit(exit_status([verdict], accept or ()))


@probe.command()
def sent(
    rollouts: Annotated[Path, typer.Argument(help="JSONL of one step")],
    model: Annotated[
        Path | None, typer.Option(help="directory of the model that sampled: judges samples too")
    ] = None,
    temperature: Temperature = 1.0,
    accept: Accepted = None,
) -> None:
    """Judge a trainer's logs alone: whether its advantages follow from its rewards.

    With the model also whether replies are of its distribution; rollouts then need no advantages.
    """
    require_extra("probe", "the probe")
    from tokengym.agents.probe.rollouts import read_rollouts
    from tokengym.agents.probe.sent import judge_sent
    from tokengym.agents.probe.verdict import exit_status

    read, verdicts = read_rollouts(rollouts), []
    if model is None or any(one.advantages is not None for one in read):
        verdicts.append(judge_sent(read))
    if model is not None:
        replies = [(one.prompt_ids, one.completion_ids, one.mask) for one in read]
        verdicts.append(judge_sampling(model, replies, temperature))
    show(*map(str, verdicts))
    raise typer.Exit(exit_status(verdicts, accept or ()))


def judge_sampling(
    folder: Path, replies: "Iterable[Reply]", temperature: float = 1.0
) -> "ProbeVerdict":
    """Return the verdict on whether replies are of a model's distribution."""
    from tokengym.agents.probe.policy import load_model
    from tokengym.agents.probe.sampled import judge_sample, sample_of

    return judge_sample(sample_of(load_model(folder).float(), replies, temperature))


def _add_command(name: str, extra: str, what: str) -> None:
    """Add the command that runs a trainer here."""
    text = f"Run {what} on a tiny model, and judge it; exit with 1 if it is wrong."

    @probe.command(name, help=text)
    def run(seed: Seed = 0, given: Given = None, accept: Accepted = None) -> None:
        require_extra(extra, f"tokengym probe {name}")
        import torch

        from tokengym.agents.probe.campaign import run_campaign
        from tokengym.agents.probe.verdict import exit_status
        from tokengym.agents.reports.progress import progress_bars

        module = import_module(f"tokengym.agents.probe.{extra}_trainers")
        torch.set_num_threads(1)  # of so small a model more would be slower
        command = ["tokengym", "probe", name, *(("--seed", str(seed)) if seed else ())]
        command += [word for one in given or () for word in ("--set", one)]
        results = []
        with (
            TemporaryDirectory() as folder,
            module.open_trainer(name, Path(folder), name_values(given or (), "--set")) as trainer,
            progress_bars() as progress,
        ):
            show(title=trainer.title)
            cases = len(trainer.runs)
            progress("cases", 0, cases)
            for result in run_campaign(trainer, shlex.join(command), seed):
                progress("", 0, 0)  # no bar while a line is printed
                show(f"{result.column}, {result.case}: {result.verdict}")
                results.append(result)
                progress("cases", len(results), cases)
        show("", "Weight of each group, as a multiple of spread's; an unbiased one is 1:")
        weights = {result.column: result.weights for result in results if result.weights}
        show(f"| group | {' | '.join(weights)} |", f"|{'---|' * (1 + len(weights))}")
        for world in next(iter(weights.values())):
            show(f"| {world} | {' | '.join(column[world] for column in weights.values())} |")
        raise typer.Exit(exit_status((result.verdict for result in results), accept or ()))


_add_command("trl", "trl", "TRL's GRPOTrainer")
_add_command("cookbook", "tinker", "tinker_cookbook.rl.train")
_add_command("own", "tinker", "the loop of `tokengym train`, its estimators and credits")
