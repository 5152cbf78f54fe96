"""Replies that go round in circles until they are cut off."""

_TAIL = 600
"""Characters at the end of a reply in which a repeated passage is looked for."""
_TIMES = 3
_LEAST = 8
"""Fewest characters of all repetitions together: `...` and `000` are no circle."""


def repeats_itself(reply: str) -> bool:
    """Whether a reply ends with one passage three times or more, as in `0.99999999`.

    A longer limit would let it go on in the same way.
    """
    tail = reply[-_TAIL:]
    for period in range(1, len(tail) // _TIMES + 1):
        length = max(_TIMES * period, _LEAST)
        if length <= len(tail) and tail[-length:-period] == tail[len(tail) - length + period :]:
            return True
    return False
