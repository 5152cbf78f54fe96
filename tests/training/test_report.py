"""Laws of the report: it shows every figure, escapes what it quotes, and draws what it is given."""

from pathlib import Path

from tokengym.agents.evaluate import Estimate
from tokengym.agents.tinker.training.evaluation import Evaluation
from tokengym.agents.tinker.training.report import write_report
from tokengym.agents.tinker.training.settings import preset
from tokengym.agents.tinker.training.watch import StepRow

BEFORE = Evaluation(Estimate(0.61, 0.6, 0.62, 100), {"malformed": 0.25}, [(0.1, 0.4), (0.9, 0.6)])
AFTER = Evaluation(Estimate(0.81, 0.8, 0.82, 100), {"malformed": 0.0}, [(0.1, 0.2), (0.9, 0.8)])
STEPS = [StepRow(step, 0.6 + step / 100, 0.1, 0.01, 0.0, 500.0, 0.5, {}) for step in range(20)]
LINES = {"oracle": Estimate(0.9, 0.89, 0.91, 100), "<b>": Estimate(0.1, 0.1, 0.1, 100)}


def test_every_figure_is_on_the_page_and_nothing_is_markup(tmp_path: Path) -> None:
    warning = "Collapsed <here>."
    write_report(tmp_path, preset("forecast"), STEPS, LINES, BEFORE, AFTER, warning)
    page = (tmp_path / "report.html").read_text()
    for shown in ("0.6100", "0.8100", "0.9000", "0.2500", "&lt;b&gt;", "Collapsed &lt;here&gt;."):
        assert shown in page
    assert "<b>" not in page
    assert (tmp_path / "reward.png").stat().st_size > 10_000


def test_a_run_without_steps_or_an_end_is_reported_too(tmp_path: Path) -> None:
    write_report(tmp_path, preset("energy"), [], {}, Evaluation(BEFORE.returns), None)
    assert "before training" in (tmp_path / "report.html").read_text()
