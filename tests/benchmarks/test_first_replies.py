"""First replies: a row for a level, and a limit of time that holds."""

import asyncio
import signal
import time

import pytest

from benchmarks import first_replies
from benchmarks.pages import table_rows
from tokengym.agents.execution.run_async import run_async
from tokengym.agents.toy_model import TOY_MODEL

pytestmark = pytest.mark.nightly


def test_what_takes_longer_is_interrupted_even_where_interrupts_are_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        began = time.monotonic()
        with first_replies.limited(1.0):
            run_async(asyncio.sleep(60.0))
        assert time.monotonic() - began < 30.0
        with pytest.raises(KeyboardInterrupt), first_replies.limited(60.0):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_each_level_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    of = ["--level", "forecast:easy", "--level", "warehouse:pick", "--minutes", "5"]
    first_replies.main([TOY_MODEL, *of, "--tasks", "2", "--rollouts", "2"])
    header, *rows = table_rows(capsys.readouterr().out)
    assert tuple(header) == first_replies.HEADER
    assert [row[:2] for row in rows] == [
        ["forecast:easy", "2 x 2"],
        ["warehouse:pick", "2 x 2"],
    ]
    for row in rows:
        low, mean, high = 0.0, float(row[3]), float(row[5])
        assert low < mean <= high
        assert row[-1]
