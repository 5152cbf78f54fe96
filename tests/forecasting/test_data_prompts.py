"""Golden prompts of a user's own questions; `TOKENGYM_UPDATE_GOLDEN=1` rewrites them."""

import os
from pathlib import Path

import pytest

from tests.forecasting.questions_file import plain, tasks_of, world_of, write_lines
from tokengym.envs.core.world import PROMPTS

GOLDEN = Path(__file__).parents[1] / "golden" / "prompts"
ROWS = (
    plain(1, sources=["The rain will stop.", {"text": "It is dry.", "date": "2025-01-01"}]),
    plain(
        20,
        question="Who wins?",
        outcomes=["Oslo", "Rome", "Lima"],
        outcome="Rome",
        price=[0.2, 0.5, 0.3],
    ),
    plain(40, question="Who wins?", outcomes=["Oslo", "Rome"], outcome=0, price=[0.2, 0.8]),
)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_prompts_of_own_questions_read_as_they_did(prompt: str, tmp_path: Path) -> None:
    world = world_of(write_lines(tmp_path / "a.jsonl", ROWS), show_prices=True, prompt=prompt)
    texts = [world.start(task).text for task in tasks_of(world)]
    found = "\n\n----\n\n".join(texts) + "\n"
    golden = GOLDEN / f"forecast-data-{prompt}.txt"
    if os.environ.get("TOKENGYM_UPDATE_GOLDEN"):
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")
    assert len(texts) == len(ROWS)
