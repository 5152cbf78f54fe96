"""Laws of defaults by model: one table, one temperature, room to think where the prompt asks."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tokengym.agents.tinker.tokenizer_loading import template_system
from tokengym.agents.toy_model import MODEL_DIR, TOY_MODEL
from tokengym.agents.training.config import SftConfig, TrainConfig
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset, preset_for
from tokengym.envs.registry import specs

MODELS = (TOY_MODEL, "smollm2", "Qwen/Qwen3-8B", "meta-llama/Llama-3.2-1B")
SMOLLM2 = (
    "smollm2",
    "/cache/tokengym/models/smollm2",
    "HuggingFaceTB/SmolLM2-135M-Instruct",
    "/hub/models--HuggingFaceTB--SmolLM2-135M-Instruct/snapshots/0a1b",
)
TEMPLATE = """{% for message in messages %}\
{% if loop.first and message.role != 'system' %}<|im_start|>system
You are a test.<|im_end|>
{% endif %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """The toy model under a name that no table has."""
    return shutil.copytree(MODEL_DIR, tmp_path / "mine")


@pytest.mark.parametrize("model", MODELS)
def test_a_preset_samples_the_distribution_that_its_loss_is_for(model: str) -> None:
    for world, spec in specs().items():
        for level in spec.levels:
            config = preset_for(TrainConfig, world, level, model=model)
            assert config.sampling_notice is None
    cool = preset("forecast", model=model, temperature=0.5).sampling_notice
    assert cool is not None
    assert "sampled at --temperature 0.5 are trained on" in cool


def test_a_model_is_known_by_all_of_its_names() -> None:
    other = preset("forecast", model="Qwen/Qwen3-8B")
    assert other.kl == other.warm_start == 0
    for name in SMOLLM2:
        config = preset("forecast", model=name)
        assert config.kl > 0.0
        assert config.warm_start > 0
        assert config.options["prompt"] == "direct"
        assert preset_for(SftConfig, "forecast", model=name).learning_rate is None


def test_the_form_is_taught_only_where_nothing_was_learned() -> None:
    for changes in ({"start": "tinker://a/b/c"}, {"warm_start": 0}):
        config = preset("forecast", model="smollm2", **changes)
        assert (config.warm_start, config.warm_start_updates) == (0, 1)
        assert config.kl > 0.0


def test_the_system_text_is_that_of_the_chat_template(mine: Path) -> None:
    asked: dict[str, Any] = {"model": str(mine), "max_tokens": 16}
    assert Job.resolve(preset("forecast", **asked)).config.system == ""
    stated = "Answer with care."
    assert Job.resolve(preset("forecast", **asked, system=stated)).config.system == stated


@pytest.mark.parametrize(
    ("template", "own"),
    [
        (TEMPLATE, "You are a test."),
        (TEMPLATE.replace("'system'", "'user'"), ""),
        ("{{ raise_exception('no system') if messages | length > 1 }}", ""),
        ("{% for message in messages %}{{ message.role | upper }}: {% endfor %}", ""),
    ],
)
def test_a_template_adds_its_own_system_text_or_none(template: str, own: str, mine: Path) -> None:
    (mine / "chat_template.jinja").write_text(template)
    assert template_system(str(mine)) == own


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("level", "context", "limit"),
    [("forecast:easy", 16384, 1024), ("energy:small", 16384, 512), ("energy:small", 4096, None)],
)
def test_a_reply_has_room_to_think_within_the_context(
    level: str, context: int, limit: int | None, mine: Path
) -> None:
    (config,) = mine.glob("config.json")
    config.write_text(
        json.dumps(json.loads(config.read_text()) | {"max_position_embeddings": context})
    )
    name, _, level = level.partition(":")
    full, terse = (
        Job.resolve(preset(name, level, model=str(mine), options={"prompt": prompt}))
        for prompt in ("full", "terse")
    )
    assert terse.max_tokens < 100
    if limit is not None:
        assert full.max_tokens == limit
    else:
        assert terse.max_tokens < full.max_tokens < context / full.world.turn_limit
