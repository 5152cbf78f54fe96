"""The figures of a step under the names that the field uses, beside the cookbook's."""

from collections.abc import Mapping
from typing import Any, cast

from tinker_cookbook.utils import ml_log

_ALL = "env/all/"
NAMED: Mapping[str, str] = {
    "mean_reward": f"{_ALL}reward/total",
    **{
        name: f"{_ALL}{name}"
        for name in (
            "correct_rate",
            "reward_tie_group_rate",
            "reward_uniform_group_rate",
            "reward_tie_pair_rate",
            "reward_unique_fraction_mean",
        )
    },
}
"""Metrics by the names they have by themselves, and where the loops log them; docs/study.md defines
them."""
_TOKENS = (f"{_ALL}total_ob_tokens", f"{_ALL}total_ac_tokens", "train/tokens")


class NamedMetrics(ml_log.MultiplexLogger):
    """Logs what it is given and, of a step, the named figures.

    Args:
        usual: the cookbook's logger, which this one stands in for.
    """

    def __init__(self, usual: ml_log.Logger) -> None:
        super().__init__(cast("ml_log.MultiplexLogger", usual).loggers)

    def log_metrics(self, metrics: dict[str, Any], step: int | None = None) -> None:
        """Log metrics, each once."""
        super().log_metrics(metrics | named(metrics), step)


def named(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return the named figures of a step, as far as it has them.

    `tokens_per_second` counts the tokens that its rollouts read and sampled, or those of its
    demonstrations, over the whole step: sampling, training and saving.
    """
    found = {name: metrics[key] for name, key in NAMED.items() if key in metrics}
    tokens, seconds = sum(metrics.get(key, 0) for key in _TOKENS), metrics.get("time/total", 0.0)
    return {**found, **({"tokens_per_second": tokens / seconds} if tokens and seconds else {})}
