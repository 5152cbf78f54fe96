"""How objects appear in a notebook. All text is escaped: a model may have written it."""

from collections.abc import Iterable, Mapping
from html import escape

_LONGEST = 60


def shorten(text: str, longest: int = _LONGEST) -> str:
    """Return `text`, cut to `longest` characters; a `…` stands for the rest."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def html_table(title: str, rows: Iterable[Iterable[object]], header: Iterable[str] = ()) -> str:
    """Return a table; line breaks in cells are kept."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        '<table style="text-align: left; white-space: pre-wrap">'
        f"<caption>{escape(title)}</caption>"
        f"{f'<tr>{head}</tr>' if head else ''}{body}</table>"
    )


def html_fields(title: str, fields: Mapping[str, object]) -> str:
    """Return a table of names and values."""
    return html_table(title, fields.items())


def _cell(value: object) -> str:
    return f"<td>{escape(str(value))}</td>"
