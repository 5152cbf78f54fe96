"""Checks called as OpenEnv calls graders: found by its entry points, selected, run, and judged."""

from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytest.importorskip("openenv.validation", reason="needs the extra `openenv`")

from openenv import validation
from openenv.validation.parsers.openenv_yaml import OpenEnvYamlParser
from openenv.validation.runner import default_grader_registry
from openenv.validation.runtime.scheduler import execute_graders
from openenv.validation.types import CheckStatus, Lane, Level, Verdict

from tests.certify.test_sources import INTEGER_APP
from tokengym.agents.adapters.openenv_graders import TAG
from tokengym.agents.adapters.openenv_package import write_package
from tokengym.agents.certify.finding import CHECKS
from tokengym.envs import Rollouts

MANIFEST = """
name: buttons
app: buttons_app:app
validation:
  reward: {range: [0.0, 1.0], floor_margin: 0.5}
  resources: {cpu: 1, memory_mb: 500, disk_mb: 100, episode_timeout_s: 10}
  capabilities: {verifier: {kind: reward_channel}}
  types: {tags: [buttons, tokengym]}
"""


def test_every_check_that_openenv_names_and_does_not_have_is_registered_and_runs(
    tmp_path: Path,
) -> None:
    (tmp_path / "buttons_app.py").write_text(INTEGER_APP)
    (tmp_path / "openenv.yaml").write_text(MANIFEST)
    policy = validation.load_policy("v2")
    registry = default_grader_registry(policy)
    own = {entry.check_id for entry in policy.entries if registry.get(entry.check_id)}
    named = {entry.check_id for entry in policy.entries} & set(CHECKS) - own
    assert registry.load_entry_points() == len(named)
    assert len(entry_points(group=validation.ENTRY_POINT_GROUP)) == len(named) == 16

    manifest = OpenEnvYamlParser().parse(tmp_path)
    selected = {g.check_id: g for g in registry.select(manifest, Level.STATISTICAL)}
    assert named <= set(selected)
    tried = ["semantic.floor_gap", "semantic.verifier_determinism", "statistical.adversarial_floor"]
    graders = [selected[name] for name in (*tried, "semantic.oracle_max")]
    subject = validation.Subject(tmp_path, manifest, None, None, tmp_path)
    results = execute_graders(graders, subject)
    found = {result.check_id: result for result in results}
    assert [found[name].status for name in tried] == [
        *(CheckStatus.PASS, CheckStatus.PASS),
        CheckStatus.FAIL,  # button 3 is always right
    ]
    assert found["statistical.adversarial_floor"].measured["value"] == 1.0
    assert found["semantic.oracle_max"].status is CheckStatus.SKIP
    assert found["semantic.oracle_max"].evidence[0] == "no reply is said to be right"
    assert validation.apply_policy(results, policy, Lane.HUB) is Verdict.FAIL
    assert validation.apply_policy(results[:0], policy, Lane.HUB) is Verdict.PASS


@pytest.mark.parametrize("level", Level)
def test_a_package_that_does_not_ask_is_validated_as_without_this_one(
    level: Level, tmp_path: Path
) -> None:
    (tmp_path / "buttons_app.py").write_text(INTEGER_APP)
    (tmp_path / "openenv.yaml").write_text(MANIFEST.replace(f", {TAG}", ""))
    manifest = OpenEnvYamlParser().parse(tmp_path)
    subject = validation.Subject(tmp_path, manifest, None, None, tmp_path)
    policy = validation.load_policy("v2")
    found = []
    for asked in (False, True):
        registry = default_grader_registry(policy)
        assert not asked or registry.load_entry_points() == 16
        selected = registry.select(manifest, level)
        results = execute_graders(selected, subject)
        said = [(result.check_id, result.status, result.evidence) for result in results]
        found.append(([type(one) for one in selected], said))
    without, with_ours = found
    assert with_ours == without
    assert without[0]  # OpenEnv's own


def test_a_package_that_serve_env_writes_gets_every_grader(tmp_path: Path) -> None:
    write_package(tmp_path, Rollouts("forecast"), {}, reward="share")
    registry = validation.GraderRegistry()
    registry.load_entry_points()
    manifest = OpenEnvYamlParser().parse(tmp_path)
    assert len(registry.select(manifest, Level.STATISTICAL)) == 16


def test_a_package_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "openenv.yaml").write_text(MANIFEST.replace("buttons_app", "absent_app"))
    registry = validation.GraderRegistry()
    registry.load_entry_points()
    manifest = OpenEnvYamlParser().parse(tmp_path)
    result = registry.get("semantic.floor_gap").run(
        validation.Subject(tmp_path, manifest, None, None, tmp_path)
    )
    assert result.status is CheckStatus.ERROR
    assert "absent_app" in result.evidence[0]
