"""Laws over everything that drives an episode: the same replies, the same texts, rewards and end.

The reference is a loop over the World that is written here and uses nothing of the drivers.
"""

import asyncio
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest

from tests.contract import bargain
from tests.every import every
from tokengym.envs import Rollouts, baselines, make_world, play, register, spec, specs
from tokengym.envs.core.episode import TextEpisode
from tokengym.envs.core.play import Policy, record_replies
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.envs.gymnasium.aec_env import TextAECEnv
from tokengym.envs.gymnasium.configured_env import Mode
from tokengym.envs.gymnasium.env import TextEnv
from tokengym.envs.registry import scripted_opponent
from tokengym.envs.tokens.codec import ByteCodec
from tokengym.envs.tokens.episode import Episode

LEVELS = [(row.id, row.levels[0]) for row in specs().values() if row.id.startswith("tokengym/")]
CASES = [*LEVELS, ("tokengym/Disruption-v2", "private"), (bargain.SPEC.id, "short")]
HAGGLE = [(bargain.SPEC.id, level) for level in bargain.SPEC.levels]
CODEC = ByteCodec()
Reply = tuple[str, bool]


@dataclass(frozen=True)
class Seen:
    """One role's side of an episode, and the replies of the others."""

    texts: tuple[str, ...]
    others: tuple[str, ...]
    total: float
    terms: Mapping[str, float]
    metrics: Mapping[str, float]
    reason: StopReason | None


@dataclass(frozen=True)
class Case:
    """What is played: a Task in one role, by given replies, against scripts."""

    world: World
    task: Task
    role: str
    opponents: Mapping[str, Policy]
    replies: tuple[Reply, ...]

    @property
    def id(self) -> str:
        return self.world.spec.id

    def make(self) -> World:
        return make_world(self.id, self.world.level)

    def said(self) -> Iterator[Reply]:
        yield from self.replies
        while True:
            yield "", False


class Reader:
    """Adds up what a role is shown and paid."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.total = 0.0
        self.terms: dict[str, float] = {}

    def pay(self, reward: float, terms: Mapping[str, float]) -> None:
        self.total += reward
        for name, value in terms.items():
            self.terms[name] = self.terms.get(name, 0.0) + value

    def seen(self, others: Sequence[str], last: Turn) -> Seen:
        metrics = {name: value for name, value in last.metrics.items() if value == value}
        texts, terms = tuple(self.texts), {n: v for n, v in self.terms.items() if v}
        return Seen(texts, tuple(others), self.total, terms, metrics, last.stop_reason)


def reference(case: Case) -> Seen:
    """Drive the World itself, with a stream for each role from Task and role alone."""
    world, reader, others, said = case.make(), Reader(), [], case.said()
    rngs = {role: generator(case.task.fingerprint, role) for role in case.opponents}
    turn = world.start(case.task)
    reader.pay(turn.rewards.get(case.role, 0.0), turn.terms.get(case.role, {}))
    while not turn.done:
        if turn.role == case.role:
            reader.texts.append(turn.text)
            text, complete = next(said)
        else:
            text, complete = case.opponents[turn.role](world, turn, rngs[turn.role]), True
            others.append(text)
        turn = world.reply(text, complete=complete)
        reader.pay(turn.rewards.get(case.role, 0.0), turn.terms.get(case.role, {}))
    return reader.seen(others, turn)


def _others(episode: TextEpisode, role: str) -> list[str]:
    return [
        each.reply.text
        for each in episode.exchanges
        if each.reply is not None and each.asked.role != role
    ]


def scripts(case: Case) -> Seen:
    """`play`, whose policies say the replies; cut-off replies are no scripts'."""
    said, reader = case.said(), Reader()

    def speak(world: World, turn: Turn, rng: np.random.Generator) -> str:
        return next(said)[0]

    played = play(case.make(), case.task, {case.role: speak}, opponents=case.opponents)
    return _replayed(case, played.replies, reader)


def recorded(case: Case) -> Seen:
    """`record_replies`, given the replies of all roles."""
    said, replies = case.said(), []
    world = case.make()
    rngs = {role: generator(case.task.fingerprint, role) for role in case.opponents}
    turn = world.start(case.task)
    while not turn.done:
        mine = turn.role == case.role
        other = case.opponents.get(turn.role)
        replies.append(
            next(said)[0] if mine or other is None else other(world, turn, rngs[turn.role])
        )
        turn = world.reply(replies[-1])
    return _replayed(case, replies, Reader())


def _replayed(case: Case, replies: Sequence[str], reader: Reader) -> Seen:
    played = record_replies(case.make(), case.task, replies)
    pairs = list(zip(played.turns, played.replies, strict=False))
    reader.texts = [turn.text for turn, _ in pairs if turn.role == case.role]
    for turn in played.turns:
        reader.pay(turn.rewards.get(case.role, 0.0), turn.terms.get(case.role, {}))
    others = [reply for turn, reply in pairs if turn.role != case.role]
    assert played.returns[case.role] == reader.total
    return reader.seen(others, played.turns[-1])


def rollouts(case: Case, codec: str | None = None) -> Seen:
    """`Rollouts`, in text or in tokens."""
    rollout = Rollouts(case.make(), role=case.role, opponents=case.opponents, codec=codec).start(
        case.task
    )
    reader = Reader()
    for text, complete in case.said():
        if rollout.done:
            break
        reader.texts.append(rollout.text)
        reason = "stop" if complete else "length"
        if codec is None:
            rollout.say(text, reason)
        else:
            rollout.act(CODEC.write(text), reason)
        reader.pay(rollout.rewards[-1], rollout.terms)
    assert rollout.total == reader.total
    return reader.seen(_others(rollout.episode, case.role), rollout.turn)


def token_rollouts(case: Case) -> Seen:
    return rollouts(case, "byte")


def gymnasium_env(case: Case, mode: Mode = "text") -> Seen:
    """A Gymnasium environment; a mode of tokens has no other way to be cut off than no end."""
    env = TextEnv(case.id, case.world.level, mode=mode, opponents=dict(case.opponents))
    env.reset(seed=11, options={"task": case.task})
    reader, kept = Reader(), []
    for text, _ in case.said():
        reader.texts.append(env.turn.text)
        action = text if mode == "text" else np.array(CODEC.write(text), dtype=np.int64)
        observation, reward, terminated, truncated, info = env.step(action)
        kept.append((observation, np.array(observation)))
        reader.pay(float(reward), info["terms"])
        if terminated or truncated:
            break
    assert all(np.array_equal(shown, copied) for shown, copied in kept)
    episode = env._episode
    assert episode is not None
    return reader.seen(_others(episode, case.role), env.turn)


def gymnasium_tokens(case: Case) -> Seen:
    return gymnasium_env(case, "tokens")


def agents(case: Case, mode: Mode = "text") -> Seen:
    """A PettingZoo environment in which all roles are agents, by the loop of its users."""
    env = TextAECEnv(case.id, case.world.level, mode=mode)
    env.reset(seed=5, options={"task": case.task})
    reader, others, said = Reader(), [], case.said()
    rngs = {role: generator(case.task.fingerprint, role) for role in case.opponents}
    for agent in env.agent_iter():
        _, reward, terminated, truncated, info = env.last()
        if agent == case.role:
            reader.pay(float(reward), {})
        if terminated or truncated:
            env.step(None)
            continue
        if agent == case.role:
            reader.texts.append(info["text"])
            text = next(said)[0]
        else:
            text = case.opponents[agent](env.world, env.turn, rngs[agent])
            others.append(text)
        env.step(text if mode == "text" else np.array(CODEC.write(text), dtype=np.int64))
    reader.terms = dict(reference(case).terms)  # `last` gives no terms of several steps
    return reader.seen(others, env.turn)


def agents_tokens(case: Case) -> Seen:
    return agents(case, "tokens")


def token_episode(case: Case) -> Seen:
    """An `Episode`, forked before each reply: the twin goes on."""
    episode = Episode(case.make(), case.task, roles=(case.role,), opponents=case.opponents)
    reader = Reader()
    episode.advance()
    for text, complete in case.said():
        if episode.done:
            break
        reader.texts.append(episode.turn.text)
        episode.fork().say("OFFER 1")
        episode.act(CODEC.write(text), "stop" if complete else "length")
        episode.advance()
    reader.pay(*episode.collect(case.role))
    return reader.seen(_others(episode, case.role), episode.turn)


def tinker_env(case: Case) -> Seen:
    """The cookbook's `Env`."""
    from tinker_cookbook.rl.types import ActionExtra

    from tokengym.agents.tinker.env import TinkerEnv

    env = TinkerEnv(case.make(), case.task, "byte", role=case.role, opponents=case.opponents)
    reader = Reader()

    async def run() -> None:
        await env.initial_observation()
        for text, complete in case.said():
            reader.texts.append(env.coordinator.episode.turn.text)
            extra: ActionExtra = {"stop_reason": "stop" if complete else "length"}
            step = await env.step(CODEC.write(text), extra=extra)
            parts = {n[5:]: float(v) for n, v in step.metrics.items() if n.startswith("term/")}
            reader.pay(step.reward, parts)
            if step.episode_done:
                return

    asyncio.run(run())
    episode = env.coordinator.episode
    return reader.seen(_others(episode, case.role), episode.turn)


def scripted_in_tokens(case: Case) -> Seen:
    """Demonstrations' rollouts: a script in one role, in tokens."""
    from tokengym.agents.tinker.scripted_rollout import roll_out_scripted

    said, texts = case.said(), []

    def speak(world: World, turn: Turn, rng: np.random.Generator) -> str:
        texts.append(turn.text)
        return next(said)[0]

    rollout = asyncio.run(
        roll_out_scripted(case.make(), case.task, CODEC, case.role, speak, case.opponents)
    )
    known = reference(case)
    return Seen(
        tuple(texts), known.others, rollout.total_reward, known.terms, dict(rollout.metrics),
        known.reason,
    )  # fmt: skip


IN_TEXT: list[Callable[[Case], Seen]] = [
    *(scripts, recorded, rollouts, token_rollouts, gymnasium_env, gymnasium_tokens),
    *(agents, agents_tokens, token_episode),
]
CUT_OFF: list[Callable[[Case], Seen]] = [rollouts, token_rollouts, token_episode]
if find_spec("tinker"):
    IN_TEXT += [tinker_env, scripted_in_tokens]
    CUT_OFF += [tinker_env]


@pytest.fixture(autouse=True)
def bargain_is_registered(fresh_registry: None) -> None:
    register(bargain.SPEC)


@cache
def case_of(world_id: str, level: str, index: int, *, cut: bool) -> Case:
    """A Task in the world's first role, with the replies of its random policy, or cut-off ones."""
    world = make_world(world_id, level)
    role, task = world.spec.roles[0], world.task("test", index)
    known = baselines(world_id)
    named = {"seller": "random"} if world_id == bargain.SPEC.id else {}
    opponents = {
        other: known[named.get(other) or scripted_opponent(world_id, other)]
        for other in spec(world_id).roles
        if other != role
    }
    played = play(world, task, {role: known["random"]}, opponents=opponents)
    mine = [
        reply
        for turn, reply in zip(played.turns, played.replies, strict=False)
        if turn.role == role
    ]
    replies = tuple((reply, not cut or number % 2 == 1) for number, reply in enumerate(mine))
    return Case(world, task, role, opponents, replies)


@pytest.mark.parametrize("drive", IN_TEXT, ids=lambda drive: drive.__name__)
@every(("world_id", "level"), CASES)
def test_every_driver_answers_and_pays_replies_alike(
    drive: Callable[[Case], Seen], world_id: str, level: str
) -> None:
    for index in (0, 1):
        case = case_of(world_id, level, index, cut=False)
        assert drive(case) == reference(case)


@pytest.mark.parametrize("drive", CUT_OFF, ids=lambda drive: drive.__name__)
@every(("world_id", "level"), CASES)
def test_every_driver_answers_and_pays_cut_replies_alike(
    drive: Callable[[Case], Seen], world_id: str, level: str
) -> None:
    case = case_of(world_id, level, 1, cut=True)
    assert drive(case) == reference(case)


@pytest.mark.parametrize(("world_id", "level"), HAGGLE)
@pytest.mark.parametrize("codec", [None, "byte"])
def test_what_is_left_when_a_rollout_is_stopped_is_paid(
    world_id: str, level: str, codec: str | None
) -> None:
    """Stopped after n replies, a rollout earns what n replies and then silence earn."""
    for index in (0, 1):
        case = case_of(world_id, level, index, cut=False)
        for said in range(len(case.replies)):
            world = case.make()
            rollout = Rollouts(world, role=case.role, opponents=case.opponents, codec=codec).start(
                case.task
            )
            for text, _ in case.replies[:said]:
                rollout.say(text)
            before = rollout.episode.exchanges[:]
            rollout.stop()
            silent = case.make()
            turn = silent.start(case.task)
            for each in before:
                assert each.reply is not None
                turn = silent.reply(each.reply.text)
            while not turn.done:
                turn = silent.reply("", complete=False)
            assert rollout.total == silent.returns[case.role] == sum(rollout.rewards)
            assert rollout.turn.stop_reason is StopReason.ABANDONED


@pytest.mark.parametrize("mode", ["text", "tokens"])
@pytest.mark.parametrize(("world_id", "level"), HAGGLE)
def test_an_episode_that_outgrows_its_budget_pays_the_whole_return(
    world_id: str, level: str, mode: Mode
) -> None:
    """Wherever a budget ends an episode, every role's rewards are its return, in each adapter."""
    case = case_of(world_id, level, 1, cut=False)
    for budget in range(1, 400, 23):
        env = TextEnv(
            case.id, level, mode=mode, token_budget=budget, opponents=dict(case.opponents)
        )
        if budget == 1:
            with pytest.warns(UserWarning, match="more than token_budget"):
                env.reset(options={"task": case.task})
        else:
            with_warning(env, case.task)
        paid, done, said = 0.0, False, case.said()
        while not done:
            text = next(said)[0]
            action = text if mode == "text" else np.array(CODEC.write(text), dtype=np.int64)
            _, reward, terminated, truncated, _ = env.step(action)
            paid, done = paid + float(reward), terminated or truncated
        assert paid == env.world.returns[case.role]
        aec = TextAECEnv(case.id, level, mode=mode, token_budget=budget)
        with_warning(aec, case.task)
        earned, said = dict.fromkeys(bargain.ROLES, 0.0), case.said()
        for agent in aec.agent_iter():
            _, reward, terminated, truncated, _ = aec.last()
            earned[agent] += float(reward)
            text = next(said)[0]
            action = text if mode == "text" else np.array(CODEC.write(text), dtype=np.int64)
            aec.step(None if terminated or truncated else action)
        assert earned == dict(aec.world.returns)


def with_warning(env: TextEnv | TextAECEnv, task: Task) -> None:
    """Reset an environment whose first text may not fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env.reset(options={"task": task})


def test_opponents_draw_by_task_whoever_plays() -> None:
    replies = {}
    for index in (0, 1):
        case = case_of(bargain.SPEC.id, "long", index, cut=False)
        greedy = Case(case.world, case.task, case.role, case.opponents, (("OFFER 3", True),))

        def draws(world: World, turn: Turn, rng: np.random.Generator) -> str:
            return f"OFFER {rng.integers(10, size=50).sum()}"

        against = [reference(case).others, reference(greedy).others, rollouts(greedy).others]
        both = play(case.make(), case.task, {**case.opponents, case.role: draws})
        against.append(
            tuple(r for t, r in zip(both.turns, both.replies, strict=False) if t.role != case.role)
        )
        assert len(set(against)) == 1
        replies[index] = against[0]
    assert replies[0] != replies[1]


def test_a_policy_draws_the_same_whoever_stands_against_it() -> None:
    case = case_of(bargain.SPEC.id, "long", 0, cut=False)
    known, mine = baselines(case.id), []
    for other in ("random", "null"):
        played = play(
            case.make(), case.task, {case.role: known["random"]}, seed=(4, 2),
            opponents={"seller": known[other]},
        )  # fmt: skip
        pairs = zip(played.turns, played.replies, strict=False)
        mine.append([reply for turn, reply in pairs if turn.role == case.role])
    assert mine[0] == mine[1]
    assert mine[0] != [reply for reply, _ in case.replies]


@pytest.mark.parametrize("split", list(bargain.SIZES))
def test_tasks_are_drawn_by_their_splits_size(split: str) -> None:
    env = TextEnv(bargain.SPEC.id, split="train")
    drawn = set()
    for seed in range(60):
        env.reset(seed=seed, options={"split": split})
        assert env._episode is not None
        drawn.add((env._episode.task.split, env._episode.task.index))
    assert drawn == {(split, index) for index in range(bargain.SIZES[split])}
