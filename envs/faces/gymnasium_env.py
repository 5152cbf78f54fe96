"""The Gymnasium face: a world with one role to play is a `gymnasium.Env`, in tokens or text."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import gymnasium

from tokengym.envs.catalogue import Policy, make_world, policy
from tokengym.envs.core.errors import EpisodeStateError, OptionError, RoleError
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.faces.spaces import Tokens, UnicodeText
from tokengym.envs.tokens.codec import Codec, TokenArray, resolve
from tokengym.envs.tokens.episode import Episode

Observation = TokenArray | str

_TASK_INDICES = 2**31
_RESET_OPTIONS = ("task", "split", "index")


class TextEnv(gymnasium.Env[Observation, Observation]):
    """One world as a Gymnasium environment.

    Description:
        A policy reads a text and answers with a text. In mode `tokens` an observation is the whole
        conversation so far as token ids, and it is append-only: the next observation begins with
        the present one and the action, token for token. In mode `text` it is only what is new.
    Observation space:
        `Tokens(codec.vocab_size, max_tokens)` or `UnicodeText`.
    Action space:
        `Tokens(codec.vocab_size, max_tokens)` or `UnicodeText`. Any content is a legal reply.
    Reward:
        a multiple of 2⁻¹⁶ within the world's declared range.
    Starting state:
        a Task of `split`, drawn by the environment's generator, or the one in
        `reset(options={"task": task})` or `reset(options={"split": ..., "index": ...})`.
    Episode end:
        `terminated` by the world's rules; `truncated` when the conversation outgrows `max_tokens`.
    Info:
        `text` (what is new), `terms` (named parts of the reward), `metrics`, `task` (fingerprint),
        `cost` (0 where a world has no safety cost), at the end also `stop_reason`.

    Args:
        world: id of the world.
        level: one of the world's levels; the first one if `None`.
        mode: `tokens` or `text`.
        codec: `byte`, or a codec object.
        split: where `reset` draws Tasks from.
        max_tokens: budget of the conversation in tokens (characters in mode `text`).
        bound: in a world of several roles, a scripted policy, or the name of a baseline, for each
            role but one.
        render_mode: `ansi` for the conversation as text, or `None`.
        **options: options of the world.

    Raises:
        UnknownWorldError: if there is no such world.
        OptionError: if an argument is not one of those listed.
        RoleError: if not exactly one role is left to play.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 4}  # type: ignore[misc]

    def __init__(
        self,
        world: str,
        level: str | None = None,
        mode: Literal["tokens", "text"] = "tokens",
        codec: Codec | str = "byte",
        split: str = "train",
        max_tokens: int = 32768,
        bound: Mapping[str, Policy | str] | None = None,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        if mode not in ("tokens", "text"):
            raise OptionError(f"mode must be 'tokens' or 'text', got {mode!r}")
        if split not in SPLITS:
            raise OptionError(f"split must be one of {list(SPLITS)}, got {split!r}")
        if render_mode not in (None, "ansi"):
            raise OptionError(f"render_mode must be 'ansi' or None, got {render_mode!r}")
        if max_tokens < 1:
            raise OptionError(f"max_tokens must be at least 1, got {max_tokens}")
        self.world: World = make_world(world, level, **options)
        self.mode = mode
        self.split = split
        self.max_tokens = max_tokens
        self.codec: Codec = resolve(codec)
        self.render_mode = render_mode
        self._bound = {role: policy(world, who) for role, who in (bound or {}).items()}
        self.role = _role_to_play(self.world.spec.roles, self._bound)
        if mode == "tokens":
            # A budget ends the episode before an observation outgrows it, but the last reply, which
            # the final observation repeats, may itself be as long as the budget.
            longest = 2 * max_tokens
            self.observation_space = Tokens(self.codec.vocab_size, longest)
            self.action_space = Tokens(self.codec.vocab_size, max_tokens)
        else:
            self.observation_space = UnicodeText(max_tokens)
            self.action_space = UnicodeText(max_tokens)
        self._episode: Episode | None = None
        self._turn: Turn | None = None
        self._task: Task | None = None
        self._transcript: list[str] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; see the class for `options`.

        Raises:
            OptionError: if an option is unknown.
            TaskError: if a given Task belongs to another world.
        """
        super().reset(seed=seed)
        self._task = self._choose_task(options or {})
        self._transcript = []
        if self.mode == "tokens":
            self._episode = Episode(self.world, self._task, self.codec, max_tokens=self.max_tokens)
            turn = self._episode.turn
        else:
            turn = self.world.start(self._task)
        turn, _ = self._let_others_speak(turn)
        return self._present(turn), self._info(turn, {})

    def step(self, action: Observation) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play one reply.

        Args:
            action: token ids in mode `tokens`, a string in mode `text`.

        Raises:
            EpisodeStateError: before `reset` or after the end.
            TokenError: if the tokens are not of the action space.
        """
        if self._turn is None or self._turn.done:
            raise EpisodeStateError("no episode is under way; call reset()")
        turn = self._speak(action)
        turn, earned = self._let_others_speak(turn, turn.rewards.get(self.role, 0.0))
        terms = dict(turn.terms.get(self.role, {}))
        return self._present(turn), earned, turn.terminated, turn.truncated, self._info(turn, terms)

    def render(self) -> str | None:
        """Return the conversation so far as text, or `None` without a render mode."""
        if self.render_mode is None:
            return None
        return "\n".join(self._transcript)

    def _speak(self, action: Observation | str) -> Turn:
        """Let whoever is to speak say `action`."""
        if self._episode is not None:
            turn = self._episode.act(action)  # type: ignore[arg-type]
            if self.render_mode is not None:
                said = self._episode.conversation_of(self.role)
                self._transcript.append(next(f"> {m.text}" for m in reversed(said) if m.own))
            return turn
        if not isinstance(action, str):
            raise OptionError(f"in mode 'text' an action is a string, got {type(action).__name__}")
        if self.render_mode is not None:
            self._transcript.append(f"> {action}")
        return self.world.reply(action)

    def _let_others_speak(self, turn: Turn, earned: float = 0.0) -> tuple[Turn, float]:
        """Play the bound roles until it is our turn again or the episode is over."""
        while not turn.done and turn.role != self.role:
            text = self._bound[turn.role](self.world, turn, self.np_random)
            if self._episode is not None:
                turn = self._episode.act(self._episode.codec.write(text))
            else:
                turn = self.world.reply(text)
            earned += turn.rewards.get(self.role, 0.0)
        return turn, earned

    def _choose_task(self, options: Mapping[str, Any]) -> Task:
        unknown = sorted(set(options) - set(_RESET_OPTIONS))
        if unknown:
            raise OptionError(f"reset takes the options {list(_RESET_OPTIONS)}, got {unknown}")
        task = options.get("task")
        if task is not None:
            if not isinstance(task, Task):
                raise OptionError(f"option 'task' must be a Task, got {type(task).__name__}")
            return task
        split, index = options.get("split", self.split), options.get("index")
        if index is None:
            size = self.world.size(split)
            # An empty split is refused by `task`, which knows why it is empty.
            index = int(self.np_random.integers(_TASK_INDICES if size is None else max(size, 1)))
        return self.world.task(split, index)

    def _present(self, turn: Turn) -> Observation:
        self._turn = turn
        if self.render_mode is not None:
            self._transcript.append(turn.text)
        if self._episode is not None:
            # Users keep and change what they are given; the transcript goes on growing.
            return self._episode.observation_of(self.role).copy()
        return turn.text

    def _info(self, turn: Turn, terms: Mapping[str, float]) -> dict[str, Any]:
        assert self._task is not None
        info: dict[str, Any] = {
            "text": turn.text,
            "terms": dict(terms),
            "metrics": dict(turn.metrics),
            "task": self._task.fingerprint,
            "cost": turn.metrics.get("cost", 0.0),
        }
        if turn.stop_reason is not None:
            info["stop_reason"] = turn.stop_reason.value
        return info


def _role_to_play(roles: tuple[str, ...], bound: Mapping[str, Policy]) -> str:
    unknown = sorted(set(bound) - set(roles))
    if unknown:
        raise RoleError(f"roles are {list(roles)}, got {unknown} in bound")
    free = [role for role in roles if role not in bound]
    if len(free) != 1:
        raise RoleError(
            f"a Gymnasium env plays one role; bind all of {list(roles)} but one, {free} are free"
        )
    return free[0]
