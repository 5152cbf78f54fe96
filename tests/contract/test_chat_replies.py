"""Chat models are read as they write: what is unambiguous, and never as something else."""

from collections.abc import Callable, Mapping

import pytest

from tests.contract.chat_replies import CLAUDE_GPT, DAY, LLAMA, QWEN, REPLIES
from tokengym.envs.core.tools import Tool, read_call
from tokengym.envs.disruption.grammar import read_answer
from tokengym.envs.disruption.labels import LABELS
from tokengym.envs.energy.grammar import read_commands
from tokengym.envs.forecasting.grammar import read_forecast
from tokengym.envs.warehouse.grammar import read_pick, read_quote, read_reorder

TOOLS = (
    Tool("open", "Open.", {"note": {"type": "integer", "minimum": 1, "maximum": 6}}),
    Tool("answer", "Answer.", {"probability": {"type": "number"}}),
)


def probability(text: str) -> object:
    found = read_forecast(text, 0).value
    return found and pytest.approx(found[1])


def distribution(text: str) -> object:
    found = read_forecast(text, 3).value
    return found and pytest.approx(found)


def judgement(text: str) -> object:
    found = read_answer(text, ("disruption",)).value
    return found and (LABELS["disruption"][found.labels[0]], pytest.approx(found.reports[0]))


def units(text: str) -> object:
    found = read_reorder(text).value
    return None if found is None else dict(found)


READERS: Mapping[str, Callable[[str], object]] = {
    "forecast": probability,
    "forecast-several": distribution,
    "energy": lambda text: read_commands(text, ("BATTERY",), now="10").value,
    "day": lambda text: read_commands(text, DAY, now="10").value,
    "pick": lambda text: read_pick(text).value,
    "stock": units,
    "lease": lambda text: read_quote(text).value,
    "debate": judgement,
    "desk": lambda text: read_call(text, TOOLS),
}


def test_chat_models_are_read_as_they_write() -> None:
    assert len(QWEN) == len(LLAMA) == len(CLAUDE_GPT) == 30
    read = [(READERS[world](text), said) for world, text, said in REPLIES]
    wrong = [pair for pair in read if pair[0] is not None and pair[0] != pair[1]]
    assert wrong == []
    clear = [found is not None for found, said in read if said is not None]
    assert sum(clear) >= 0.95 * len(clear)
