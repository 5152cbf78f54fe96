"""The reward for form: a small share of every return, graded for malformed replies too.

Where malformed replies all earn the same, a group of them ties and teaches nothing. Here they earn
by their nearness to the form, in [0, 1], and always less than a well-formed reply.
"""

from dataclasses import dataclass

FORM_SHARE = 0.05
"""Share of a return that form earns; the rest is earned by what the replies do."""

MOST_MALFORMED = 0.9
"""Share of a well-formed reply's reward for form that the nearest malformed reply earns."""


def form_of(nearness: float) -> float:
    """Return the share of a well-formed reply's form that a malformed one earns, in [0, 0.9].

    Raises:
        ValueError: if the nearness is outside [0, 1].
    """
    if not 0.0 <= nearness <= 1.0:
        raise ValueError(f"nearness lies in [0, 1], got {nearness!r}")
    return MOST_MALFORMED * nearness


@dataclass
class FormAccount:
    """The form of the replies of an episode that continues after a malformed one.

    The number of replies is fixed beforehand, so that more replies than needed never dilute the
    malformed ones.

    Args:
        replies: most replies of the episode, at least 1.

    Attributes:
        replies: most replies of the episode.
        malformed: malformed replies so far.
        lost: form that they and replies cut off lost, in replies.
    """

    replies: int
    malformed: int = 0
    lost: float = 0.0

    def note_malformed(self, nearness: float) -> None:
        """Count a malformed reply by its nearness to the form, in [0, 1]."""
        self.malformed += 1
        self.lost += 1.0 - form_of(nearness)

    def note_cut(self) -> None:
        """Count a reply that was cut off after its answer: it earns no form, and loses no value."""
        self.lost += 1.0

    @property
    def form(self) -> float:
        """The reward for form: 0.05 if no reply was malformed, graded below."""
        return FORM_SHARE * max(0.0, 1.0 - self.lost / self.replies)

    def earned(self, value: float) -> float:
        """Return the reward, form aside, of an episode worth `value` in [0, 1]: in [0, 0.95].

        Each malformed reply costs the same share of it: none of it is left if all were malformed,
        so that leaving the decision to chance never beats trying.
        """
        return (1.0 - FORM_SHARE) * value * max(0.0, 1.0 - self.malformed / self.replies)
