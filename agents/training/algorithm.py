"""What a step learns from: estimator, credit, filter and denominator; which loop supports it."""

from dataclasses import dataclass
from typing import Literal, get_args

from tokengym.envs.core.errors import OptionError
from tokengym.rewards.advantages import MINIMUM_SPREAD

Estimator = Literal[
    "group_centred", "group_standardised", "leave_one_out", "reinforce_plus_plus", "remax"
]
"""Functions of `tokengym.rewards.advantages`, by name."""
Credit = Literal["episode", "turn", "exact"]
Filter = Literal["keep", "drop", "resample"]
Denominator = Literal["all", "live"]


@dataclass(frozen=True)
class Algorithm:
    """How a step learns from its groups.

    A group is *dead* if what its rollouts are compared by spreads no more than `min_spread`: the
    returns (with `remax`, the greedy rollout's among them), or with credit by turn what is compared
    at a turn, at every turn. Whole groups are dead or live, never single rollouts. Whatever the
    estimator, a dead group's advantages are exactly 0.

    Attributes:
        estimator: from rewards to advantages.
        credit: `episode`, one advantage for all tokens of a rollout, from its return; `turn`, one
            for each turn, from the returns to go; `exact`, one for each turn, from the credit that
            the world knows exactly and reports as the metric `credit`.
        filter: what becomes of dead groups. `keep`: they are sent like the others. `drop`: they are
            not sent. `resample`: not sent, and groups of further Tasks are sampled in their place.
        min_spread: largest spread that counts as none, in the unit of what is compared.
        resample_tokens: most tokens, read and sampled, that a step may spend on further groups, if
            a group costs no more than the most expensive one of the step so far; `None` for as
            many as the step's own groups cost.
        denominator: Tinker's losses are sums over tokens. `all`: sums as they are, in which dead
            groups take up their places with zeros. `live`: what is sent is scaled by the batch's
            groups / its live groups, so that a live group weighs 1 / (number of live ones).

    Raises:
        OptionError: if a value is not one of these, or two do not go together.
    """

    estimator: Estimator = "group_centred"
    credit: Credit = "episode"
    filter: Filter = "keep"
    min_spread: float = MINIMUM_SPREAD
    resample_tokens: int | None = None
    denominator: Denominator = "all"

    def __post_init__(self) -> None:
        """Refuse unsupported settings, naming them."""
        for name, allowed in (
            ("estimator", Estimator),
            ("credit", Credit),
            ("filter", Filter),
            ("denominator", Denominator),
        ):
            value = getattr(self, name)
            if value not in get_args(allowed):
                raise OptionError(f"{name} must be one of {list(get_args(allowed))}, got {value!r}")
        if not self.min_spread >= 0.0:
            raise OptionError(f"min_spread must be >= 0, got {self.min_spread!r}")
        if self.resample_tokens is not None and self.filter != "resample":
            raise OptionError(
                f"resample_tokens={self.resample_tokens} needs filter='resample', "
                f"got filter={self.filter!r}"
            )
        if self.resample_tokens is not None and self.resample_tokens < 0:
            raise OptionError(f"resample_tokens must be >= 0, got {self.resample_tokens}")
        if self.estimator == "remax" and self.credit != "episode":
            raise OptionError(
                "estimator='remax' compares whole returns with the greedy rollout's and needs "
                f"credit='episode', got credit={self.credit!r}"
            )

    def beyond_cookbook(self) -> list[str]:
        """Return the names of the settings that the cookbook's loop does not support.

        It centres the returns of every group. Its one filter, `remove_constant_reward_groups`, is
        `drop` by exact equality; it counts nothing.
        """
        seams = Algorithm(filter="drop" if self.filter == "drop" else "keep")
        names = ("estimator", "credit", "filter", "min_spread", "denominator")
        return [name for name in names if getattr(self, name) != getattr(seams, name)]
