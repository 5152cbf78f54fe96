"""A RolloutRecord: one rollout as plain data, and its JSON; what it is made from."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Self

import numpy as np

from tokengym.agents.rollouts.repetition import copies, repeats_itself
from tokengym.envs.core.episode import DecodedReply, TurnExchange
from tokengym.envs.core.errors import DataError
from tokengym.envs.core.play import PlayedEpisode
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn, expected_return

SCHEMA_VERSION = 1
"""Version of the records' fields; it goes up whenever older records can no longer be read."""

_SAME_IN_JSON = (
    *("world", "level", "split", "index", "fingerprint", "role", "stop_reason", "advantage"),
)
"""Fields of a record that its JSON holds by their names and as they are."""

REFUSED = "refused"
"""How the reason begins where an endpoint refused a conversation, rather than gave no answer."""


class SampledTokens(NamedTuple):
    """A reply in tokens, as it was sampled.

    Attributes:
        ids: the token ids, the end marker included.
        logprobs: log-probability of each, in nats; empty where the sampler returned none.
        pieces: text of each; joined they spell the reply as sampled.
        read: tokens of the whole observation that it answers.
        finish: why sampling ended; `None` if not known.
    """

    ids: Sequence[int]
    logprobs: Sequence[float]
    pieces: Sequence[str]
    read: int
    finish: str | None = None


def is_malformed(reply: DecodedReply, answer: Turn) -> bool:
    """Return whether the world rejected a reply: by its own metric where it has one."""
    well_formed = answer.metrics.get("well_formed")
    if well_formed is not None:
        return well_formed < 1.0
    return not reply.complete or answer.stop_reason is StopReason.MALFORMED


@dataclass(frozen=True)
class TurnRecord:
    """One reply of any role, with what it answered and what it earned.

    Attributes:
        role: who replied.
        read: the text that was new to that role.
        said: the reply; `None` where the episode was cut short instead of a reply.
        complete: whether the reply ended by itself rather than at the token limit.
        malformed: whether the world refused it.
        tokens: ids of the sampled tokens; empty for text and for roles other than the record's.
        logprobs: log-probability of each token, in nats; empty where not known.
        pieces: text of each token.
        prompt_tokens: tokens read, the whole conversation; `None` where not counted.
        completion_tokens: tokens written; `None` where not counted.
        finish: why sampling ended, by the sampler's or endpoint's word, or why there is no reply;
            `None` if not known.
        model: the model that replied, where an endpoint names another one than was asked for.
        reward: what the record's role earned by this turn.
        terms: the named parts of that reward.
        metrics: what the world reported about the turn; at the end, about the episode.
    """

    role: str
    read: str
    said: str | None
    complete: bool = True
    malformed: bool = False
    tokens: Sequence[int] = ()
    logprobs: Sequence[float] = ()
    pieces: Sequence[str] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    finish: str | None = None
    model: str | None = None
    reward: float = 0.0
    terms: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float | None] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the JSON of its attributes."""
        lists = {name: tuple(data[name]) for name in ("tokens", "logprobs", "pieces")}
        return cls(**{**data, **lists})


@dataclass(frozen=True)
class RolloutOrigin:
    """Why a rollout was played, by whom, and how it was sampled.

    Attributes:
        kind: `train`, `evaluation`, `play` or `check`.
        step: the training step; `None` outside training.
        group: number of the Task within the step or evaluation.
        member: number of the rollout within its group.
        kept: share of the step's groups that are on record, in (0, 1].
        policy: who played the role: a baseline's name, a run, a `tinker://` path, an endpoint.
        opponents: by other role, who played it.
        options: the world's options.
        temperature: of sampling; `None` for scripts and people.
        max_tokens: most tokens of a reply; `None` for scripts and people.
        seed: of the policy's randomness; `None` where it has none of its own.
    """

    kind: str
    step: int | None = None
    group: int = 0
    member: int = 0
    kept: float = 1.0
    policy: str = ""
    opponents: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None

    @property
    def place(self) -> tuple[int, int]:
        """Group and member."""
        return self.group, self.member


@dataclass(frozen=True)
class RolloutRecord:
    """One rollout of one role.

    Attributes:
        origin: what it was played for, by whom.
        world: id of the world.
        level: its level.
        split: split of the Task.
        index: index of the Task in its split.
        fingerprint: names the Task's instance.
        answer_fingerprint: names its answer and the options that decide the reward; empty if
            unknown, as in other tools' rollouts.
        role: whose rollout it is.
        turns: the replies of all roles, in order.
        stop_reason: why the episode ended.
        total: return of the role; `return` in JSON.
        advantage: what the trainer compared it to: return less baseline, scaled as the estimator
            does, the mean over turns where they differ; `None` outside training.
    """

    origin: RolloutOrigin
    world: str
    level: str
    split: str
    index: int
    fingerprint: str
    role: str
    turns: Sequence[TurnRecord]
    stop_reason: str
    total: float
    advantage: float | None = None
    answer_fingerprint: str = ""

    def is_of(self, task: "Task | RolloutRecord") -> bool:
        """Whether it was paid by the answer of a Task, or of another's, as far as is known."""
        answers = self.answer_fingerprint, task.answer_fingerprint
        return self.fingerprint == task.fingerprint and ("" in answers or len({*answers}) == 1)

    @property
    def own_turns(self) -> list[TurnRecord]:
        """The replies of the record's role."""
        return [turn for turn in self.turns if turn.role == self.role and turn.said is not None]

    @property
    def malformed(self) -> int:
        """Number of malformed replies of the role."""
        return sum(turn.malformed for turn in self.own_turns)

    @property
    def cut_off(self) -> int:
        """Number of replies of the role that ran out of tokens."""
        return sum(not turn.complete for turn in self.own_turns)

    @property
    def repeating(self) -> int:
        """Number of replies of the role that repeated themselves until they were cut off."""
        return sum(not turn.complete and repeats_itself(turn.said or "") for turn in self.own_turns)

    @property
    def copied(self) -> int:
        """Number of replies of the role that copy its first text."""
        own = self.own_turns
        return sum(copies(turn.said or "", own[0].read) for turn in own)

    @property
    def failure(self) -> str | None:
        """Why an endpoint ended the conversation: a kind, a colon, its words; else `None`."""
        last = self.turns[-1] if self.turns else None
        return last.finish if last is not None and last.said is None else None

    @property
    def lost(self) -> bool:
        """Whether it ended for want of an answer, which says nothing about the policy."""
        return self.failure is not None and not self.failure.startswith(REFUSED)

    @property
    def earned(self) -> float:
        """Mean return of the replies over outcomes, where that is known; else the return."""
        expected = self.metrics.get(expected_return(self.role))
        return self.total if expected is None else expected

    @property
    def metrics(self) -> Mapping[str, float | None]:
        """Metrics that the world reported at the end of the episode."""
        return self.turns[-1].metrics if self.turns else {}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, named as `docs/rollouts.md` documents them."""
        data = {"schema": SCHEMA_VERSION, **vars(self.origin), **vars(self)}
        for name in ("options", "opponents"):
            data[name] = dict(data[name])
        del data["origin"]
        data["return"] = data.pop("total")
        data["turns"] = [{**vars(turn)} for turn in data.pop("turns")]
        return data

    def to_json(self) -> str:
        """Return one line of JSON."""
        return json.dumps(
            self.to_dict(), separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned.

        Raises:
            DataError: if it is of another schema, or damaged.
        """
        version = data.get("schema")
        if version != SCHEMA_VERSION:
            raise DataError(
                f"a rollout has schema {version!r}; this version of Tokengym reads {SCHEMA_VERSION}"
            )
        try:
            return cls(
                RolloutOrigin(**{field.name: data[field.name] for field in fields(RolloutOrigin)}),
                turns=tuple(TurnRecord.from_dict(turn) for turn in data["turns"]),
                total=data["return"],
                answer_fingerprint=data["answer_fingerprint"],
                **{name: data[name] for name in _SAME_IN_JSON},
            )
        except (KeyError, TypeError) as error:
            raise DataError(f"a rollout is damaged: {error!r}") from error


def record_episode(
    origin: RolloutOrigin,
    task: Task,
    role: str,
    exchanges: Sequence[TurnExchange],
    *,
    sampled: Sequence[SampledTokens] = (),
    advantage: float | None = None,
) -> RolloutRecord:
    """Return the record of one role's side of a finished episode.

    Args:
        origin: what it was played for.
        task: what was played.
        role: whose rollout it is.
        exchanges: the replies of all roles, in order.
        sampled: the role's replies in tokens, in order; empty where it replied in text.
        advantage: of the rollout, in training.
    """
    own = iter(sampled)
    turns = []
    for exchange in exchanges:
        mine = exchange.asked.role == role and exchange.reply is not None
        turns.append(_turn(exchange, role, next(own, None) if mine else None))
    reason = exchanges[-1].paid.stop_reason if exchanges else None
    return RolloutRecord(
        origin,
        task.world,
        task.level,
        task.split,
        task.index,
        task.fingerprint,
        role,
        tuple(turns),
        "" if reason is None else reason.value,
        sum(turn.reward for turn in turns),
        advantage,
        task.answer_fingerprint,
    )


def record_play(origin: RolloutOrigin, played: PlayedEpisode, role: str) -> RolloutRecord:
    """Return the record of one role's side of an episode that was played in text."""
    exchanges = [
        TurnExchange(asked, DecodedReply(said, True), answer, answer)
        for asked, said, answer in zip(played.turns, played.replies, played.turns[1:], strict=False)
    ]
    return record_episode(origin, played.task, role, exchanges)


def _turn(exchange: TurnExchange, role: str, sampled: SampledTokens | None) -> TurnRecord:
    asked, reply, answer, paid = exchange
    metrics = {**answer.metrics, **paid.metrics}
    return TurnRecord(
        role=asked.role,
        read=asked.text,
        said=None if reply is None else reply.text,
        complete=reply is not None and reply.complete,
        malformed=reply is not None and is_malformed(reply, answer),
        tokens=() if sampled is None else tuple(sampled.ids),
        logprobs=() if sampled is None else tuple(map(_shortest, sampled.logprobs)),
        pieces=() if sampled is None else tuple(sampled.pieces),
        prompt_tokens=None if sampled is None else sampled.read,
        completion_tokens=None if sampled is None else len(sampled.ids),
        finish=None if sampled is None else sampled.finish,
        reward=paid.rewards.get(role, 0.0),
        terms=dict(paid.terms.get(role, {})),
        metrics={name: _finite(value) for name, value in metrics.items()},
    )


def _shortest(logprob: float) -> float:
    """Return the number with the fewest digits that is the same in single precision, as sampled."""
    return float(str(np.float32(logprob)))


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
