"""A checkpoint can be downloaded as the files of a PEFT adapter, by those who may."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
import tinker
from safetensors.torch import load
from tinker_cookbook import weights

if TYPE_CHECKING:
    from pathlib import Path

    from tokengym.agents.service import LocalService

FILES = ["adapter_config.json", "adapter_model.safetensors"]


def fetch(url: str) -> bytes:
    """Get a URL as the SDK's command line and the cookbook do: without a key."""
    with urllib.request.urlopen(url) as response:
        content: bytes = response.read()
        return content


@pytest.mark.nightly
def test_external_weights_are_those_of_the_run(
    run: Any,
    rest: Any,
    service: LocalService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = run.save_state("before").result().path
    path = run.save_weights_external("final").result().path
    assert path == state.replace("/weights/before", "/external_weights/final")
    answer = rest.get_external_weights_urls(path).result()
    assert sorted(answer.urls) == FILES
    config, tensors = (fetch(answer.urls[name]) for name in FILES)
    assert json.loads(config)["r"] == 8
    assert json.loads(config)["base_model_name_or_path"] == service.model_name
    assert all(name.endswith((".lora_A.weight", ".lora_B.weight")) for name in load(tensors))
    found = {
        item.checkpoint_type: item
        for item in rest.list_checkpoints(run.model_id).result().checkpoints
    }
    assert found["external"].tinker_path == path

    # Training checkpoints come through a temporary external one, encrypted to a key of the moment.
    monkeypatch.setenv("TINKER_API_KEY", service.api_key)
    for source in (path, state):
        folder = tmp_path / source.rpartition("/")[2]
        weights.download(tinker_path=source, output_dir=str(folder), base_url=service.base_url)
        assert sorted(file.name for file in folder.iterdir()) == FILES
        assert (folder / FILES[1]).read_bytes() == tensors
    left = [item.tinker_path for item in rest.list_user_checkpoints().result().checkpoints]
    assert not [one for one in left if one.endswith("/external_weights/download")]


def test_a_url_opens_its_own_file_until_it_expires(run: Any, rest: Any) -> None:
    path = run.save_weights_external("signed").result().path
    urls = rest.get_external_weights_urls(path).result().urls
    config = urls[FILES[0]]
    expires = config.partition("expires=")[2].partition("&")[0]
    for changed in (
        config.replace(FILES[0], FILES[1]),
        config.replace(expires, str(int(expires) + 1)),
        config.replace("signature=", "signature=0"),
        config.partition("?")[0],
        config.partition("/training_runs")[0] + "/status?" + config.partition("?")[2],
    ):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            fetch(changed)


@pytest.mark.parametrize("recipients", [["age1nobody"], ["ssh-rsa nothing"], ["age1x"] * 11])
def test_a_recipient_that_is_none_is_refused_by_name(run: Any, recipients: list[str]) -> None:
    with pytest.raises(tinker.RequestFailedError, match="age recipient"):
        run.save_weights_external("sealed", age_encryption_recipients=recipients).result()
