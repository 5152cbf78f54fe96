"""The default limit of a reply, measured on the replies of scripted policies."""

from collections.abc import Mapping

from tokengym.envs.core.rollout import Policy, play
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import Codec

_TASKS = 8
_ROOM = 1.5
"""A reply may be so many times as long as the longest that a script gave."""
_LEAST = 16


def longest_reply(
    world: World, policies: Mapping[str, Policy], codec: Codec, imitated: str | None = None
) -> int:
    """Return a limit in tokens that leaves room for every well-formed reply.

    Args:
        world: the world.
        policies: its scripted policies by name, `random` and `oracle` among them.
        codec: how replies are written.
        imitated: who else's replies have to fit, if it is one of them.
    """
    longest = 0
    for name in (one for one in policies if one in ("random", "oracle", imitated)):
        for task in world.first_tasks("train", _TASKS):
            rng = generator("reply length", name, task.fingerprint)
            record = play(world.fork(), task, policies[name], rng)
            longest = max(longest, *(len(codec.write(reply)) for reply in record.replies))
    return max(_LEAST, round(_ROOM * longest))
