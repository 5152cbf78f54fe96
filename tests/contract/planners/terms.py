"""Reading the clauses of a shift from the sentences of its prompt."""

import re
from typing import Any

_NAMES = r"O\d+(?:(?:, | and )O\d+)*"
_TOGETHER = r"one customer|One customer|consignment|together: for|until all are|is not back, none"
_FIRST = r"first trip|opening trip|before O\d+ does|before anything else"


def read_terms(text: str) -> list[dict[str, Any]]:
    """Read the clauses of a prompt in their plain form, without their words."""
    found = re.search(r"These terms apply today:\n(.+)\nNone of them refuses", text, re.S)
    return [read_term(line) for line in found[1].splitlines()] if found else []


def read_term(line: str) -> dict[str, Any]:
    """Read the clause that a line states."""
    lists = [re.findall(r"O\d+", names) for names in re.findall(_NAMES, line)]
    if "$" in line:
        fine = int(re.findall(r"\$(\d+)", line)[0])
        if re.search(_FIRST, line):
            return {"kind": "first", "order": min(lists[0]), "fine": fine}
        one, other = lists
        return {"kind": "apart", "orders": one, "others": other, "fine": fine}
    if factor := re.search(r"(\d+) times", line):
        return {"kind": "gold", "orders": lists[0], "factor": int(factor[1])}
    if re.search(_TOGETHER, line):
        return {"kind": "customer", "orders": lists[0]}
    return _closure(line)


def _closure(line: str) -> dict[str, Any]:
    times = [int(number) for number in re.findall(r"(?<![\w-])\d+", line)]
    length = re.search(r"(\d+) units of time", line)
    if length:
        times.remove(int(length[1]))
        times.append(times[0] + int(length[1]))
    start, end = [0, *times][-2:]
    (concerned,) = {*re.findall(r"\b[OA]\d+", line)} or {""}
    if concerned.startswith("O"):
        return {"kind": "goods", "order": concerned, "end": end}
    aisle = {"kind": "aisle", "aisle": concerned} if concerned else {"kind": "dock"}
    return {**aisle, "start": start, "end": end}
