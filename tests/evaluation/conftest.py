"""One evaluation of rollouts written by hand, for all tests of its figures."""

import pytest

from tests.evaluation.written_rollouts import Written, write_rollouts
from tokengym.agents.evaluation.folder import EvaluationFolder


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_rollouts(EvaluationFolder(tmp_path_factory.mktemp("evaluation")))
