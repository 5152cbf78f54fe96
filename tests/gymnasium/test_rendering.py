"""Laws of `render_mode="rgb_array"`: a true picture at any time of an episode, of one size."""

import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import tokengym
from tests.contract import bargain
from tokengym.envs import TextAECEnv, TextEnv, TextVectorEnv
from tokengym.envs.core.errors import EpisodeStateError, OptionError
from tokengym.envs.core.rendering import picture

needs_matplotlib = pytest.mark.skipif(find_spec("matplotlib") is None, reason="draws pictures")


@pytest.mark.nightly
@needs_matplotlib
def test_a_picture_shows_what_a_budget_left_undone() -> None:
    env = TextEnv(
        "tokengym/Energy-v2",
        "small",
        mode="tokens",
        token_budget=1200,
        prompt="terse",
        render_mode="rgb_array",
    )
    with pytest.raises(EpisodeStateError, match="reset"):
        env.render()
    env.reset(options={"split": "test", "index": 0})
    replies, ended = [], False
    while not ended:
        _, _, _, ended, info = env.step(np.array(env.codec.write("BATTERY 1.5")))
        replies.append("BATTERY 1.5")
    assert info["stop_reason"] == "token_budget"
    assert len(replies) < 12
    whole = picture(env.world, env.world.task("test", 0), replies, finish=True)
    assert np.array_equal(env.render(), whole)  # type: ignore[arg-type]


@pytest.mark.nightly
@needs_matplotlib
def test_every_adapter_gives_the_same_picture() -> None:
    options = {"split": "test", "index": 3}
    kwargs: dict[str, Any] = {"level": "small", "mode": "text", "render_mode": "rgb_array"}
    world_id = "tokengym/Energy-v2"
    single = TextEnv(world_id, **kwargs)
    batch = TextVectorEnv(1, world=world_id, **kwargs)
    aec = TextAECEnv(world_id, **kwargs)
    for env in (single, batch, aec):
        env.reset(options=options)
    single.step("BATTERY 1.0")
    batch.step(("BATTERY 1.0",))
    aec.step("BATTERY 1.0")
    frame: Any = single.render()
    shown: Any = batch.render()
    for other in (*shown, aec.render()):
        assert np.array_equal(frame, other)
    assert (frame.dtype, *frame.shape[2:]) == (np.uint8, 3)
    world = tokengym.make_world(world_id, "small")
    assert np.array_equal(frame, picture(world, world.task("test", 3), ["BATTERY 1.0"]))


@pytest.mark.parametrize("make", [TextEnv, TextAECEnv])
def test_a_world_without_pictures_refuses_by_name(make: Any, fresh_registry: None) -> None:
    tokengym.register(bargain.SPEC)
    world_id = bargain.SPEC.id
    with pytest.raises(OptionError, match=f"{world_id}.*render_mode must be one of.*'ansi'"):
        make(world_id, render_mode="rgb_array")
    assert "rgb_array" not in make(world_id).metadata["render_modes"]


@pytest.mark.nightly
def test_without_matplotlib_every_world_passes_check_env() -> None:
    code = """
import sys
sys.modules["matplotlib"] = None  # as where it is not installed: no spec, and no import
import gymnasium
from gymnasium.utils.env_checker import check_env
import tokengym.envs
from tokengym.envs.gymnasium.aec_env import TextAECEnv
for world in tokengym.envs.specs():
    assert "rgb_array" not in TextAECEnv(world).metadata["render_modes"]
    for mode in ("text", "tokens"):
        env = gymnasium.make(world, mode=mode)
        assert env.metadata["render_modes"] == ["ansi"]
        check_env(env.unwrapped)
        print(world, mode)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2 * len(tokengym.specs())


def test_a_missing_matplotlib_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokengym.envs.core.rendering.find_spec", lambda name: None)
    TextEnv("tokengym/Energy-v2", render_mode="ansi")
    with pytest.raises(OptionError, match="pip install matplotlib"):
        TextEnv("tokengym/Energy-v2", render_mode="rgb_array")
