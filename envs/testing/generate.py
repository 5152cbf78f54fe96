"""Running a check on generated inputs."""

import warnings
from collections.abc import Callable
from typing import Any

import hypothesis
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.errors import HypothesisWarning


def try_all(
    check: Callable[..., None], *arguments: st.SearchStrategy[Any], examples: int, seed: int | None
) -> None:
    """Call `check` with generated arguments; an error is raised for the simplest of them.

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
        suppress_health_check=list(HealthCheck),  # pyright: ignore[reportArgumentType]
    )
    with warnings.catch_warnings():
        # Printing a failure with long replies is worth a warning to Hypothesis, which would hide
        # the failure where warnings are errors.
        warnings.simplefilter("ignore", HypothesisWarning)
        limits(test)()
