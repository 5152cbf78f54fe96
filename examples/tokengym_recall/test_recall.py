"""Every law of a world, on this one."""

from tokengym.testing import check_world


def test_recall_keeps_every_law() -> None:
    check_world("acme/Recall-v0")
