"""`tokengym serve-env`: a world as an OpenEnv server, until it is stopped."""

import os
from dataclasses import dataclass
from typing import Any

import typer

from tokengym.agents.cli.options import Playing, WorldName
from tokengym.agents.service.config import KEY_VARIABLE, make_api_key
from tokengym.agents.settings import Settings, option
from tokengym.agents.settings.commands import said_of, takes
from tokengym.envs.rollouts import Rollouts
from tokengym.installed import require_extra
from tokengym.loopback import is_loopback, local_address


@dataclass(frozen=True)
class _Serving(Settings):
    """The server.

    Attributes: see their help.
    """

    host: str = option("127.0.0.1", "address to listen on")
    port: int = option(8000, "port; 0 for any free one")
    sessions: int = option(64, "limit on simultaneous clients")


def key_for(host: str) -> str:
    """Return the key that clients need, made here if none is given and others can reach `host`."""
    key = os.environ.get(KEY_VARIABLE, "")
    if not is_loopback(host):
        typer.echo("It listens to the network: whoever has the key can use it.", err=True)
        if not key:
            key = make_api_key()
            typer.echo(f"Clients need this key: {key}", err=True)
    return key


@takes(Playing, _Serving)
def serve_env(world: WorldName, *, said: dict[str, Any]) -> None:
    """Serve a world to OpenEnv clients, each with its own copy.

    If the environment variable TOKENGYM_SERVICE_KEY has a key, a client needs it, as with `serve`.
    On an address that others can reach a key is made where none is given.
    """
    require_extra("openenv", "tokengym serve-env")
    import uvicorn

    from tokengym.agents.adapters.openenv import build_app

    playing, asked = said_of(Playing, said), said_of(_Serving, said)
    settings = {"role": playing.role, "opponents": playing.opponents, **playing.options}
    rollouts = Rollouts(world, playing.level, **settings)
    app = build_app(
        rollouts,
        split=playing.split,
        sessions=asked.sessions,
        host=asked.host,
        key=key_for(asked.host),
    )
    made = rollouts.world
    typer.echo(
        f"{made.spec.id}, level {made.level}, role {rollouts.role}: {asked.sessions} clients"
    )
    uvicorn.run(
        app,
        host=local_address(asked.host),
        port=asked.port,
        access_log=False,
        # A trainer may keep its clients busy for long: only one that is silent for minutes is gone.
        ws_ping_interval=30.0,
        ws_ping_timeout=180.0,
    )
