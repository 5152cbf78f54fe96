"""Compute the study, and print it or write it onto its page, with the data and a figure beside it.

python -m benchmarks.estimators                                  print the tables
python -m benchmarks.estimators --markdown docs/estimators.md    write them, .jsonl and .png
"""

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from benchmarks.estimators.claims import CLAIMS, forecast_after
from benchmarks.estimators.schemes import BY_GROUP
from benchmarks.estimators.study import PARTS, Data
from benchmarks.pages import write_block
from tokengym.agents.reports.markdown import markdown_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLES = ("one prompt", "several prompts", "lengths", "turns", "small policy", "off the policy")
BLOCK = "benchmarks.estimators, {}"
"""Name of a block of the page, by its table."""
CLAIMS_HEADER = ("source", "what is compared", "predicted", "measured", "agree")
_MANY = 1000.0
"""Rollouts beyond which a number says no more than that they are too many."""


def claim_table(rows: Sequence[Data]) -> str:
    """Return the table of claims."""
    cells = [
        (
            row["source"],
            row["quantity"],
            *(_number(row[name]) for name in ("predicted", "measured")),
        )
        for row in rows
    ]
    agree = ["yes" if row["agrees"] else "no" for row in rows]
    return markdown_table(CLAIMS_HEADER, [(*c, a) for c, a in zip(cells, agree, strict=True)])


def study_table(rows: Sequence[Data]) -> str:
    """Return a table of the study: a row for each estimator, cells by group size in order.

    Rows on several questions are one: mean factor, lowest cosine, means of the rest.
    """
    together: dict[tuple[str, str], dict[int, list[Data]]] = {}
    for row in rows:
        replies = re.sub(r"question \d, ", "", row["replies"])
        by_size = together.setdefault((replies, row["estimator"]), {})
        by_size.setdefault(row["G"], []).append(row)
    factors = [name for name in rows[0] if name in ("factor 1", "factor 2")] or ["factor"]
    columns = [*factors, "cosine", "variance", "needed"]
    cells = [
        (*key, *(", ".join(_cell(found, name) for found in by_size.values()) for name in columns))
        for key, by_size in together.items()
    ]
    return markdown_table(("replies", "estimator", *columns[:-1], "rollouts"), cells)


def figure() -> "Figure":
    """Draw what is stated after training on single outcomes by the true probability, G = 4."""
    from matplotlib.figure import Figure

    true_P = np.linspace(0.04, 0.96, 24)
    drawn = Figure(figsize=(5.2, 3.4), layout="tight")
    axes = drawn.subplots()
    axes.plot([0, 1], [0, 1], color="#8a8f98", lw=0.9, ls="--", label="honest")
    for name, colour in (("centred by group", "#1f5f99"), ("standardised by group", "#c0392b")):
        stated = [forecast_after(float(true), BY_GROUP[name], 4) for true in true_P]
        axes.plot(true_P, stated, color=colour, marker="o", ms=3, lw=1.2, label=name)
    axes.set(xlabel="probability of the event", ylabel="forecast after training")
    axes.legend(loc="lower right", fontsize=8, frameon=False)
    return drawn


def main(arguments: Sequence[str] | None = None) -> None:
    """Print or write the study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--markdown", type=Path, help="the page; data and figure go beside it")
    page: Path | None = parser.parse_args(arguments).markdown
    torch.set_num_threads(1)  # the matrices are small
    rows = [row for part in PARTS for row in part()]
    claims = [claim for claims in CLAIMS for claim in claims()]
    told = [{"table": "claims", **each._asdict(), "agrees": each.agrees} for each in claims]
    tables = {name: study_table([r for r in rows if r["table"] == name]) for name in TABLES}
    for name, table in {**tables, "claims": claim_table(told)}.items():
        print(f"{name}\n\n{table}\n")
        if page is not None:
            write_block(page, BLOCK.format(name), table)
    if page is not None:
        lines = [f"{json.dumps(row, ensure_ascii=False)}\n" for row in (*rows, *told)]
        page.with_suffix(".jsonl").write_text("".join(lines), encoding="utf-8")
        figure().savefig(page.with_suffix(".png"), dpi=150)


def _cell(found: Sequence[Data], name: str) -> str:
    """Return a figure of an estimator at one group size, with its interval if it has one."""
    values = [row[name] for row in found]
    error = found[0].get(f"{name} error", 0.0)
    shown = _number(min(values) if name == "cosine" else float(np.mean(values)), name)
    return f"{shown} ± {error:.3f}" if error else shown


def _number(value: float, name: str = "") -> str:
    """Return a number as it is published, with no sign on what rounds to 0."""
    if name == "needed" and not value <= _MANY:
        return f"over {_MANY:,.0f}"
    digits = {"": 3, "cosine": 3, "needed": 1}.get(name, 2)
    return f"{round(value, digits) + 0.0:.{digits}f}"


if __name__ == "__main__":
    main()
