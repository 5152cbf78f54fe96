"""The picture of an episode."""

from importlib import import_module

from matplotlib.figure import Figure

from tokengym.envs.core.play import PlayedEpisode, replay
from tokengym.envs.core.world import World
from tokengym.envs.warehouse import games
from tokengym.envs.warehouse.world import WarehouseWorld


def render_episode(world: World, record: PlayedEpisode, title: str) -> Figure:
    """Return the picture of a Record of any game."""
    world = WarehouseWorld.cast(world)
    session = world.compile(record.task).open()
    for step in replay(world, record):
        session = step.after.session
    drawn = import_module(f"{games.__name__}.{session.compiled.game.folder}.picture")
    picture: Figure = drawn.picture(session, title)
    return picture
