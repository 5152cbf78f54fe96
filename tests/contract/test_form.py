"""Laws of form in every grammar: decoration changes nothing, and a malformed reply always costs.

That it costs at every level is a law of `tokengym.testing`, see `test_worlds.py`.
"""

from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pytest

from tests.contract.grammars import OF_EACH_GRAMMAR
from tokengym.envs.core.odd_replies import LINE_DECORATIONS, WHOLE_DECORATIONS
from tokengym.envs.core.play import PlayedEpisode, Policy, play
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.testing import Subject

LINES = (*LINE_DECORATIONS.values(), "* {}")
"""Decorations of every line of a reply."""
WHOLES = (
    *WHOLE_DECORATIONS.values(),
    "$\\boxed{{\\text{{{}}}}}$",
    "Let me think about it first. The price is 3.\n\n{}",
    "{} # cheap",
    "{} (as prices are low)",
    "{}\r\n",
    "<think>\nIs 3 enough?\n</think>\n\n{}",
    "{}\n<think>\nThe price is 3.",
)
"""Decorations around a whole reply."""
WITHDRAWN = (
    *("{reply}\n{word}", "{reply}\nNo, that is too much.\n{word} unclear"),
    *("{reply}\n**{word}:** 1\u20142", "{reply}\n- {word} (in 10)"),
    *(
        "{reply}\nFinal answer: {word}: about half",
        "<think>\n{reply}",
        "<think>\n{reply}\n</think>",
    ),
    "{reply}\n</think>\n",
)
"""Replies whose answer was taken back, or stands in thinking; their first word begins a command."""
PROSE = (
    "I would say that this depends on a number of things that are hard to know.",
    "Sure! Here is my answer to your question, step by step, as you asked for it.",
    "The best choice is to wait until more is known about it, and then to decide.",
    "Let us first look at the numbers: 12, 7 and 3. They add up to 22, which is fine.",
    "To solve this we can use a formula, which I am going to derive in what follows.",
    "As a language model I cannot do this, but here are some tips that might help you.",
    "Yes, certainly; it is more likely than not, and the reason for it is the weather.",
    "import numpy as np\nfor i in range(10):\n    print(i, np.sqrt(i))\n",
)

HOSTILE = (
    *("", "\n\n\n", "\x00\x01\x7f", "\u202e\u2066 drow \u2069", "BATTERY 1e999", "LABEL", "?" * 50),
    *("9" * 5000, "Probability: " + "1" * 400, "TRIP " + "O1," * 500, "a" * 100_000),
)
"""Replies that no grammar may take for a good one."""
subject = cache(Subject)
each_grammar = pytest.mark.parametrize("case", OF_EACH_GRAMMAR, ids="-".join)


@each_grammar
def test_decorated_replies_of_the_oracle_earn_what_bare_ones_do(case: tuple[str, str]) -> None:
    under_test = subject(case)
    oracle = under_test.policies["oracle"]
    bare = episode(under_test, oracle)
    for decoration in LINES:
        lines = decorated(oracle, partial(each_line, decoration))
        assert outcome(episode(under_test, lines)) == outcome(bare), decoration
    for decoration in WHOLES:
        whole = decorated(oracle, decoration.format)
        assert outcome(episode(under_test, whole)) == outcome(bare), decoration


def first_word(reply: str) -> str:
    """The word that a statement begins with; of a call, with its bracket."""
    return reply[: reply.index("(") + 1] if reply.endswith(")") else reply.split()[0].rstrip(":")


@each_grammar
def test_withdrawn_replies_of_the_oracle_are_malformed_at_every_turn(case: tuple[str, str]) -> None:
    under_test = subject(case)
    role = under_test.spec.roles[0]
    said: list[str] = []

    def note(reply: str) -> str:
        said.append(reply)
        return PROSE[0]

    # Malformed replies leave every world alike: the oracle says the same after any of them.
    episode(under_test, decorated(under_test.policies["oracle"], note))
    for form in WITHDRAWN:
        withdrawn = (form.format(reply=one, word=first_word(one)) for one in said)
        record = episode(under_test, lambda *_, replies=withdrawn: next(replies))
        assert not any(well_formed(record, role)), form


@pytest.mark.nightly
@each_grammar
def test_malformed_replies_earn_less_than_any_well_formed_ones(case: tuple[str, str]) -> None:
    under_test = subject(case)
    role = under_test.spec.roles[0]
    best = max(episode(under_test, always(prose)).returns[role] for prose in PROSE)
    compared = 0
    for name, policy in under_test.policies.items():
        record = episode(under_test, policy)
        if all(well_formed(record, role)):
            assert best < record.returns[role], name
            compared += 1
    assert compared


@each_grammar
def test_malformed_replies_seldom_tie(case: tuple[str, str]) -> None:
    under_test = subject(case)
    role = under_test.spec.roles[0]
    records = [episode(under_test, always(prose)) for prose in PROSE]
    assert len({record.returns[role] for record in records}) >= 6
    for record in (*records, *(episode(under_test, always(reply)) for reply in HOSTILE)):
        assert not any(well_formed(record, role)), record.replies


@each_grammar
def test_neither_repetition_nor_length_pays(case: tuple[str, str]) -> None:
    under_test = subject(case)
    role = under_test.spec.roles[0]
    for prose in PROSE:
        once = episode(under_test, always(prose)).returns[role]
        for longer in (f"{prose} {prose}", "\n".join([prose] * 5), f"{prose}{' more' * 50}"):
            assert episode(under_test, always(longer)).returns[role] <= once


@each_grammar
def test_replies_cut_off_are_graded_below_whole_ones(case: tuple[str, str]) -> None:
    under_test = subject(case)
    role, form = under_test.spec.roles[0], under_test.make().expected_form

    def earn(text: str) -> float:
        return episode(under_test, always(text), complete=False).returns[role]

    # Of a world with several forms, the one this level asks for.
    asked = max(form.splitlines(), key=earn)
    earned = [earn(text) for text in ("", PROSE[0], asked[: len(asked) // 2], asked)]
    assert earned == sorted(set(earned))
    oracle = episode(under_test, under_test.policies["oracle"])
    assert earned[-1] < oracle.returns[role]


def episode(under_test: Subject, policy: Policy, *, complete: bool = True) -> PlayedEpisode:
    """Play the first training Task; with `complete=False` the first role is always cut off."""
    world, task = under_test.make(), under_test.task("train", 0)
    if complete:
        return play(world, task, policy, seed=under_test.key())
    turn, rng = world.start(task), under_test.rng()
    turns, replies = [turn], []
    while not turn.done:
        replies.append(policy(world, turn, rng))
        turn = world.reply(replies[-1], complete=turn.role != under_test.spec.roles[0])
        turns.append(turn)
    return PlayedEpisode(task, tuple(turns), tuple(replies), world.returns)


def outcome(record: PlayedEpisode) -> list[object]:
    """What each Turn showed and paid."""
    return [(turn.text, turn.rewards, turn.metrics) for turn in record.turns]


def well_formed(record: PlayedEpisode, role: str) -> list[bool]:
    pairs = zip(record.turns, record.turns[1:], strict=False)
    return [bool(answer.metrics["well_formed"]) for asked, answer in pairs if asked.role == role]


def always(reply: str) -> Policy:
    return lambda world, turn, rng: reply


def decorated(policy: Policy, decorate: Callable[[str], str]) -> Policy:
    def play_decorated(world: World, turn: Turn, rng: np.random.Generator) -> str:
        return decorate(policy(world, turn, rng))

    return play_decorated


def each_line(decoration: str, reply: str) -> str:
    return "\n".join(decoration.format(line) for line in reply.split("\n"))
