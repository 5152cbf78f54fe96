"""How objects appear in a line."""

_LONGEST = 60


def shorten(text: str, longest: int = _LONGEST) -> str:
    """Return `text`, cut to `longest` characters; a `…` stands for the rest."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
