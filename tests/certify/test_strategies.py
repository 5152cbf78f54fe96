"""Laws of the search for replies without understanding: it finds what pays, and repeats itself."""

from collections.abc import Callable

import numpy as np
import pytest

from tokengym.agents.certify.strategies import (
    Replies,
    Strategy,
    StrategySpace,
    Trials,
    search_space,
)
from tokengym.envs.core.seeding import generator

Law = Callable[[int, int], float]
RNG = np.random.default_rng(0)
SHOWN = [(int(a), int(b)) for a, b in RNG.integers(0, 1000, size=(80, 2))]
CHOSEN, FRESH = SHOWN[:40], SHOWN[40:]


def replies(shown: tuple[int, int]) -> Replies:
    """What two simple rules say of the numbers shown."""
    a, _ = shown
    return {"low": (str(a),), "high": (str(a + 10_000),)}


def earned(law: Law, shown: tuple[int, int], strategy: Strategy) -> float:
    """1 less the distance from a law of the two numbers; 0 where it is far, or no number."""
    said = strategy.reply("a {} b {} c".format(*shown), 0, replies(shown))
    try:
        distance = abs(float(said or "") - law(*shown))
    except ValueError:
        return 0.0
    return max(0.0, 1.0 - distance / 10_000)


def found(law: Law, count: int = 1000) -> Strategy:
    """The best strategy on the chosen Tasks."""
    texts = [["a {} b {} c".format(*shown)] for shown in CHOSEN]
    space = StrategySpace.of(texts, [replies(shown) for shown in CHOSEN])
    trials = Trials[tuple[int, int], Strategy](
        CHOSEN, lambda shown, strategy: earned(law, shown, strategy)
    )
    return search_space(trials, space, count, generator("strategies", 1)).who


@pytest.mark.parametrize(
    "law",
    [lambda a, b: 2 * a + 3 * b + 50, lambda a, b: a + 10_000 * (b > 500)],
    ids=["weights", "a threshold"],
)
def test_a_hidden_rule_is_found_and_holds_elsewhere(law: Law) -> None:
    best = found(law)
    alone = [Strategy(best.space, rule) for rule in ("low", "high")]
    scored, *simple = (np.mean([earned(law, at, who) for at in FRESH]) for who in (best, *alone))
    assert scored > 0.9 > max(simple), str(best)


def test_the_same_seed_tries_the_same_strategies() -> None:
    def law(a: int, b: int) -> float:
        return a + b

    assert str(found(law, 100)) == str(found(law, 100))
