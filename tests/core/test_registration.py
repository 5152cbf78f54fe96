"""Laws of the registry: what is refused, what a name finds, and worlds of other packages."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import tokengym
from tokengym.envs import baselines, make_world, specs
from tokengym.envs.core.errors import OptionError, UnknownWorldError
from tokengym.rewards.bounds import UNIT

SPEC = tokengym.WorldSpec(
    id="acme/Coins-v0",
    summary="Any world under another name.",
    entry_point="tokengym.envs.forecasting.world:ForecastWorld",
    baselines="tokengym.envs.forecasting.baselines:BASELINES",
    roles=("forecaster",),
    turn_limits={"easy": 1},
    step_range={"forecaster": UNIT},
    return_range={"forecaster": UNIT},
)
BEST = tokengym.Reachable("oracle", "exact posterior", proved=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": "Coins-v0"}, "namespace/Name-vN, got 'Coins-v0'"),
        ({"id": "acme/Coins"}, "namespace/Name-vN"),
        ({"roles": ()}, "roles"),
        ({"roles": ("forecaster", "forecaster")}, "roles"),
        ({"turn_limits": {}}, "turn_limits"),
        ({"turn_limits": {"easy": 0}}, "turn_limits"),
        ({"step_range": {}}, "step_range"),
        ({"return_range": {"forecaster": UNIT, "other": UNIT}}, "return_range.*'other'"),
        ({"drawn_since": 1}, "drawn_since must be from 0 to 0, got 1"),
        ({"opponents": {"nobody": "null"}}, "opponents.*'nobody'"),
        ({"reachable": {"hard": BEST}}, "reachable.*'easy'.*'hard'"),
        ({"reachable": {"easy": BEST._replace(policy="")}}, "reachable of easy .* policy"),
        ({"reachable": {"easy": BEST._replace(method="")}}, "reachable of easy .* method"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        replace(SPEC, **change)


@pytest.mark.parametrize("field", ["entry_point", "baselines"])
def test_a_world_that_cannot_be_made_is_not_registered(field: str) -> None:
    for path in ("", "module", ":name", "module:"):
        change: dict[str, Any] = {field: path}
        with pytest.raises(OptionError, match=f"{SPEC.id}: {field}"):
            tokengym.register(replace(SPEC, **change))
    assert SPEC.id not in tokengym.specs()


@pytest.mark.usefixtures("fresh_registry")
def test_a_registered_world_is_found_everywhere() -> None:
    tokengym.register(SPEC)
    tokengym.register(replace(SPEC))  # an equal one again
    assert list(tokengym.specs())[-1] == SPEC.id
    assert tokengym.spec("coins") is tokengym.spec(SPEC.id) is SPEC
    assert tokengym.make_world("coins").spec is SPEC
    observation, _ = gymnasium.make(SPEC.id, mode="text").reset(seed=0)
    assert "Probability" in observation


@pytest.mark.usefixtures("fresh_registry")
def test_an_id_or_a_short_name_is_registered_once() -> None:
    tokengym.register(SPEC)
    with pytest.raises(OptionError, match="acme/Coins-v0 is already registered"):
        tokengym.register(replace(SPEC, summary="Another."))
    with pytest.raises(OptionError, match=r"other/coins-v3 .* 'coins'.* acme/Coins-v0"):
        tokengym.register(replace(SPEC, id="other/coins-v3"))
    with pytest.raises(OptionError, match=r"acme/Forecast-v0 .* tokengym/Forecast-v1"):
        tokengym.register(replace(SPEC, id="acme/Forecast-v0"))
    assert tokengym.spec("coins") is SPEC


@pytest.mark.usefixtures("fresh_registry")
def test_a_short_name_is_the_newest_version() -> None:
    newest = replace(SPEC, id="acme/Coins-v10")
    for spec in (SPEC, newest, replace(SPEC, id="acme/Coins-v9")):
        tokengym.register(spec)
    assert tokengym.spec("coins") is newest


def test_a_mistyped_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownWorldError, match="did you mean 'warehouse'"):
        tokengym.spec("warehuose")
    with pytest.raises(UnknownWorldError, match="did you mean 'tokengym/Energy-v2'"):
        tokengym.make_world("tokengym/Energy-v0")


# Worlds of other packages


PACKAGE = f"""
from tokengym import WorldSpec
from tokengym.rewards.bounds import UNIT

print("loaded", __name__)

def spec(id):
    return WorldSpec(
        id=id,
        summary="Any world under another name.",
        entry_point={SPEC.entry_point!r},
        baselines={SPEC.baselines!r},
        roles=("forecaster",),
        turn_limits={{"easy": 1}},
        step_range={{"forecaster": UNIT}},
        return_range={{"forecaster": UNIT}},
    )

COINS = spec("acme/Coins-v0")
MANY = [spec("acme/Coins-v1"), spec("acme/Notes-v0")]
make = lambda: COINS
rival = lambda: spec("acme/Energy-v0")
number = 3
"""


@pytest.fixture
def installed(tmp_path: Path) -> Any:
    """Return a function that runs code where the package `acme` declares some entry points."""

    def run(points: dict[str, str], code: str, *options: str) -> list[str]:
        info = tmp_path / "acme-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
        lines = [f"{name} = {path}" for name, path in points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[tokengym.worlds]", *lines]))
        (tmp_path / "acme.py").write_text(PACKAGE)
        path = os.pathsep.join([*sys.path, str(tmp_path)])
        done = subprocess.run(
            [sys.executable, *(options or ("-W", "error")), "-c", code],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return [*done.stdout.splitlines(), *done.stderr.splitlines()]

    return run


MAKE = "import gymnasium; print(gymnasium.make({!r}).unwrapped.world.spec.id)"


@pytest.mark.nightly
def test_a_declared_world_loads_when_it_is_looked_up(installed: Any) -> None:
    code = f"""
import tokengym.envs
print("imported")
{MAKE.format("acme/Coins-v0")}
print(tokengym.spec("coins").id, list(tokengym.specs())[-2:])
"""
    assert installed({"acme/Coins-v0": "acme:COINS"}, code) == [
        "imported",
        "loaded acme",
        "acme/Coins-v0",
        "acme/Coins-v0 ['tokengym/Disruption-v2', 'acme/Coins-v0']",
    ]


@pytest.mark.nightly
@pytest.mark.parametrize("value", ["acme:COINS", "acme:make", "acme:MANY"])
def test_any_entry_point_declares_one_world_or_several(installed: Any, value: str) -> None:
    world = "acme/Notes-v0" if value == "acme:MANY" else "acme/Coins-v0"
    code = f"import tokengym; {MAKE.format(world)}; print(tokengym.spec({world!r}).id)"
    assert installed({"worlds": value}, code) == ["loaded acme", world, world]


@pytest.mark.nightly
def test_a_package_may_be_imported_first(installed: Any) -> None:
    code = f"import acme; {MAKE.format('acme/Coins-v0')}; import tokengym; print(tokengym.specs())"
    shown = installed({"acme/Coins-v0": "acme:COINS", "others": "acme:MANY"}, code)
    assert shown[:2] == ["loaded acme", "acme/Coins-v0"]
    assert all(world in shown[2] for world in ("acme/Coins-v0", "acme/Coins-v1", "acme/Notes-v0"))


@pytest.mark.nightly
def test_packages_installed_meanwhile_are_found(installed: Any) -> None:
    code = f"""
import tokengym, os, pathlib, sys
info = next(p for p in map(pathlib.Path, sys.path) if (p / "acme.py").exists())
old = info / "acme-1.0.dist-info"
assert list(tokengym.specs())[4:] == []
new = info / "other-1.0.dist-info"
new.mkdir()
(new / "METADATA").write_text("Metadata-Version: 2.1\\nName: other\\nVersion: 1.0\\n")
(new / "entry_points.txt").write_text("[tokengym.worlds]\\nacme/Coins-v0 = acme:COINS")
print(tokengym.spec("coins").id)
{MAKE.format("acme/Coins-v0")}
"""
    assert installed({}, code) == ["loaded acme", "acme/Coins-v0", "acme/Coins-v0"]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("acme/Coins-v0", "missing:SPEC", "ModuleNotFoundError"),
        ("acme/Coins-v0", "acme:nothing", "AttributeError"),
        ("acme/Coins-v0", "acme:number", "TypeError"),
        ("acme/Coins-v0", "acme:__name__", "must give a WorldSpec, got str"),
        ("acme/Coins-v0", "acme:MANY", "does not declare acme/Coins-v0"),
        ("acme/Energy-v0", "acme:rival", "acme/Energy-v0 .* tokengym/Energy-v2"),
        ("worlds", "missing:SPEC", "ModuleNotFoundError"),
    ],
)
def test_a_broken_declaration_warns_and_leaves_our_worlds_alone(
    installed: Any, name: str, value: str, why: str
) -> None:
    code = f"""
import re, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import tokengym, gymnasium
    assert len(tokengym.specs()) >= 4
(found,) = [str(w.message) for w in caught if w.category is RuntimeWarning]
assert "package acme" in found and {name!r} in found, found
assert re.search({why!r}, found), found
gymnasium.make("tokengym/Forecast-v1").reset(seed=0)
try:
    tokengym.make_world("acme/Missing-v0")
except LookupError as error:
    assert re.search({why!r}, str(error)), error
"""
    installed({name: value}, code, "-W", "default")


@pytest.mark.parametrize("world_id", specs())
def test_every_baseline_pickles_and_then_replies_alike(world_id: str) -> None:
    world = make_world(world_id)
    turn = world.start(world.task())
    for name, policy in baselines(world_id).items():
        twin = pickle.loads(pickle.dumps(policy))
        replies = [each(world, turn, np.random.default_rng(0)) for each in (policy, twin)]
        assert replies[0] == replies[1], name
