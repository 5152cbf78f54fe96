"""`check_world`: every law that a world keeps, on a world of your own."""

from collections.abc import Mapping

from tokengym.envs.core.rollout import Policy
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
    """Return the laws that can be checked of `subject`, the simplest first."""
    return tuple(law for law in LAWS if law.applies(subject))


def check_world(
    world: WorldLike,
    *,
    policies: Mapping[str, Policy] | None = None,
    tasks: int = 12,
    examples: int = 25,
    seed: int | None = None,
) -> tuple[Law, ...]:
    """Check every law of `tokengym.testing.LAWS` on a world, the simplest first.

    Args:
        world: a world as an object, by its id (at its first level), or as (id, level). An object
            may have any options and needs no registration; the laws of Gymnasium ids are checked
            of worlds given by id only.
        policies: scripted policies by name, as `WorldSpec.baselines` has them; those of the spec
            if `None`. Without an `oracle`, what concerns one is not checked.
        tasks: Tasks over which means are compared, at least 2; fewer if a split holds fewer.
        examples: Hypothesis's examples of a check that generates replies, at least 1.
        seed: seed of everything random, to repeat a run; `None` leaves Hypothesis's to itself.

    Returns:
        the laws that were checked.

    Raises:
        LawBroken: an AssertionError, for the first law that is broken. Its message is the law, the
            world, the level, the Task and what was observed.
    """
    subject = Subject(world, policies=policies, tasks=tasks, examples=examples, seed=seed)
    checked = laws(subject)
    for law in checked:
        law.check(subject)
    return checked
