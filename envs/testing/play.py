"""Playing an episode while checking every Turn."""

from collections import Counter
from collections.abc import Iterator, Mapping

from tokengym.envs.core.episode import TextEpisode
from tokengym.envs.core.play import PlayedEpisode, Policy, drive
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.testing.law import TurnLaw, Violation, describe, quoted
from tokengym.rewards.bounds import GRID, RewardRangeError


class CheckedEpisode(TextEpisode):
    """One episode; a Turn that breaks one of the `TurnLaw`s raises a Violation.

    Args:
        world: the world; an episode under way in it is dropped.
        task: what is played.
        complete: whether replies count as complete where `say` is not told.
    """

    def __init__(self, world: World, task: Task, *, complete: bool = True) -> None:
        self._complete = complete
        self._spoken: Counter[str] = Counter()
        self._earned = dict.fromkeys(world.spec.roles, 0.0)
        try:
            super().__init__(world, task, roles=())
        except Exception as error:
            raise Violation(describe(error), task, TurnLaw.EVERY_TASK_CAN_BE_PLAYED) from error
        self._check("the opening")

    def say(self, text: str, *, complete: bool | None = None) -> Turn:
        """Play a reply, cut off unless `complete`, and return the Turn that answers it."""
        complete = self._complete if complete is None else complete
        limit, role = self.world.turn_limit, self.turn.role
        self._spoken[role] += 1
        late = f"{role!r} is asked for a reply after its {limit} turns"
        self._hold(TurnLaw.TURN_LIMIT_HOLDS, self._spoken[role] <= limit, late)
        what = f"the answer to {quoted(text)}{'' if complete else ', cut off,'}"
        try:
            super().say(text, complete=complete)
        except Exception as error:
            left = isinstance(error, RewardRangeError)
            law = TurnLaw.REWARDS_LIE_IN_THEIR_RANGE if left else TurnLaw.NO_REPLY_RAISES
            detail = str(error) if left else describe(error)
            raise Violation(f"{what}: {detail}", self.task, law) from error
        self._check(what)
        form = self.turn.metrics.get("well_formed")
        detail = f"{what} has well_formed={form!r}"
        self._hold(TurnLaw.ANSWERS_REPORT_THE_FORM, form in (0.0, 1.0), detail)
        return self.turn

    def _check(self, what: str) -> None:
        for law, holds, detail in self._laws(what):
            self._hold(law, holds, detail)

    def _laws(self, what: str) -> Iterator[tuple[TurnLaw, bool, str]]:
        """Yield each law of the Turn, whether it holds, and what was observed."""
        turn, spec = self.turn, self.world.spec
        kind = type(turn.text)
        yield TurnLaw.TEXTS_ARE_STRINGS, kind is str, f"the text of {what} is a {kind.__name__}"
        named = {turn.role, *turn.rewards, *turn.terms}
        yield TurnLaw.ROLES_ARE_DECLARED, named <= {*spec.roles}, f"{what} names {sorted(named)}"
        for role, reward in turn.rewards.items():
            paid = f"{what} pays {role!r} {reward!r}"
            declared, terms = spec.step_range[role], dict(turn.terms.get(role, {}))
            outside = f"{paid}, not in {declared}"
            yield TurnLaw.REWARDS_LIE_IN_THEIR_RANGE, reward in declared, outside
            yield TurnLaw.REWARDS_LIE_ON_THE_GRID, (reward * GRID).is_integer(), paid
            same = sum(terms.values()) == reward
            yield TurnLaw.TERMS_SUM_TO_THE_REWARD, same, f"{paid} for {terms}"
            self._earned[role] += reward
        why, ends = turn.stop_reason, (turn.terminated, turn.truncated)
        told = f"{what} has terminated={ends[0]}, truncated={ends[1]}, reason {why!r}"
        yield TurnLaw.AN_END_HAS_A_REASON, sum(ends) == (why is not None), told
        returns, due = dict(self.world.returns), self._earned
        told = f"after {what} {due} was paid, and the returns are {returns}"
        yield TurnLaw.REWARDS_SUM_TO_THE_RETURN, returns == due, told
        for role, value in returns.items() if turn.done else ():
            outside = f"{role!r} earned {value!r} in all, not in {spec.return_range[role]}"
            inside = value in spec.return_range[role]
            yield TurnLaw.REWARDS_LIE_IN_THEIR_RANGE, inside, outside

    def _hold(self, law: TurnLaw, holds: bool, detail: str) -> None:
        if not holds:
            raise Violation(detail, self.task, law)


def play(
    world: World,
    task: Task,
    policies: Mapping[str, Policy] | Policy,
    *,
    seed: object = None,
    complete: bool = True,
) -> PlayedEpisode:
    """Play an episode as `core.play.play` does, checking every Turn."""
    return drive(CheckedEpisode(world, task, complete=complete), policies, seed)
