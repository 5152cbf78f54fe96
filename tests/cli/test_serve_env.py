"""Laws of `tokengym serve-env`: whoever can reach it from elsewhere needs a key."""

import pytest

from tokengym.agents.cli.serve_env import key_for
from tokengym.agents.service.config import KEY_VARIABLE


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "host.example"])
def test_the_network_needs_a_key_and_is_named(
    host: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    made = key_for(host)
    said = capsys.readouterr().err
    assert len(made) > 20
    assert made in said
    assert "listens to the network" in said
    assert key_for(host) != made
    monkeypatch.setenv(KEY_VARIABLE, "tml-mine")
    capsys.readouterr()
    assert key_for(host) == "tml-mine"
    said = capsys.readouterr().err
    assert "listens to the network" in said
    assert "tml-mine" not in said


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_this_machine_needs_no_key(
    host: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    assert key_for(host) == ""
    assert capsys.readouterr().err == ""
