"""The reports that folders and files hold, as plain JSON for pages."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tokengym.agents.certify.certificate import read_certificate
from tokengym.agents.certify.page import certificate_report
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.report import saved_report
from tokengym.agents.reports.report import Report
from tokengym.agents.training.folder.run import RunFolder, is_run
from tokengym.agents.viewer.run_report import run_report
from tokengym.agents.viewer.sweep import saved_sweep

_OUTCOME = "outcome.json"
_KNOWN: Mapping[str, Callable[[Path], Report | None]] = {
    _OUTCOME: lambda folder: run_report(RunFolder(folder)),
    "evaluation.json": lambda folder: saved_report(EvaluationFolder(folder)),
    "sweep.json": saved_sweep,
    "certificate.json": lambda folder: certificate_report(read_certificate(folder)),
}
"""By the file that says so, how the report of its folder is laid out."""


def report_file(path: Path) -> Path | None:
    """Return the file that a report is made from: of a folder, or of `tokengym ties --json`."""
    if path.is_dir():
        # The evaluation of a run under way is no report of it.
        names = (_OUTCOME,) if is_run(path) else _KNOWN
        return next((file for name in names if (file := path / name).is_file()), None)
    return path if path.suffix == ".json" and path.is_file() and _saved(path) else None


def read_report(file: Path) -> dict[str, Any] | None:
    """Return a report as plain JSON; `None` while there is none yet.

    Args:
        file: what `report_file` returned.

    Raises:
        TokengymError: if it is damaged.
    """
    if file.name not in _KNOWN:
        return _saved(file)
    report = _KNOWN[file.name](file.parent)
    return None if report is None else report.to_dict()


def _saved(file: Path) -> dict[str, Any] | None:
    try:
        data = json.loads(file.read_bytes())
    except ValueError:
        return None
    report = data.get("report") if isinstance(data, dict) else None
    return report if isinstance(report, dict) and {"lines", "parts"} <= report.keys() else None
