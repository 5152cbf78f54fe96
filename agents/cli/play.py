"""`tokengym play`: one episode on the terminal, played by you or by a scripted policy."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tokengym.agents.cli.options import name_values
from tokengym.envs.core.rollout import Policy, Record
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world, policy
from tokengym.envs.rendering import require_picture, save_picture


def play(
    world: Annotated[str, typer.Argument(help="id or short name, such as forecast")],
    level: Annotated[str | None, typer.Option(help="level of the world")] = None,
    who: Annotated[str, typer.Option("--policy", help="a baseline's name, or human")] = "human",
    split: Annotated[str, typer.Option(help="train, validation or test")] = "train",
    index: Annotated[int, typer.Option(help="which Task of the split")] = 0,
    option: Annotated[list[str] | None, typer.Option(help="name=value, a world's option")] = None,
    picture: Annotated[
        Path | None,
        typer.Option(help="draw the episode, if its world can; .png, .svg or .pdf"),
    ] = None,
) -> None:
    """Play one Task; end a reply of your own with an empty line."""
    made = make_world(world, level, **name_values(option or [], "--option"))
    if picture is not None:
        require_picture(made.spec.id, picture)
    speaker: Policy = _human if who == "human" else policy(made.spec.id, who)
    others = baselines(made.spec.id)["null"]
    rng = np.random.default_rng(index)
    task = made.task(split, index)
    turn = made.start(task)
    first = turn.role
    turns, replies = [turn], list[str]()
    while not turn.done:
        typer.secho(f"[{turn.role}]", fg="cyan")
        typer.echo(turn.text)
        reply = (speaker if turn.role == first else others)(made, turn, rng)
        if who != "human" or turn.role != first:
            typer.secho(f"> {reply}", fg="green")
        turn = made.reply(reply)
        turns.append(turn)
        replies.append(reply)
    if turn.text:
        typer.echo(turn.text)
    for role, value in made.returns.items():
        best = made.optimum(task).get(role)
        kind = "" if best is None else f" ({'optimum' if best.exact else 'bound'} {best.value:.4f})"
        typer.secho(f"{role} earned {value:.4f}{kind}; {turn.stop_reason}", fg="yellow")
    for name, number in turn.metrics.items():
        typer.echo(f"  {name}: {number:g}")
    if picture is not None:
        save_picture(made, Record(task, tuple(turns), tuple(replies), made.returns), picture, who)
        typer.echo(f"picture: {picture}")


def _human(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Read lines up to an empty one."""
    lines: list[str] = []
    while True:
        try:
            line = input("> ")
        except EOFError:
            break
        if not line:
            break
        lines.append(line)
    return "\n".join(lines)
