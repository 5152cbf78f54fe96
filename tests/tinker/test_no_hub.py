"""A hub that does not answer is asked once: the cache serves, or a sentence says what lacks."""

import logging
import socket

import pytest
from huggingface_hub import constants

from tokengym.agents.tinker.codec import RendererCodec
from tokengym.envs.core.errors import OptionError


def test_absent_models_are_refused_without_a_hub(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    caplog.set_level(logging.WARNING)
    with pytest.raises(OptionError, match=r"could not be made: We couldn't connect") as refused:
        RendererCodec("qwen3_instruct", "tokengym/no-such-model")
    assert "\n" not in str(refused.value)
    assert not [line for line in caplog.messages if "retry" in line.lower()]
    assert constants.HF_HUB_OFFLINE is False
