"""Running a check on inputs that Hypothesis generates."""

import warnings
from collections.abc import Callable
from typing import Any

import hypothesis
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.errors import HypothesisWarning


def try_all(
    check: Callable[..., None],
    *arguments: st.SearchStrategy[Any],
    examples: int,
    seed: int | None,
) -> None:
    """Call `check` with generated arguments; what it raises is raised for the simplest of them.

    Args:
        check: raises if its arguments break a law.
        *arguments: a strategy for each argument.
        examples: how many times it is called where it raises nothing.
        seed: Hypothesis's seed; `None` leaves it to Hypothesis.
    """
    test = hypothesis.given(*arguments)(check)
    if seed is not None:
        test = hypothesis.seed(seed)(test)
    # Machines that run tests are shared: a deadline would measure the machine.
    limits = hypothesis.settings(
        max_examples=examples,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    with warnings.catch_warnings():
        # It warns of long replies in what it writes about a failure, in place of the failure where
        # warnings are errors.
        warnings.simplefilter("ignore", HypothesisWarning)
        limits(test)()
