"""Laws of files that are written whole or not at all."""

from pathlib import Path

import pytest

from tokengym.atomic_write import replacing, write_whole


def test_a_file_is_replaced_only_when_completely_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_whole(file, b"old")
    with replacing(file) as new:
        new.write_bytes(b"new")
        assert file.read_bytes() == b"old"
    assert file.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [file]


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_whole(file, b"old")

    def interrupted() -> None:
        with replacing(file) as new:
            new.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]
