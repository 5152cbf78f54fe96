"""forecast:easy. An example of the form: its author knew the solver, so it is on no ladder."""

import re


def reply(texts: list[str], replies: list[str]) -> str:
    """State the share of a count such as `7 of 12`, drawn to one half; else one half."""
    counts = re.findall(r"(\d+) of (\d+)", texts[0])
    done, tried = map(int, counts[-1]) if counts else (0, 0)
    return f"Probability: {(done + 1) / (tried + 2):.3f}"
