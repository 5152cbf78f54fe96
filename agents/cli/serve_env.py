"""`tokengym serve-env`: a world as an OpenEnv server, until it is stopped."""

from pathlib import Path
from typing import Annotated

import typer

from tokengym.agents.cli.extras import require_extra
from tokengym.agents.cli.options import Level, WorldName, WorldOptions
from tokengym.agents.loopback import local_address
from tokengym.agents.settings import name_texts, name_values
from tokengym.envs.adapters.start import Rollouts


def serve_env(
    world: WorldName,
    level: Level = None,
    role: Annotated[str | None, typer.Option(help="role to play; others are opponents")] = None,
    opponent: Annotated[list[str] | None, typer.Option(help="role=baseline")] = None,
    option: WorldOptions = None,
    split: Annotated[str, typer.Option(help="where a reset draws Tasks from")] = "train",
    reward: Annotated[
        str, typer.Option(help="return, or share: of what the Task's optimum earns")
    ] = "return",
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="port; 0 for any free one")] = 8000,
    sessions: Annotated[int, typer.Option(help="limit on simultaneous clients")] = 64,
    package: Annotated[
        Path | None,
        typer.Option(help="write an OpenEnv package, as `openenv init` does, to this folder"),
    ] = None,
) -> None:
    """Serve a world to OpenEnv clients, each with its own world."""
    require_extra("openenv", "tokengym serve-env")
    import uvicorn

    from tokengym.agents.adapters import openenv, openenv_package

    settings = {
        "role": role,
        "opponents": name_texts(opponent or [], "--opponent"),
        **name_values(option or [], "--option"),
    }
    rollouts = Rollouts(world, level, **settings)
    if package is not None:
        openenv_package.write_package(package, rollouts, settings, reward)
        typer.echo(f"wrote {package / 'openenv.yaml'}")
        return
    app = openenv.build_app(rollouts, split=split, reward=reward, sessions=sessions, host=host)
    made = rollouts.world
    typer.echo(f"{made.spec.id}, level {made.level}, role {rollouts.role}: {sessions} clients")
    uvicorn.run(
        app,
        host=local_address(host),
        port=port,
        access_log=False,
        # A trainer may keep its clients busy for long: only one that is silent for minutes is gone.
        ws_ping_interval=30.0,
        ws_ping_timeout=180.0,
    )
