"""Who can speak for a role that is not trained: scripted, a language model, or a trained one.

Scripted ones are named by their names; the other two are made here from a Tinker client. All go
wherever an opponent goes: `TaskGroupBuilder(opponents={"challenger": ...})`, `TinkerEnv`; on the
command line `tokengym train disruption --agent challenger=WHO`.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from tokengym.envs.disruption.challengers import CHALLENGERS, noisy, null, scripted

if TYPE_CHECKING:
    import tinker

    from tokengym.agents.tinker.language_model import LanguageModelOpponent

__all__ = ["CHALLENGERS", "language_model", "noisy", "null", "scripted", "trained"]


def language_model(
    sampler: "tinker.SamplingClient", codec: str, *, max_tokens: int = 512, temperature: float = 1.0
) -> "LanguageModelOpponent":
    """Return an agent that says what a sampling client samples.

    Args:
        sampler: of any model, such as `ServiceClient().create_sampling_client(base_model=NAME)`.
        codec: the model's chat format and tokenizer, such as `qwen3_instruct@NAME`.
        max_tokens: most tokens of a reply.
        temperature: of sampling.
    """
    from tokengym.agents.tinker.language_model import LanguageModelOpponent

    return LanguageModelOpponent(sampler, codec, max_tokens=max_tokens, temperature=temperature)


def trained(run: Path | str, client: "tinker.ServiceClient") -> "LanguageModelOpponent":
    """Return an agent that speaks with the last weights a training run saved.

    Args:
        run: the run folder.
        client: of the service that has these weights.

    Raises:
        OptionError: if the folder holds no run, or one without saved weights.
    """
    from tokengym.agents.training.opponents import trained_opponent

    return trained_opponent(Path(run), client)
