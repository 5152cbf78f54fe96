"""Installed packages: their versions, and the modules that an extra lacks."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from tokengym.envs.core.errors import OptionError

_MODULES = {
    "tinker": ("tinker", "tinker_cookbook", "torch", "transformers"),
    "probe": ("safetensors", "torch", "transformers"),
    "trl": ("datasets", "safetensors", "torch", "transformers", "trl"),
    "data": ("httpx", "pyarrow"),
    "openenv": ("openenv",),
    "openai": ("aiohttp",),
    "testing": ("hypothesis",),
    "wandb": ("wandb",),
}
"""By extra, modules that come with it."""

_LIBRARIES = (
    *("tokengym", "gymnasium", "numpy", "scipy", "openai", "tinker", "tinker-cookbook"),
    *("tokenizers", "torch", "transformers"),
)
"""Distributions that results depend on."""


def require_extra(extra: str, what: str) -> None:
    """Refuse what needs an extra that is not installed.

    Args:
        extra: name of the extra.
        what: what needs it, such as a command, in the singular.

    Raises:
        OptionError: saying what to install.
    """
    missing = [name for name in _MODULES[extra] if find_spec(name) is None]
    if missing:
        raise OptionError(f"{what} needs {', '.join(missing)}: pip install 'tokengym[{extra}]'")


@cache  # a job records them in each of its evaluations
def installed_version(name: str) -> str | None:
    """Return the version of a distribution; `None` if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def installed_versions() -> dict[str, str]:
    """Return the version of each installed distribution that results depend on, by its name."""
    return {name: found for name in _LIBRARIES if (found := installed_version(name))}
