"""Count words that readers stumbled over: `check` fails above a ceiling of `.ci/prose.toml`.

    python .ci/prose.py           the patterns above their ceilings, with the lines
    python .ci/prose.py --lower   lower each ceiling to today's count; none ever rises

Pages count whole; of code the strings and comments, and for `[names]` the identifiers.
"""

import re
import sys
import tokenize
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CEILINGS = ROOT / ".ci" / "prose.toml"


def read() -> dict[str, list[tuple[str, str]]]:
    """Return texts and names, each with its file and line."""
    pieces: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        lines = page.read_text(encoding="utf-8").splitlines() if page.stem != "CHANGELOG" else ()
        pieces["text"] += [(f"{page.name}:{n}", line) for n, line in enumerate(lines, 1)]
    for folder in ("agents", "envs", "rewards", "src", "examples"):
        for file in (ROOT / folder).rglob("*.py"):
            with file.open("rb") as code:
                for token in tokenize.tokenize(code.readline):
                    group = "names" if token.type == tokenize.NAME else "text"
                    if token.type in (tokenize.NAME, tokenize.STRING, tokenize.COMMENT):
                        where = f"{file.relative_to(ROOT)}:{token.start[0]}"
                        pieces[group].append((where, token.string))
    return pieces


def main() -> int:
    """Compare every count with its ceiling; returns 1 where one is above."""
    table, status, pieces = CEILINGS.read_text(encoding="utf-8"), 0, read()
    for group, ceilings in tomllib.loads(table).items():
        for pattern, ceiling in ceilings.items():
            rule = re.compile(pattern if group == "text" else rf"^{pattern}$")
            hits = [(where, text) for where, text in pieces[group] for _ in rule.finditer(text)]
            if len(hits) > ceiling:
                status = 1
                print(f"{pattern}: {len(hits)}, at most {ceiling}; the last of them:")
                print(
                    *(f"  {where} {' '.join(text.split())[:70]}" for where, text in hits[-12:]),
                    sep="\n",
                )
            fallen = min(len(hits), ceiling)
            table = table.replace(f"'{pattern}' = {ceiling}", f"'{pattern}' = {fallen}")
    if "--lower" in sys.argv:
        CEILINGS.write_text(table, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
