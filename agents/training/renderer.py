"""The renderer of a training job: the one asked for, or the one that suits its model."""

from tokengym.agents.tinker.renderer_choice import recommended_renderer
from tokengym.agents.training.config import TrainConfig
from tokengym.agents.training.presets import is_toy

_UNLISTED = "qwen3_instruct"
"""For models that the cookbook does not list: ChatML, which SmolLM2 and the small policy use."""


def renderer_of(config: TrainConfig) -> str:
    """Return the renderer that is asked for, or else the one that suits the model."""
    return config.renderer or recommended_renderer(config.model) or _UNLISTED


def renderer_notice(config: TrainConfig) -> str | None:
    """Return what to say of a renderer that is not the recommended one, `None` where it is."""
    renderer, recommended = renderer_of(config), recommended_renderer(config.model)
    if renderer == recommended or is_toy(config.model):
        return None
    advice = "does not list it" if recommended is None else f"recommends {recommended}"
    return f"{config.model} is read and written by the renderer {renderer}; the cookbook {advice}"
