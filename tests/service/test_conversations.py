"""Conversations are read once, in turns, even where there is memory for a few of them only."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tinker.types import SamplingParams

from tests.service.toy import VOCABULARY
from tokengym.agents.service.engine.base_model import BaseModel
from tokengym.agents.service.engine.forward import PackedForward
from tokengym.agents.service.generation import decoder
from tokengym.agents.service.generation.jobs import SampleRequest, SampleResult
from tokengym.agents.service.generation.sampled_weights import BASE
from tokengym.agents.service.generation.sampler import Sampler

if TYPE_CHECKING:
    from pathlib import Path

    from tokengym.agents.service.engine.forward import Tokens

CONVERSATIONS, TURNS, FIRST, REPLY, MORE = 12, 4, 40, 8, 12
WHOLE = FIRST + TURNS * REPLY + (TURNS - 1) * MORE


class Conversations:
    """Converses with a model, in memory for so many whole conversations that run.

    Attributes:
        read: positions that the model computed.
        begun: at the end of each conversation, how many had begun.
        sampler: takes their requests.
    """

    def __init__(self, model_dir: Path, rows: int) -> None:
        self.base = BaseModel(model_dir, "cpu")
        model: Any = self.base.sampled
        self.sampler = Sampler(
            PackedForward(model),
            partial(decoder.KeptDecoder, model),
            lambda _weights: None,
            str,
            capacity=4 * rows * WHOLE // 3,
        )
        self.read = 0
        self.begun: list[int] = []
        model.get_input_embeddings().register_forward_hook(self._count)

    def _count(self, _module: Any, args: Any, _output: Any) -> None:
        self.read += args[0].numel()

    def run(self, late: int) -> dict[int, list[list[float]]]:
        """Hold all conversations; return the log-probabilities of their replies.

        Args:
            late: steps after which a reply is answered.
        """
        draw = np.random.default_rng(0)
        texts = [list(draw.integers(0, VOCABULARY, FIRST)) for _ in range(CONVERSATIONS)]
        news = draw.integers(0, VOCABULARY, (CONVERSATIONS, TURNS, MORE))
        logprobs: dict[int, list[list[float]]] = {one: [] for one in range(CONVERSATIONS)}
        running: dict[int, Future[SampleResult]] = {}
        due: list[tuple[int, int]] = [(0, one) for one in range(CONVERSATIONS)]
        step = 0
        while running or due:
            for _, one in [item for item in due if item[0] <= step]:
                prompt: Tokens = np.array(texts[one], np.int32)
                sampling = SamplingParams(seed=100 * one + len(logprobs[one]))
                running[one] = Future()
                request = SampleRequest(BASE, prompt, 1, sampling, REPLY, frozenset())
                self.sampler.submit(request, running[one])
            due = [item for item in due if item[0] > step]
            if self.sampler.busy:
                self.sampler.step()
            step += 1
            for one in [one for one, future in running.items() if future.done()]:
                (reply,) = running.pop(one).result().sequences
                texts[one] += reply.tokens
                logprobs[one].append(reply.logprobs.tolist())
                if len(logprobs[one]) == TURNS:
                    self.begun.append(sum(map(bool, logprobs.values())))
                else:
                    texts[one] += list(news[one, len(logprobs[one])])
                    due.append((step + late, one))
        return logprobs


@pytest.mark.nightly
@pytest.mark.parametrize("late", [0, 2])
def test_no_conversation_is_read_again_where_memory_is_short(model_dir: Path, late: int) -> None:
    short = Conversations(model_dir, rows=2 if late == 0 else 5)
    ample = Conversations(model_dir, rows=2 * CONVERSATIONS)
    found, expected = short.run(late), ample.run(late)
    # A reply's last token is part of the next prompt, and after the last reply nothing follows.
    assert ample.read == CONVERSATIONS * (WHOLE - 1)
    # As long as an answer is awaited others begin, and a few too many: the room of all slots grows
    # with the longest.
    assert ample.read <= short.read <= (1 if late == 0 else 1.05) * ample.read
    assert ample.begun[0] == CONVERSATIONS
    assert late or short.begun[0] <= 4
    for one in range(CONVERSATIONS):
        np.testing.assert_allclose(found[one], expected[one], atol=1e-4, rtol=0)


def test_replies_that_nobody_continues_make_way_for_others(model_dir: Path) -> None:
    short = Conversations(model_dir, rows=4)
    draw = np.random.default_rng(0)
    for prompt in draw.integers(0, VOCABULARY, (40, FIRST), np.int32):
        request = SampleRequest(BASE, prompt, 1, SamplingParams(seed=0), REPLY, frozenset())
        short.sampler.submit(request, Future())
    steps = 0
    while short.sampler.busy:
        short.sampler.step()
        steps += 1
    assert steps <= 40 / 4 * REPLY  # four at a time, not one
