"""An episode in text, with a budget of characters: what `Episode` is in tokens."""

from collections.abc import Sequence

from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import DecodedReply


class TextEpisode:
    """One episode of `world` on `task`, in which a role observes what is new to it.

    Args:
        world: a world that nothing else uses; the episode drives it.
        task: what to play.
        roles: whose conversations the budget bounds.
        max_tokens: characters that a role reads and writes at most. A text that would exceed them
            is not shown: the episode ends, and what is left is played as empty replies. Only the
            role's last reply may itself be longer.

    Attributes:
        turn: the Turn that is to be answered, or the last one.
        reply: the last reply.
        overflow: characters of the conversation with the text that did not fit; 0 if all did.

    Raises:
        TaskError: if the Task is not the world's.
    """

    def __init__(self, world: World, task: Task, *, roles: Sequence[str], max_tokens: int) -> None:
        self._world = world
        self._left = dict.fromkeys(roles, max_tokens)
        self._shown = dict.fromkeys(roles, "")
        self.max_tokens = max_tokens
        self.overflow = 0
        self.reply = DecodedReply("", complete=False)
        self.turn = self._show(world.start(task))

    def observation_of(self, role: str) -> str:
        """Return the text that is new to `role`, empty if it is none or did not fit."""
        return self._shown[role]

    def say(self, text: str) -> Turn:
        """Play a reply, an opponent's too.

        Raises:
            EpisodeStateError: after the end.
        """
        role = self.turn.role
        turn = self._world.reply(text)
        self.reply = DecodedReply(text, complete=True)
        if role in self._left:
            self._left[role] -= len(text)
        self.turn = self._show(turn)
        return self.turn

    def _show(self, turn: Turn) -> Turn:
        """Show a Turn's text to its role, or stop where it does not fit."""
        role = turn.role
        if role not in self._left:
            return turn
        left = self._left[role] = self._left[role] - len(turn.text)
        self._shown[role] = turn.text if left >= 0 else ""
        if left >= 0 or turn.done:
            return turn
        self.overflow = self.max_tokens - left
        return self._world.stop(StopReason.TOKEN_BUDGET, after=turn)
