"""Laws of the grammar: the last line that matches counts, what is written is read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every import every
from tokengym.envs.core.grammar import SEVERAL
from tokengym.envs.disruption.claims import Fact, Quote, Unreadable
from tokengym.envs.disruption.evidence import FEATURES, Evidence
from tokengym.envs.disruption.grammar import Argument, PredictorAnswer, read_answer, read_argument
from tokengym.envs.disruption.labels import Target
from tokengym.envs.disruption.literature import Probabilities
from tokengym.testing import replies

ONE: tuple[Target, ...] = ("disruption",)
BOTH: tuple[Target, ...] = ("disruption", "novelty")
GOOD = "LABEL neutral\nP 0.2 0.3 0.5"
PAPER = Evidence("A  Fast Route", "We apply it.", 2000, "Physics", {"n_i": 3, "n_k": 0})

facts = st.builds(
    Fact,
    st.sampled_from(FEATURES),
    st.sampled_from([">=", "<=", "=", ">", "<"]),
    st.integers(-99, 9999).map(float),
)
quotes = st.builds(Quote, st.from_regex(r"[A-Za-z0-9 ,.]{1,40}", fullmatch=True))


@st.composite
def reports(draw: st.DrawFn) -> tuple[float, float, float]:
    a, b, c = draw(st.tuples(*[st.integers(1, 50)] * 3))
    return a / (a + b + c), b / (a + b + c), c / (a + b + c)


@given(
    labels=st.tuples(*[st.integers(0, 2)] * 2),
    both=st.tuples(reports(), reports()),
    claims=st.lists(facts | quotes, max_size=3),
    thoughts=st.text(alphabet="abc \n", max_size=50),
    targets=st.sampled_from([ONE, BOTH]),
)
def test_what_is_written_is_read_back_after_any_thoughts(
    labels: tuple[int, int],
    both: tuple[Probabilities, Probabilities],
    claims: list[Fact | Quote],
    thoughts: str,
    targets: tuple[Target, ...],
) -> None:
    n = len(targets)
    answer = PredictorAnswer(labels[:n], both[:n], tuple(claims))
    read = read_answer(f"{thoughts}\n{answer.write(targets, decimals=6)}", targets).value
    assert read is not None
    assert (read.labels, read.claims) == (answer.labels, answer.claims)
    for report, said in zip(read.reports, answer.reports, strict=True):
        assert report == pytest.approx(said, abs=1e-5)
        assert sum(report) == pytest.approx(1)


@given(label=st.sampled_from(["disruptive", "neutral"]), claims=st.lists(facts, max_size=2))
def test_arguments_are_read_back(label: str, claims: list[Fact]) -> None:
    argument = Argument(label, tuple(claims))
    assert read_argument(argument.write(), ONE) == argument


@every(
    "text",
    [
        "",
        "LABEL neutral",
        "P 0.2 0.3 0.5",
        "LABEL maybe\nP 0.2 0.3 0.5",
        "LABEL neutral\nP 0.2 0.3",
        "LABEL neutral\nP 0 0 0",
        "LABEL neutral\nP -0.2 0.7 0.5",
        "LABEL neutral\nP nan 0.5 0.5",
        "LABEL neutral\nP 0.20.30.5",
        "LABEL neutral\nP 0.2 0.3 0.5 0.1",
        "LABEL neutral or LABEL disruptive\nP 0.2 0.3 0.5",
        "LABEL neutral, LABEL disruptive\nP 0.2 0.3 0.5",
        "Not LABEL neutral\nP 0.2 0.3 0.5",
        "LABEL neutral\nP \u0660.2 0.3 0.5",
        f"{GOOD}\nLABEL: not sure",
        f"{GOOD}\nP unclear",
        f"{GOOD}\nProbabilities as above",
        f"{GOOD}\nLABEL neutral, P high\nLABEL neutral",
        "LABEL neutral\nP 0.2\u20140.3 0.3 0.5",
        f"<think>\n{GOOD}",
    ],
)
def test_an_incomplete_or_improper_answer_is_malformed(text: str) -> None:
    assert read_answer(text, ONE).value is None


def test_an_answer_cut_before_its_end_is_malformed() -> None:
    assert read_answer(GOOD, ONE, complete=False).value is None
    ended = read_answer(f"{GOOD}\nCLAIM n_i >=", ONE, complete=False)
    assert ended == read_answer(GOOD, ONE)
    assert read_argument("ARGUE neutral", ONE, complete=False) is None


@pytest.mark.parametrize("text", ["", "Are you sure?", "ARGUE magic", "CLAIM n_i >= 1"])
def test_an_argument_without_its_line_is_malformed(text: str) -> None:
    assert read_argument(text, ONE) is None


def test_a_challenger_may_argue_for_nothing() -> None:
    assert read_argument("ARGUE nothing", ONE) == Argument(None, ())
    assert read_argument(Argument(None, ()).write(), BOTH) == Argument(None, ())


@pytest.mark.parametrize(
    "text",
    [
        'LABEL: neutral\nP: 0.2, 0.3, 0.5\nCLAIM: n_i >= 3\nQUOTE: "we apply it"',
        "**LABEL neutral**\n**P 0.2 0.3 0.5**\n- CLAIM n_i >= 3.\n- QUOTE \u201cwe apply it\u201d",
        '> label Neutral\n> p (0.2, 0.3, 0.5)\n> claim n_i \u2265 3\n> quote "we apply it"',
        '```\nLABEL neutral\nP 0.2 0.3 0.5\nCLAIM n_i>=3\nQUOTE "we apply it"\n```',
        'LABEL <neutral>\nP <0.2> <0.3> <0.5>\nCLAIM n_i >= 3\nQUOTE "we apply it"',
        "LABEL neutral\nP(disruptive) = 0.2, P(consolidating) = 0.3, P(neutral) = 0.5\n"
        'CLAIM n_i >= 3\nQUOTE "we apply it"',
        'LABEL neutral P 0.2 0.3 0.5\nCLAIM n_i >= 3, QUOTE "we apply it"',
        "LABEL neutral (likely)\nP disruptive: 0.2, consolidating: 0.3, neutral: 0.5\n"
        '1. CLAIM n_i >= 3 because it is cited\n2. QUOTE "we apply it"',
        "<answer>LABEL neutral</answer>\nP\u00a00.2\u00a00.3\u00a00.5\n"
        'CLAIM n_i >= 3\nQUOTE "we apply it"',
    ],
)
def test_decoration_changes_nothing(text: str) -> None:
    bare = f'{GOOD}\nCLAIM n_i >= 3\nQUOTE "we apply it"'
    assert read_answer(text, ONE) == read_answer(bare, ONE)


def test_a_line_for_each_probability_is_read() -> None:
    listed = "P:\n- Disruptive: 20%\n- **Consolidating**: 0.3\n\n- neutral: 0.5"
    assert read_answer(f"LABEL neutral\n{listed}\nCLAIM n_i >= 3", ONE) == read_answer(
        f"{GOOD}\nCLAIM n_i >= 3", ONE
    )
    assert read_answer(f"LABEL neutral\n{listed}", ONE, complete=False).value is None


def test_of_contradicting_lines_the_last_counts() -> None:
    read, said = read_answer(f"LABEL disruptive\nP 0.9 0.1 0\n{GOOD}", ONE)
    assert read == read_answer(GOOD, ONE).value
    assert said == SEVERAL
    assert read is not None
    assert read.labels == (2,)


def test_an_unreadable_claim_withdraws_no_other_and_counts_as_false() -> None:
    read = read_answer(f"{GOOD}\nCLAIM n_i >= 3\nclaim: n_i about 4, P unknown", ONE).value
    assert read is not None
    assert [claim.holds(PAPER) for claim in read.claims] == [True, False]


def test_of_many_claims_the_last_three_count() -> None:
    many = "\n".join(f"CLAIM n_i >= {k}" for k in range(100))
    read = read_answer(f"{many}\n{GOOD}", ONE).value
    assert read is not None
    assert [claim.line for claim in read.claims] == [f"CLAIM n_i >= {k}" for k in (97, 98, 99)]


@pytest.mark.parametrize("shares", ["0.33 0.33 0.33", "0.4 0.4 0.4", "33 33 33", "33% 33% 33%"])
def test_probabilities_off_by_a_factor_are_rescaled(shares: str) -> None:
    read, said = read_answer(f"LABEL neutral\nP {shares}", ONE)
    assert read is not None
    assert read.reports[0] == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert bool(said) == (shares[:2] not in ("0.", "33") or shares in ("0.4 0.4 0.4", "33 33 33"))


@given(text=st.text(max_size=200) | replies("disruption"), targets=st.sampled_from([ONE, BOTH]))
def test_no_text_whatever_raises(text: str, targets: tuple[Target, ...]) -> None:
    read_answer(f"{text}\n{GOOD}\nCLAIM {text}\nQUOTE {text}", targets)
    argument = read_argument(f"ARGUE neutral\nCLAIM {text}\nQUOTE {text}", targets)
    for claim in () if argument is None else argument.claims:
        claim.holds(PAPER)
        assert claim.statement.isprintable() or isinstance(claim, Quote)


@given(fact=facts, shown=st.integers(0, 9999))
def test_a_fact_holds_exactly_where_its_interval_says(fact: Fact, shown: int) -> None:
    evidence = PAPER._replace(facts={fact.feature: shown})
    direct = {
        ">=": shown >= fact.value,
        "<=": shown <= fact.value,
        "=": shown == fact.value,
        ">": shown > fact.value,
        "<": shown < fact.value,
    }[fact.op]
    assert fact.holds(evidence) == direct
    assert not fact.holds(PAPER._replace(facts={}))


@every(
    ("line", "holds"),
    [
        ("CLAIM n_i >= 3", True),
        ("CLAIM n_i>2.5", True),
        ("CLAIM n_i = 2.5", False),
        ("CLAIM n_i < 3", False),
        ("CLAIM n_j >= 0", False),
        ("CLAIM cd_index >= 0", False),
        ("CLAIM cited_by_count > 5", False),
        ("CLAIM it is great", False),
        ('QUOTE "we APPLY"', True),
        ('QUOTE "a fast  route"', True),
        ('QUOTE "we refine"', False),
        ('QUOTE ""', False),
        ("QUOTE we apply", False),
    ],
)
def test_claims_hold_only_of_what_is_shown(line: str, holds: bool) -> None:
    read = read_answer(f"{GOOD}\n{line}", ONE).value
    assert read is not None
    assert [claim.holds(PAPER) for claim in read.claims] == [holds]


def test_a_quote_of_too_many_words_does_not_hold() -> None:
    words = "one two three four five six seven eight nine"
    evidence = PAPER._replace(abstract=words)
    assert not Quote(words).holds(evidence)
    assert Quote(words.removesuffix(" nine")).holds(evidence)
    assert not Quote("x" * 81).holds(PAPER._replace(abstract="x" * 200))


def test_an_unreadable_claim_is_shown_printable_and_short() -> None:
    read = read_argument("ARGUE neutral\nCLAIM \x1b[31m" + "a" * 500, ONE)
    assert read is not None
    assert isinstance(read.claims[0], Unreadable)
    assert len(read.claims[0].line) < 60
    assert "\x1b" not in read.claims[0].line
