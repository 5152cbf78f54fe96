"""Summary of a run besides its evaluation: how it ended, and where its weights are."""

from dataclasses import asdict, dataclass
from typing import Any

from tokengym.agents.training.folder.collapse import Collapse

MOST_MALFORMED = 0.5
"""Share of malformed replies above which a policy does not know the form."""


def form_warning(malformed: float, cut_off: float, repeating: float, prompt: str) -> str:
    """Return what to do about a policy that does not know the form; empty if it does.

    Args:
        malformed: share of its replies that are malformed.
        cut_off: share of its replies that ran out of tokens.
        repeating: share of its replies that repeated themselves until they did: a larger limit
            would be of no use to these.
        prompt: which prompts it reads, such as `full`.
    """
    if not malformed > MOST_MALFORMED:
        return ""
    other = "direct" if prompt == "full" else "full"
    longer = cut_off - repeating > MOST_MALFORMED
    limit = "a larger --max-tokens, as most are cut off, " if longer else ""
    return (
        f"{1.0 - malformed:.0%} of the replies have the form that is asked for, so returns say "
        f"little else. It reads the {prompt} prompts; try {limit}--option prompt={other}, or "
        "teach it the form with tokengym sft"
    )


@dataclass(frozen=True)
class RunSummary:
    """How a finished run ended.

    Attributes:
        collapse: how the run collapsed, or `None`. The policy after training is then that of its
            last good checkpoint, or the start if there was none yet.
    """

    collapse: Collapse | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"state": "collapsed" if self.collapse else "completed", **asdict(self)}
