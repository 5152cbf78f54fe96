"""Laws of Ray clusters: the same files as here, at any number of nodes, even if one dies."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.test_executors import evaluate, refuse, run_example
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.verify import verify_evaluation
from tokengym.agents.execution.executors import IN_PROCESS, RayCluster
from tokengym.envs.core.errors import OptionError

ray = pytest.importorskip("ray", reason="Ray is an extra")
pytestmark = pytest.mark.filterwarnings("ignore")

STORE = 80 * 2**20


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[Any]]:
    """A cluster on this machine: a head and another node, each with one processor."""
    from ray.cluster_utils import Cluster

    cluster: Any = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": STORE}
    )
    second = cluster.add_node(num_cpus=1, object_store_memory=STORE)
    ray.init(address=cluster.address, log_to_driver=False)
    yield [cluster, second]
    ray.shutdown()
    cluster.shutdown()


def pause(folder: Path, numbers: Sequence[int]) -> Sequence[int]:
    """Tasks of 50 ms each, which note where they ran."""
    for number in numbers:
        time.sleep(0.05)
        (folder / f"{number}-{ray.get_runtime_context().get_node_id()}").touch()
    return numbers


def test_two_workers_are_faster_than_one(nodes: list[Any], tmp_path: Path) -> None:
    RayCluster.connect().map(partial(pause, tmp_path), range(4))  # processes are started
    seconds = []
    for workers in (1, 2):
        executor = RayCluster.connect(workers, shard_size=10)
        begun = time.perf_counter()
        assert executor.map(partial(pause, tmp_path), range(40)) == list(range(40))
        seconds.append(time.perf_counter() - begun)
    assert len({path.name.split("-")[1] for path in tmp_path.iterdir()}) == 2
    assert seconds[0] / seconds[1] >= 1.5


def test_an_error_of_the_work_is_raised_here(nodes: list[Any]) -> None:
    with pytest.raises(OptionError, match="must not be 3"):
        list(RayCluster.connect().run(refuse, range(6)))


def test_the_example_runs(
    nodes: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_example("ray", tmp_path, monkeypatch)
    assert verify_evaluation(EvaluationFolder(tmp_path / "forecast_easy")) == (10, [])


def test_a_node_that_dies_changes_nothing(nodes: list[Any], tmp_path: Path) -> None:
    cluster, second = nodes

    def progress(what: str, done: int, total: int) -> None:
        if done and cluster.list_all_nodes()[1:]:
            cluster.remove_node(second, allow_graceful=False)

    executor = RayCluster.connect(shard_size=4)
    assert executor.workers == 2
    killed = evaluate("noisy", tmp_path / "killed", executor, progress=progress, rollouts=2)
    assert len(cluster.list_all_nodes()) == 1
    assert killed == evaluate("noisy", tmp_path / "whole", IN_PROCESS, rollouts=2)
