"""The limit of a reply, and what scripted policies' replies take of it."""

from collections.abc import Mapping

from tokengym.envs.core.errors import OptionError
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
    names = [name for name in policies if name in ("random", "oracle", imitated)]
    longest = max(_longest(world, policies, codec, name) for name in names)
    return max(_LEAST, round(_ROOM * longest))


def check_fits(
    world: World, policies: Mapping[str, Policy], codec: Codec, name: str, limit: int
) -> None:
    """Refuse a limit that would cut off what a policy is to imitate.

    Args:
        world: the world.
        policies: its scripted policies by name.
        codec: how replies are written.
        name: which of them is imitated.
        limit: tokens of a reply.

    Raises:
        OptionError: if one of its replies is longer.
    """
    longest = _longest(world, policies, codec, name)
    if longest > limit:
        raise OptionError(
            f"--max-tokens {limit} cuts off replies like those of {name!r}, which take up to "
            f"{longest} tokens; name a larger limit"
        )


def _longest(world: World, policies: Mapping[str, Policy], codec: Codec, name: str) -> int:
    longest = 0
    for task in world.first_tasks("train", _TASKS):
        rng = generator("reply length", name, task.fingerprint)
        record = play(world.fork(), task, policies[name], rng)
        longest = max(longest, *(len(codec.write(reply)) for reply in record.replies))
    return longest
