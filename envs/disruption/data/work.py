"""A Work: one bibliographic record as a source gives it, before anything is computed from it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """One bibliographic record.

    Attributes:
        id: OpenAlex id without its address, such as `W2741809807`.
        title: title, possibly empty.
        abstract: abstract, possibly empty.
        year: publication year.
        type: such as `article`.
        venue: id of the journal or conference, the empty string if unknown.
        field: primary field, the empty string if unknown.
        cited_by_count: citations to date.
        references: ids of the works it cites.
    """

    id: str
    title: str
    abstract: str
    year: int
    type: str
    venue: str
    field: str
    cited_by_count: int
    references: tuple[str, ...]
