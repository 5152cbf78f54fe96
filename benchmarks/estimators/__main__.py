"""Compute the study, and print it or write it onto its page, with the data and a figure beside it.

    python -m benchmarks.estimators                                  print the tables
    python -m benchmarks.estimators --markdown docs/estimators.md    write them, .jsonl and .png
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from benchmarks.estimators.claims import CLAIMS, Claim, forecast_after
from benchmarks.estimators.schemes import BY_GROUP
from benchmarks.estimators.study import PARTS, as_json
from tokengym.agents.analysis.charts import BLUE, GREY, RED, chart, legend
from tokengym.agents.analysis.markdown import markdown_table, write_block

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Data = Mapping[str, Any]
"""A row of the study as plain data."""
TABLES = ("one prompt", "several prompts", "lengths", "turns", "small policy", "off the policy")
BLOCK = "benchmarks.estimators, {}"
"""Name of a block of the page, by its table."""
CLAIMS_HEADER = ("source", "what is compared", "predicted", "measured", "agree")
_MANY = 1000.0
"""Rollouts beyond which a number says no more than that they are too many."""


def claim_data() -> list[Data]:
    """Return all claims, predicted and measured."""
    found = [claim for claims in CLAIMS for claim in claims()]
    return [{"table": "claims", **claim._asdict(), "agrees": claim.agrees} for claim in found]


def claim_table(rows: Sequence[Data]) -> str:
    """Return the table of claims."""
    cells = [
        (row["source"], row["quantity"], _number(row["predicted"]), _number(row["measured"]),
         "yes" if row["agrees"] else "no")
        for row in rows
    ]  # fmt: skip
    return markdown_table(CLAIMS_HEADER, cells)


def study_table(rows: Sequence[Data]) -> str:
    """Return a table of the study: a row for each estimator, cells by group size in order.

    Rows on several questions are one: mean factor, lowest cosine, mean of the rollouts.
    """
    sizes = sorted({row["G"] for row in rows})
    together: dict[tuple[str, str], dict[int, list[Data]]] = {}
    for row in rows:
        replies = row["replies"].split(", ", 1)[-1] if "question" in row["replies"] else row[
            "replies"
        ]
        by_size = together.setdefault((replies, row["estimator"]), {size: [] for size in sizes})
        by_size[row["G"]].append(row)
    factors = [name for name in ("factor 1", "factor 2") if name in rows[0]] or ["factor"]
    header = ["replies", "estimator", *factors, "cosine", "variance", "rollouts"]

    def cell(found: Mapping[int, Sequence[Data]], name: str, over: Callable[..., float]) -> str:
        return ", ".join(
            _number(float(over([row[name] for row in found[size]])), name)
            + _interval(found[size], name)
            for size in sizes
        )

    cells = [
        (*key, *(cell(found, name, np.mean) for name in factors), cell(found, "cosine", min),
         cell(found, "variance", np.mean), cell(found, "needed", np.mean))
        for key, found in together.items()
    ]  # fmt: skip
    return markdown_table(header, cells)


def figure() -> "Figure":
    """Draw what is stated after training on single outcomes by the true probability, G = 4."""
    true_P = np.linspace(0.04, 0.96, 24)
    drawn, axes = chart(
        "Trained on single outcomes", "probability of the event", "forecast after training"
    )
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.9, ls="--", label="honest")
    for name, colour in (("centred by group", BLUE), ("standardised by group", RED)):
        stated = [forecast_after(float(true), BY_GROUP[name], 4) for true in true_P]
        axes.plot(true_P, stated, color=colour, marker="o", ms=3, lw=1.2, label=name)
    legend(axes)
    return drawn


def main(arguments: Sequence[str] | None = None) -> None:
    """Print or write the study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--markdown", type=Path, help="the page; data and figure go beside it")
    page: Path | None = parser.parse_args(arguments).markdown
    torch.set_num_threads(1)  # the matrices are small
    rows: list[Data] = [as_json(row) for part in PARTS for row in part()]
    claims = claim_data()
    tables = {name: study_table([r for r in rows if r["table"] == name]) for name in TABLES}
    tables["claims"] = claim_table(claims)
    for name, table in tables.items():
        print(f"{name}\n\n{table}\n")
        if page is not None:
            write_block(page, BLOCK.format(name), table)
    if page is not None:
        lines = [json.dumps(row, ensure_ascii=False) for row in (*rows, *claims)]
        page.with_suffix(".jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        figure().savefig(page.with_suffix(".png"), dpi=150)


def _number(value: float, name: str = "") -> str:
    """Return a number as it is published, with no sign on what rounds to 0."""
    if name == "needed" and not value <= _MANY:
        return f"over {_MANY:,.0f}"
    digits = 3 if name == "cosine" or not name else 1 if name == "needed" else 2
    return f"{round(value, digits) + 0.0:.{digits}f}"


def _interval(found: Sequence[Data], name: str) -> str:
    error = found[0].get(f"{name} error", 0.0)
    return f" ± {error:.3f}" if error else ""


if __name__ == "__main__":
    main()
