"""One level for each grammar of replies, which is told by what a malformed reply is answered."""

import re
from pathlib import Path

from tokengym.envs.registry import spec

GOLDEN = Path(__file__).parents[1] / "golden" / "prompts"
WORLDS = ("energy", "forecast", "warehouse", "disruption")


def expected(world: str, level: str) -> str:
    """The form that a level asks for in its golden transcript, up to the first number.

    Empty where an episode ends with the reply; a level without a transcript is one of its own.
    """
    golden = GOLDEN / f"{world}-{level}-terse.txt"
    if not golden.is_file():
        return level
    found = re.search(r"Expected: ([^\n\d]*)", golden.read_text(encoding="utf-8"))
    return found[1] if found else ""


LEVELS = [(world, level) for world in WORLDS for level in spec(world).levels]
OF_EACH_GRAMMAR = list({(case[0], expected(*case)): case for case in reversed(LEVELS)}.values())[
    ::-1
]
"""World and level; of the levels with one grammar the first."""
