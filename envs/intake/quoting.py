"""Values in errors: their beginnings, whatever they hold."""

_CHARACTERS = 60


def quoted(value: object) -> str:
    """Return the start of a value, for an error."""
    try:
        text = repr(value)
    except RecursionError:
        text = f"a {type(value).__name__} nested too deep"
    return text if len(text) <= _CHARACTERS else text[:_CHARACTERS] + "..."
