"""`check_world`: every law that a world keeps, on a world of your own."""

from collections.abc import Mapping

from tokengym.envs.core.play import Policy
from tokengym.envs.registry import spec
from tokengym.envs.testing import episodes, gymnasium_laws, returns, tasks, twins
from tokengym.envs.testing.law import Law
from tokengym.envs.testing.subject import Subject, WorldLike

LAWS: tuple[Law, ...] = tuple(
    value
    for module in (tasks, episodes, twins, returns, gymnasium_laws)
    for value in vars(module).values()
    if isinstance(value, Law)
)
"""Every law of a world, the simplest first."""


def laws(subject: Subject) -> tuple[Law, ...]:
    """Return the laws that apply to `subject`, the simplest first."""
    return tuple(law for law in LAWS if law.applies(subject))


def check_world(
    world: WorldLike,
    *,
    policies: Mapping[str, Policy] | None = None,
    tasks: int = 12,
    examples: int = 25,
    seed: int | None = None,
) -> tuple[Law, ...]:
    """Check that a world keeps every law of `tokengym.testing.LAWS`, the simplest first.

    Args:
        world: a world as an object, an id (of all its levels), or (id, level). An object may have
            any options and need not be registered; laws about a Gymnasium id are checked only of
            worlds given by id.
        policies: scripted policies by name, as `WorldSpec.baselines` has them; those of the spec
            if `None`. Without an `oracle`, policies are compared with the optimum only.
        tasks: number of Tasks on which mean returns are compared, at least 2.
        examples: number of examples that Hypothesis generates for a law, at least 1.
        seed: makes a run repeatable; with `None` Hypothesis generates other examples each time.

    Returns:
        the laws that were checked.

    Raises:
        LawBroken: an AssertionError, for the first law that is broken. Its message has the law, the
            world, the level, the Task and what was observed.
        ValueError: if a number is too small, or the world has no training Tasks.
    """
    cases = [(world, level) for level in spec(world).levels] if isinstance(world, str) else [world]
    subjects = [
        Subject(case, policies=policies, tasks=tasks, examples=examples, seed=seed)
        for case in cases
    ]
    for subject in subjects:
        for law in laws(subject):
            if law.per_level or subject is subjects[0]:
                law.check(subject)
    return laws(subjects[0])
