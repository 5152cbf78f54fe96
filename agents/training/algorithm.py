"""What a step learns from: estimator, credit, filter and denominator; which loop supports it."""

from dataclasses import dataclass
from typing import Literal

from tokengym.agents.settings import Settings, option
from tokengym.envs.core.errors import OptionError
from tokengym.rewards.advantages import MINIMUM_SPREAD


@dataclass(frozen=True)
class Algorithm(Settings):
    """From rewards to advantages.

    A group is *dead* if what its rollouts are compared by spreads no more than `min_spread`: the
    returns (with `remax`, the greedy rollout's among them), or with credit by turn what is compared
    at a turn, at every turn. Whole groups are dead or live, never single rollouts. Whatever the
    estimator, a dead group's advantages are exactly 0.

    Attributes:
        estimator: from rewards to advantages; functions of `tokengym.rewards.advantages`, by name.
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

    estimator: Literal[
        "group_centred", "group_standardised", "leave_one_out", "reinforce_plus_plus", "remax"
    ] = option("group_centred", "from rewards to advantages")
    credit: Literal["episode", "turn", "exact"] = option(
        "episode",
        "one advantage for a rollout, or one for each turn; exact where the world knows it",
    )
    filter: Literal["keep", "drop", "resample"] = option(
        "keep", "what becomes of groups without a spread; resample draws others in their place"
    )
    min_spread: float = option(
        MINIMUM_SPREAD, "largest spread of a group that counts as none", least=0
    )
    resample_tokens: int | None = option(
        None, "token budget of a step for other groups; what its own cost if not given", least=0
    )
    denominator: Literal["all", "live"] = option("all", "the groups that normalise the loss")

    def __post_init__(self) -> None:
        """Refuse unsupported settings, naming them."""
        super().__post_init__()
        if self.resample_tokens is not None and self.filter != "resample":
            raise OptionError(
                f"--resample-tokens {self.resample_tokens} needs --filter resample, "
                f"got --filter {self.filter}"
            )
        if self.estimator == "remax" and self.credit != "episode":
            raise OptionError(
                "--estimator remax compares whole returns with the greedy rollout's and needs "
                f"--credit episode, got --credit {self.credit}"
            )

    def beyond_cookbook(self) -> list[str]:
        """Return the names of the settings that the cookbook's loop does not support.

        It centres the returns of every group. Its one filter, `remove_constant_reward_groups`, is
        `drop` by exact equality; it counts nothing.
        """
        seams = Algorithm(filter="drop" if self.filter == "drop" else "keep")
        names = ("estimator", "credit", "filter", "min_spread", "denominator")
        return [name for name in names if getattr(self, name) != getattr(seams, name)]
