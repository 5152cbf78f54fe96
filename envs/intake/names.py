"""Names of fields: those that are not known, and which ones were meant."""

from collections.abc import Iterable, Iterator, Mapping

from tokengym.envs.core.errors import did_you_mean

_SHOWN = 20
ALIKE = 0.75
"""Similarity from which a field may be a misspelt one."""


def name_unknown(names: Iterable[str], known: Iterable[str]) -> str:
    """Name fields that are not known, each with the one that was meant if there is one like it.

    Args:
        names: the fields of some data.
        known: the fields that are read; one that is there as well was not meant.

    Returns:
        a list for people; empty if all are known.
    """
    there, read = dict.fromkeys(names), set(known)
    unknown = [name for name in there if name and name not in read]
    free = sorted(read - there.keys())
    shown = []
    for name in unknown[:_SHOWN]:
        shown.append(f"{name[:60]}{did_you_mean(name.lower(), free, ALIKE)}")
    more = len(unknown) - len(shown)
    return ", ".join([*shown, f"and {more} more"] if more > 0 else shown)


class Watched(Mapping[str, object]):
    """A row that remembers which fields were asked for, there or not.

    Attributes:
        asked: these fields.
    """

    def __init__(self, row: Mapping[str, object]) -> None:
        self._row = row
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> object:
        """Return the value of a field."""
        self.asked.add(name)
        return self._row[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the fields, without marking any as read."""
        return iter(self._row)

    def __len__(self) -> int:
        """Return the number of fields."""
        return len(self._row)


def repeated(names: Iterable[str]) -> str | None:
    """Return the first name that comes twice; unnamed columns do not count."""
    seen: set[str] = set()
    for name in names:
        if name in seen and name:
            return name
        seen.add(name)
    return None
