"""Pictures of episodes."""

from tokengym.envs.warehouse.render.figures import render_episode

__all__ = ["render_episode"]
