"""Laws of the report: it shows every figure, escapes what it quotes, and draws what it is given."""

from dataclasses import replace
from pathlib import Path

from tokengym.agents.analysis import report
from tokengym.agents.analysis.evaluate import Estimate
from tokengym.agents.analysis.evaluation import Evaluation
from tokengym.agents.analysis.report import write_report
from tokengym.agents.training.config import preset
from tokengym.agents.training.monitor import StepRow

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


def test_every_trained_role_has_its_own_curve_and_tables(tmp_path: Path) -> None:
    settings = preset("disruption", self_play=True)
    rows = [
        StepRow(
            step,
            0.1,
            0.0,
            0.0,
            0.0,
            1.0,
            1.0,
            {"env/all/predictor/reward": 0.1 * step, "env/all/challenger/reward": -0.1 * step},
        )
        for step in range(5)
    ]
    challenger = Evaluation(Estimate(0.0375, 0.03, 0.04, 7), {"malformed": 0.0625})
    before = replace(BEFORE, stated=(), others={"challenger": challenger})
    after = replace(AFTER, stated=(), others={"challenger": challenger})
    others = {"challenger": {"noisy": Estimate(-0.0425, -0.05, -0.04, 7)}}
    sides = report.sides(settings, rows, LINES, before, after, others)
    assert [side.rewards[-1] for side in sides] == [0.4, -0.4]
    write_report(tmp_path, settings, rows, LINES, before, after, other_references=others)
    page = (tmp_path / "report.html").read_text()
    assert "challenger, held out against model predictor" in page
    for shown in ("0.6100", "0.8100", "0.0375", "-0.0425", "0.0625"):
        assert shown in page


def test_a_supervised_run_shows_its_loss_and_no_rewards(tmp_path: Path) -> None:
    settings = preset("disruption", sft=True)
    rows = [StepRow(k, 0.0, 0.0, 0.0, 0.0, 9.0, 1.0, {"train/nll": 2.0 - k}) for k in range(3)]
    (side,) = report.sides(settings, rows, LINES, BEFORE, AFTER, {})
    assert not side.rewards
    write_report(tmp_path, settings, rows, LINES, BEFORE, AFTER)
    page = (tmp_path / "report.html").read_text()
    assert "3 steps of 64 demonstrations" in page
    assert "27 tokens trained on" in page
