"""Laws of arrays in files."""

import gc
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.array_files import map_array

ARRAYS = [
    np.arange(5),
    np.zeros(0, np.uint64),
    np.array([True, False]),
    np.array(2.5),
    np.arange(6, dtype=np.int8).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
]


@pytest.fixture
def saved(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{k}.npy" for k in range(len(ARRAYS))]
    for path, array in zip(paths, ARRAYS, strict=True):
        np.save(path, array)
    return paths


@pytest.fixture
def _threads_that_take_turns_often() -> Iterator[None]:
    """Collections that run Python code, in which threads take turns: what breaks `np.load`."""

    def spin(_phase: str, _info: dict[str, Any]) -> None:
        for _ in range(50):
            pass

    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(10)
    gc.callbacks.append(spin)
    yield
    gc.callbacks.remove(spin)
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval)


@pytest.mark.nightly
@pytest.mark.usefixtures("_threads_that_take_turns_often")
def test_many_threads_map_the_arrays_that_were_saved(saved: list[Path]) -> None:
    with ThreadPoolExecutor(16) as pool:
        mapped = list(pool.map(map_array, saved * 50))
    for array, found in zip(ARRAYS * 50, mapped, strict=True):
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


def test_a_file_that_holds_no_array_is_named(saved: list[Path], tmp_path: Path) -> None:
    whole = saved[0].read_bytes()
    objects = tmp_path / "objects.npy"
    np.save(objects, np.array([{}], dtype=object))
    texts = tmp_path / "texts.npy"
    np.save(texts, np.array(["one"]))
    for name, data in (
        ("empty", b""),
        ("no magic", b"damaged" * 50),
        ("cut header", whole[:40]),
        ("cut values", whole[:-1]),
        ("objects", objects.read_bytes()),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(DataError, match=f"{name} holds no array"):
            map_array(path)
    with pytest.raises(DataError, match=r"texts\.npy holds no array"):
        map_array(texts)
