"""Laws of episodes: the order of calls, what no reply can do, what bad replies earn."""

from collections.abc import Mapping

import numpy as np
from hypothesis import strategies as st

from tokengym.envs.core.errors import EpisodeStateError, RoleError
from tokengym.envs.core.odd_replies import HOSTILE, near_misses
from tokengym.envs.core.play import PlayedEpisode, Policy
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.envs.testing.generate import try_all
from tokengym.envs.testing.law import TurnLaw, Violation, law, quoted, refused, require
from tokengym.envs.testing.play import CheckedEpisode, play
from tokengym.envs.testing.subject import Subject

_NONSENSE = 0.2
"""Share of a baseline's replies that hostile ones take the place of."""


@law()
def replies_need_an_episode(subject: Subject) -> None:
    """A reply before the start or after the end of an episode is refused."""
    world = subject.make()
    _refuses(world, "before the start")
    for task in subject.tasks("train", 1):
        play(world, task, _fixed(""), seed=subject.key())
        _refuses(world, "after the end")


@law()
def other_roles_are_refused(subject: Subject) -> None:
    """A reply by a role whose turn it is not is refused, naming that role."""
    for task in subject.tasks("train", 1):
        world = subject.make()
        turn = world.start(task)
        for role in ("nobody", *(role for role in world.spec.roles if role != turn.role)):
            with refused(RoleError, role, f"a reply of {role!r} instead of {turn.role!r}", task):
                world.reply("x", role=role)


@law()
def scripted_policies_keep_the_laws(subject: Subject) -> None:
    """Scripted policies end their episodes, even with nonsense instead of some replies."""
    for task in subject.tasks("train", 2)[-1:]:
        for name, policy in subject.policies.items():
            _played(subject, name, task)
            play(subject.make(), task, _with_nonsense(policy), seed=subject.key(5))


@law()
def no_replies_break_an_episode(subject: Subject) -> None:
    """No sequence of replies, complete or cut off, raises an error or leaves a declared range."""
    tasks = subject.tasks("train", 4)

    def check(replies: list[tuple[str, bool]], task: Task) -> None:
        episode = CheckedEpisode(subject.make(), task)
        remaining = iter(replies)
        while not episode.turn.done:
            text, complete = next(remaining, ("", True))
            episode.say(text, complete=complete)

    sequences = st.lists(st.tuples(subject.replies, st.booleans()), max_size=6)
    if tasks:
        try_all(
            check, sequences, st.sampled_from(tasks), examples=subject.examples, seed=subject.seed
        )


@law()
def repeating_the_prompt_breaks_nothing(subject: Subject) -> None:
    """Repeating the prompt raises no error and leaves no declared range."""
    for task in subject.tasks("train", 1):
        play(subject.make(), task, lambda world, turn, rng: turn.text, seed=subject.key())


@law()
def malformed_replies_earn_no_more_than_well_formed_ones(subject: Subject) -> None:
    """An episode of malformed replies earns no more than any of well-formed ones."""
    near = near_misses(subject.make().expected_form)
    for place, task in enumerate(subject.tasks("train", 2)):
        bounds = _earned_in_form(subject, task)
        for reply in HOSTILE if place else (*HOSTILE, *near):
            record = play(subject.make(), task, _fixed(reply), seed=subject.key())
            if not any(_well_formed(record, subject.spec.roles[0])):
                _require_less(subject, record, bounds, quoted(reply))


@law()
def replies_cut_before_their_end_are_malformed(subject: Subject) -> None:
    """A reply cut before its statement is complete is malformed.

    The last line of a reply that was cut off is no statement: nobody knows how it was to end. Here
    it is the only one.
    """
    name = "oracle" if "oracle" in subject.policies else "random"
    for task in subject.tasks("train", 2)[-1:]:
        policy = _cut(subject.policies[name])
        record = play(subject.make(), task, policy, seed=subject.key(), complete=False)
        in_form = any(_well_formed(record, subject.spec.roles[0]))
        require(not in_form, "it is reported as well-formed", task)
        _require_less(subject, record, _earned_in_form(subject, task), f"{name!r} cut off")


@law()
def stopping_early_ends_the_episode(subject: Subject) -> None:
    """Stopping truncates an episode within its ranges, and it takes no more replies."""
    for task in subject.tasks("train", 4)[-1:]:
        world = subject.make()
        world.start(task)
        turn = world.stop()
        require(turn.truncated and not turn.terminated, "the last Turn is not truncated", task)
        require(turn.stop_reason is StopReason.TOKEN_BUDGET, f"{turn.stop_reason!r}", task)
        for role, value in world.returns.items():
            declared = world.spec.return_range[role]
            if value not in declared:
                detail = f"when stopped, {role!r} had {value!r}, not in {declared}"
                raise Violation(detail, task, TurnLaw.REWARDS_LIE_IN_THEIR_RANGE)
            require(turn.rewards.get(role, 0.0) == value, f"{role!r} was not paid {value}", task)
        _refuses(world, "after the stop")


def _refuses(world: World, when: str) -> None:
    with refused(EpisodeStateError, "", f"a reply {when}"):
        world.reply("x")


def _earned_in_form(subject: Subject, task: Task) -> dict[str, float]:
    """Return what the first role earns by each scripted policy that stays well-formed."""
    role = subject.spec.roles[0]
    records = {name: _played(subject, name, task) for name in subject.policies}
    return {
        name: record.returns[role]
        for name, record in records.items()
        if all(_well_formed(record, role))
    }


def _played(subject: Subject, name: str, task: Task) -> PlayedEpisode:
    """Return an episode of a scripted policy, played once for all laws."""
    key = name, task.fingerprint
    if key not in subject.records:
        policy = subject.policies[name]
        subject.records[key] = play(subject.make(), task, policy, seed=subject.key())
    return subject.records[key]


def _require_less(
    subject: Subject, malformed: PlayedEpisode, bounds: Mapping[str, float], what: str
) -> None:
    """Require that an episode earns no more than well-formed ones of scripted policies."""
    earned = malformed.returns[subject.spec.roles[0]]
    for name, bound in bounds.items():
        require(earned <= bound, f"{what} earned {earned}, {name!r} {bound}", malformed.task)


def _well_formed(record: PlayedEpisode, role: str) -> list[bool]:
    """Return whether each reply of a role was well-formed, by the metrics of the answers."""
    return [
        bool(answer.metrics["well_formed"])
        for asked, answer in zip(record.turns, record.turns[1:], strict=False)
        if asked.role == role
    ]


def _fixed(reply: str) -> Policy:
    return lambda world, turn, rng: reply


def _cut(policy: Policy) -> Policy:
    """Return a policy whose replies have one line, which has not ended."""

    def reply(world: World, turn: Turn, rng: np.random.Generator) -> str:
        return policy(world, turn, rng).partition("\n")[0]

    return reply


def _with_nonsense(policy: Policy) -> Policy:
    """Return a policy with nonsense instead of some of its replies."""

    def reply(world: World, turn: Turn, rng: np.random.Generator) -> str:
        if rng.random() < _NONSENSE:
            return HOSTILE[int(rng.integers(len(HOSTILE)))]
        return policy(world, turn, rng)

    return reply
