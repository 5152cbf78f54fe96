"""Figures of pictures have the size and the margins that are asked for."""

import pytest

pytest.importorskip("matplotlib", reason="needs the extra `tinker`")

from matplotlib.layout_engine import ConstrainedLayoutEngine

from tokengym.envs.core.palette import figure


def test_margins_are_inches_on_each_side() -> None:
    made = figure(
        8.0, 5.0, "A day", margins={"left": 1.0, "right": 0.5, "top": 0.75, "bottom": 0.25}
    )
    assert tuple(made.get_size_inches()) == (8.0, 5.0)
    panel = made.add_subplot().get_position()
    assert (panel.x0, panel.x1) == pytest.approx((1.0 / 8.0, 1.0 - 0.5 / 8.0))
    assert (panel.y0, panel.y1) == pytest.approx((0.25 / 5.0, 1.0 - 0.75 / 5.0))
    (title,) = made.texts
    found = title.get_text(), title.get_fontsize(), title.get_verticalalignment()
    assert found == ("A day", 12, "top")
    assert title.get_position()[1] == pytest.approx(1.0 - 0.08 / 5.0)
    assert made.get_layout_engine() is None


def test_without_margins_they_are_fitted_to_the_panels() -> None:
    made = figure(6.0, 4.0, "A day")
    assert tuple(made.get_size_inches()) == (6.0, 4.0)
    engine = made.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    assert (engine.get()["h_pad"], engine.get()["w_pad"]) == (0.08, 0.08)
    (title,) = made.texts
    assert (title.get_text(), title.get_fontsize()) == ("A day", 12)
