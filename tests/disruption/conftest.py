"""A snapshot, the set that is built from it, and the labels of the same works in memory."""

from pathlib import Path

import pytest

from tests.disruption.literature_files import LAST_YEAR, WORKS, label_works, recipe, write_parts
from tokengym.envs.disruption.data import build_papers
from tokengym.envs.disruption.paper import Paper


@pytest.fixture(scope="session")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("snapshot")
    write_parts(root, WORKS)
    return root


@pytest.fixture(scope="session")
def labelled() -> dict[str, Paper]:
    """The same works, labelled in memory."""
    return {p.openalex_id: p for p in label_works(WORKS, last_year=LAST_YEAR, shuffles=5)}


@pytest.fixture(scope="session")
def built(snapshot: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "papers"
    build_papers(recipe(snapshot), out)
    return out
