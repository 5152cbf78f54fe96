"""Comparing run folders: what of them differs beyond times, addresses and names."""

import hashlib
import json
import math
import platform
import re
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.numpy import load_file

from tokengym.agents.training.folder.run import RunFolder

VARYING = {"console.log", "logs.log", "run.lock", "service.log", "timing_spans.jsonl", "starts"}
VARYING |= {"report.html"}
"""Files that hold times, and what libraries print; the page is made of the others, and has the
folder's name. Adapters in `unnamed` die with a service."""
_NAMED = {"log_path", "session_name", "base_url"}
"""Fields of `config.json` that name a folder or an address."""
_SESSION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Id of a session of a service, which a service without a seed makes up."""
ROUNDING = 1e-3
"""How far numbers may lie apart where the sums of a batch depend on who else is in it."""


def differences(one: Path, two: Path, tolerance: float = 0.0) -> list[str]:
    """Return the files that differ between two run folders.

    Args:
        one: a run folder.
        two: another one.
        tolerance: largest difference of numbers in JSON lines and tensors that counts as none.
    """
    first, second = _files(one), _files(two)
    both = sorted(first.keys() & second.keys())
    different = [name for name in both if not _equal(first[name], second[name], tolerance)]
    return sorted(first.keys() ^ second.keys()) + different


def drop_unfinished(folder: Path) -> None:
    """Remove what a start that was killed left for nobody: half files, states no record names."""
    for half in folder.rglob(".*.part"):
        half.unlink()
    named = {
        json.loads(line).get(key)
        for records in folder.rglob("checkpoints.jsonl")
        for line in records.read_text().splitlines()
        for key in ("state_path", "sampler_path")
    }
    for states in (folder / "service" / "runs").iterdir():
        address = f"tinker://{states.name.replace('+', ':')}"
        for file in states.glob("*/*.safetensors"):
            if f"{address}/{file.parent.name}/{file.stem}" not in named:
                file.unlink()
        if not any(states.glob("*/*.safetensors")):
            shutil.rmtree(states)


def digests(folder: Path) -> dict[str, str]:
    """Return SHA-256 by part of a run: its replies by segment, and its final weights."""
    run, found = RunFolder(folder), {}
    for segment in run.rollouts.segments():
        digest = hashlib.sha256()
        for record in run.rollouts.read(segment.name):
            for turn in record.turns:
                digest.update(repr((turn.said, list(turn.tokens), list(turn.logprobs))).encode())
            digest.update(repr(record.total).encode())
        found[segment.name] = digest.hexdigest()
    (weights,) = folder.glob("service/runs/*/sampler_weights/final.safetensors")
    tensors, digest = load_file(weights), hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode() + tensors[name].tobytes())
    return {**found, "weights": digest.hexdigest()}


def platform_class(folder: Path) -> str:
    """Return where sums are rounded as in a run: processor, instructions, threads, libraries."""
    (where,) = json.loads((folder / "environment.json").read_text())["environments"]
    versions = " ".join(f"{name} {where['versions'][name]}" for name in ("torch", "numpy"))
    instructions = torch.backends.cpu.get_cpu_capability()
    described = Path("/proc/cpuinfo")
    lines = described.read_text().splitlines() if described.exists() else []
    parts = (line.partition(":") for line in lines)
    fields = {name.strip(): value.strip() for name, _, value in parts}
    model = f"{fields.get('cpu family', '?')}-{fields.get('model', '?')}"
    system = f"{platform.system()} {where['processor']} {model} {instructions}"
    return f"{system} threads {where['threads']} {versions}"


def _files(folder: Path) -> dict[str, Any]:
    found: dict[str, list[Any]] = {}
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in VARYING and "unnamed" not in path.parts:
            name = _SESSION.sub("ID", str(path.relative_to(folder)))
            found.setdefault(name, []).append(_content(path, folder))
    # Several where weights of another run were copied into a folder of another id.
    return {
        name: sorted(contents, key=repr) if len(contents) > 1 else contents
        for name, contents in found.items()
    }


def _content(path: Path, folder: Path) -> Any:
    if path.suffix == ".safetensors":
        return {name: tensor.ravel().tolist() for name, tensor in load_file(path).items()}
    text = _SESSION.sub("ID", path.read_text())
    text = text.replace(str(folder), "FOLDER")
    if path.suffix not in (".json", ".jsonl"):
        return text
    rows = [text] if path.suffix == ".json" else text.splitlines()
    return [
        {
            name: value
            for name, value in json.loads(row).items()
            if not name.startswith("time/") and name not in _NAMED | {"tokens_per_second"}
        }
        for row in rows
    ]


def _equal(one: Any, two: Any, tolerance: float) -> bool:
    if isinstance(one, float) and isinstance(two, float):
        return math.isclose(one, two, rel_tol=0.0, abs_tol=tolerance)
    if isinstance(one, dict) and isinstance(two, dict):
        if abs(one.get("dpo/margin", 1.0)) <= tolerance:
            # Before the first update chosen and rejected differ by their rounding alone.
            one, two = ({**row, "dpo/accuracy": None} for row in (one, two))
        return one.keys() == two.keys() and all(_equal(one[k], two[k], tolerance) for k in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_equal, one, two, [tolerance] * len(one)))
    return bool(one == two)
