"""`tokengym play`: one episode in the terminal, played by you or by a scripted policy."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer

from tokengym.agents.cli.options import Playing, WorldName
from tokengym.agents.cli.shown import INTERRUPTED
from tokengym.agents.rollouts import RolloutLog, RolloutOrigin, record_play
from tokengym.agents.scale.level_scale import Earned, best_known
from tokengym.agents.settings import Settings, option
from tokengym.agents.settings.commands import said_of, takes
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import PlayedEpisode, Policy
from tokengym.envs.core.play import play as play_episode
from tokengym.envs.core.rendering import require_picture, save_picture
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn, expected_return
from tokengym.envs.core.world import World
from tokengym.envs.registry import make_world, opponents_of_one, policy, scripted_opponent

HUMAN = "human"
_ORACLE = "oracle"


@dataclass(frozen=True)
class _Asked(Settings):
    """Policy and files.

    Attributes: see their help.
    """

    policy: str = option(HUMAN, "a baseline's name, or human; opponents take the same")
    index: int = option(0, "number of the Task in the split")
    rollouts: Path | None = option(None, "a folder to save the episode in")
    picture: Path | None = option(
        None, "draw the episode, in worlds with pictures; .png, .svg or .pdf"
    )


@takes(Playing, _Asked)
def play(world: WorldName, *, said: dict[str, Any]) -> None:
    """Play one Task, then see what the oracle would have replied and earned.

    Enter sends a reply of one line; longer ones end with an empty line. Ctrl-D or Ctrl-C leaves.
    """
    playing, asked = said_of(Playing, said), said_of(_Asked, said)
    made = make_world(world, playing.level, **playing.options)
    mine, picture, index = playing.role or made.spec.roles[0], asked.picture, asked.index
    if picture is not None:
        require_picture(made.spec, picture)
    players = _players(made, mine, asked.policy, playing.opponents)
    task = made.task(playing.split, index)
    try:
        record = _play(made, task, players)
    except (KeyboardInterrupt, EOFError) as left:
        so_far = ", ".join(f"{role} {value:.4f}" for role, value in made.returns.items())
        typer.echo(f"\nYou left before the end. Earned so far: {so_far or 'nothing'}.")
        raise typer.Exit(INTERRUPTED * isinstance(left, KeyboardInterrupt)) from None
    _show_end(made, record)
    if asked.rollouts is not None:
        others = {other: name for other, name in players.items() if other != mine}
        origin = RolloutOrigin(
            "play", policy=asked.policy, opponents=others, options=playing.options, seed=index
        )
        RolloutLog(asked.rollouts).append("play", [record_play(origin, record, mine)])
    if players[mine] != _ORACLE:
        _show_oracle(made, record, players, mine)
    if picture is not None:
        save_picture(made, record, picture, asked.policy)
        typer.echo(f"picture: {picture}")


def _players(world: World, mine: str, who: str, opponents: Mapping[str, str]) -> dict[str, str]:
    """Return by role the baseline that plays it, or `human`.

    Raises:
        OptionError: if a role is not the world's, the one that is played has an opponent's player,
            or a baseline is unknown.
    """
    roles, spec = list(world.spec.roles), world.spec
    for name in (mine, *opponents):
        if name not in roles:
            raise OptionError(f"{spec.id} has the roles {roles}, got {name!r}")
    if mine in opponents:
        raise OptionError(f"{mine} is the role you play: name who plays it with --policy")
    players = {**opponents_of_one(spec, opponents, mine), mine: who}
    for name in players.values():
        if name != HUMAN:
            policy(spec.id, name)
    return players


def _play(world: World, task: Task, players: Mapping[str, str]) -> PlayedEpisode:
    """Play an episode and show it as it goes."""

    def reply(player: str, world: World, turn: Turn, rng: np.random.Generator) -> str:
        _show_answer(turn)
        typer.secho(f"[{turn.role}]", fg="cyan", bold=True)
        typer.echo(turn.text)
        if player == HUMAN:
            return _ask(world)
        said = policy(world.spec.id, player)(world, turn, rng)
        typer.secho(f"> {said}", fg="green")
        return said

    played = play_episode(
        world, task, {role: partial(reply, player) for role, player in players.items()}
    )
    if played.turns[-1].text:
        typer.echo(played.turns[-1].text)
    _show_answer(played.turns[-1])
    return played


def _ask(world: World) -> str:
    """Read one reply.

    Raises:
        EOFError: at the end of the input.
    """
    form = world.reply_form
    sends = "Enter sends" if form.single_line else "an empty line sends"
    typer.secho(f"Form: {form.words} ({sends})", dim=True)
    lines: list[str] = []
    while True:
        try:
            line = input("> ")
        except EOFError:
            if not lines:
                raise
            line = ""
        if line:
            lines.append(line)
        if lines and (form.single_line or not line):
            return "\n".join(lines)


def _show_answer(turn: Turn) -> None:
    """Show what a reply earned, and whether it was well-formed."""
    for role, terms in turn.terms.items():
        parts = ", ".join(f"{name} {value:+.4f}" for name, value in terms.items())
        typer.secho(f"{role}: reward {turn.rewards[role]:+.4f} = {parts}", fg="yellow")
    formed = turn.metrics.get("well_formed")
    if not turn.terms and formed is not None:
        state = "well-formed" if formed else "malformed"
        typer.secho(f"{state}; no reward yet", fg="yellow", dim=bool(formed))


def _show_end(world: World, record: PlayedEpisode) -> None:
    for role, value in record.returns.items():
        stopped = record.turns[-1].stop_reason
        typer.secho(f"{role} earned {value:.4f}; {stopped}", fg="yellow", bold=True)
        best = world.optimum(record.task).get(role)
        if best is not None:
            kind = "optimum" if best.exact else "bound"
            typer.secho(f"  at most {best.value:.4f} can be expected ({kind})", fg="yellow")
    for name, number in record.metrics.items():
        typer.echo(f"  {name}: {number:g}")


def _show_oracle(
    world: World, record: PlayedEpisode, players: Mapping[str, str], role: str
) -> None:
    """Show what the oracle replies and earns in a role, against the same scripted opponents.

    Where people played other roles, those are played by their usual scripts.
    """
    others = {
        other: scripted_opponent(world.spec.id, other) if player == HUMAN else player
        for other, player in players.items()
    }
    policies: dict[str, Policy] = {
        other: policy(world.spec.id, player) for other, player in {**others, role: _ORACLE}.items()
    }
    best = play_episode(world.fork(), record.task, policies)
    declared, first = best_known(world), world.spec.roles[0]
    if declared is not None and declared.policy == _ORACLE and role == first:
        knows = f"which reads only what {first} is shown ({declared.method})"
    else:
        knows = "which may use the Task's hidden answer"
    typer.secho(f"The oracle, {knows}:", fg="cyan", bold=True)
    for turn, reply in zip(best.turns, best.replies, strict=False):
        if turn.role == role:
            typer.secho(f"> {reply}", fg="green")
    ((theirs,), (yours,)) = (Earned.of_played([each], role).used_T for each in (best, record))
    on_average = " on average over outcomes" if expected_return(role) in best.metrics else ""
    typer.secho(
        f"{role} earns {theirs:.4f}{on_average}; this episode's replies {yours:.4f}",
        fg="yellow",
        bold=True,
    )
