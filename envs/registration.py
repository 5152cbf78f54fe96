"""Registering the catalogue with Gymnasium, as strings only."""

import gymnasium

from tokengym.envs.registry import specs


def register_all() -> None:
    """Register every id of the catalogue that is not yet registered."""
    for row in specs().values():
        if row.id not in gymnasium.registry:
            gymnasium.register(
                id=row.id,
                entry_point="tokengym.envs.adapters.gymnasium_env:TextEnv",
                vector_entry_point="tokengym.envs.adapters.vector_env:TextVectorEnv",
                kwargs={"world": row.id},
            )
