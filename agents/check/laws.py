"""Every law that a world keeps, on a world of your own: `tokengym.testing`."""

from collections.abc import Mapping

from tokengym.agents.certify.bench import Bench, CertifySettings
from tokengym.agents.certify.checks import leaked
from tokengym.agents.certify.sources.worlds import TokengymWorld
from tokengym.envs.core.play import Policy
from tokengym.envs.registry import spec
from tokengym.envs.testing import episodes, gymnasium_laws, returns, tasks, twins
from tokengym.envs.testing.law import Law, LawBroken, law, require
from tokengym.envs.testing.subject import Subject, WorldLike

_FEW_TASKS = 6
"""Tasks to choose a rule on, and as many to score it."""


@law(per_level=False)
def no_rule_finds_the_answer_in_the_prompt(subject: Subject) -> None:
    """No rule finds the oracle's reply in the prompt by the characters around it."""
    policies = subject.policies
    opponent = policies.get("scripted", policies["random"])
    others = dict.fromkeys(subject.spec.roles[1:], opponent)
    source = TokengymWorld(subject.make(), policies.get("oracle"), others)
    bench = Bench(source, settings=CertifySettings(tasks=_FEW_TASKS))
    found = leaked.no_solution_leakage.find(bench)
    require(not found.counts, f"{found.found}; {found.example}")


LAWS: tuple[Law, ...] = (
    *(
        value
        for module in (tasks, episodes, twins, returns, gymnasium_laws)
        for value in vars(module).values()
        if isinstance(value, Law)
    ),
    no_rule_finds_the_answer_in_the_prompt,
)
"""Every law of a world, the simplest first; the last is a check of `tokengym certify`."""


def laws(subject: Subject) -> tuple[Law, ...]:
    """Return the laws that apply to `subject`, the simplest first."""
    return tuple(one for one in LAWS if one.applies(subject))


def broken_laws(subject: Subject, *, of_world: bool = True) -> dict[str, str]:
    """Return by its name each law that a level breaks, and what was observed.

    Args:
        subject: the level.
        of_world: whether to check the costly laws of the world as a whole too.
    """
    broken = {}
    for one in laws(subject):
        if of_world or one.per_level:
            try:
                one.check(subject)
            except LawBroken as error:
                broken[error.law] = str(error)
    return broken


def check_world(
    world: WorldLike,
    *,
    policies: Mapping[str, Policy] | None = None,
    tasks: int = 12,
    examples: int = 25,
    seed: int | None = None,
    ties: float = 0.5,
) -> tuple[Law, ...]:
    """Check that a world passes all contract tests of `tokengym.testing.LAWS`, the simplest first.

    Args:
        world: a world as an object, an id (of all its levels), or (id, level). An object may have
            any options and need not be registered; laws about a Gymnasium id are checked only of
            worlds given by id.
        policies: scripted policies by name, as `WorldSpec.baselines` has them; those of the spec
            if `None`. Without an `oracle`, policies are compared with the optimum only.
        tasks: number of Tasks on which mean returns are compared, at least 2.
        examples: number of examples that Hypothesis generates for a law, at least 1.
        seed: makes a run repeatable; with `None` Hypothesis generates other examples each time.
        ties: largest share of groups of eight noisy rollouts in which all returns may be equal.

    Returns:
        the laws that were checked.

    Raises:
        LawBroken: an AssertionError, for the first law that is broken. Its message has the law, the
            world, the level, the Task and what was observed.
        ValueError: if a number is too small, or the world has no training Tasks.
    """
    cases = [(world, level) for level in spec(world).levels] if isinstance(world, str) else [world]
    subjects = [
        Subject(case, policies=policies, tasks=tasks, examples=examples, seed=seed, ties=ties)
        for case in cases
    ]
    for subject in subjects:
        for one in laws(subject):
            if one.per_level or subject is subjects[0]:
                one.check(subject)
    return laws(subjects[0])
