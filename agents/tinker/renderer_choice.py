"""The renderer that the cookbook recommends for a model, found by the name of its directory too."""

from collections.abc import Iterator
from pathlib import Path

from tinker_cookbook.exceptions import ConfigurationError
from tinker_cookbook.model_info import get_recommended_renderer_name

_PUBLISHERS = (
    *("Qwen", "meta-llama", "deepseek-ai", "openai"),
    *("moonshotai", "zai-org", "nvidia", "thinkingmachines"),
)
"""Whose models the cookbook lists."""


def recommended_renderer(model: str) -> str | None:
    """Return the renderer that the cookbook recommends for a model, `None` if it lists no such one.

    Args:
        model: a name, or a directory that is named after the model or lies in the hub's cache.
    """
    for name in _names(model):
        try:
            return get_recommended_renderer_name(name)
        except (ConfigurationError, KeyError, ValueError):
            continue
    return None


def _names(model: str) -> Iterator[str]:
    """Yield what a model may be called in the cookbook's list."""
    yield model
    path = Path(model)
    if path.is_dir():
        for part in path.resolve().parts:
            if part.startswith("models--"):
                yield part.removeprefix("models--").replace("--", "/", 1)
        yield from (f"{publisher}/{path.resolve().name}" for publisher in _PUBLISHERS)
