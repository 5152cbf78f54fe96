"""Laws of reading a forecast: what is accepted, what is refused and why, and nothing raises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every import every
from tokengym.envs.forecasting.grammar import (
    LETTERS,
    describe_form,
    nearness_of_forecast,
    read_forecast,
    write_forecast,
)
from tokengym.testing import replies

ACCEPTED = {
    "Probability: 0.137": 0.137,
    "probability: .5": 0.5,
    "PROBABILITY: 1": 1.0,
    "Probability: 0.": 0.0,
    "Probability: 1e-3": 0.001,
    "Probability: 13.7%": 0.137,
    "Probability: 13.7 %": 0.137,
    "- thinking\n> `Probability: 0.137`.": 0.137,
    "Probability: +0.2": 0.2,
    "<answer>Probability: 40%</answer>": 0.4,
    "Probability: ~0.4": 0.4,
    "Probability: \u2248 40%": 0.4,
    "Probability: 2/5": 0.4,
    "**Probability:** 2 / 5.": 0.4,
    "Probability (yes): 0.4": 0.4,
    "Probability(yes) = 2/5, as it has rained": 0.4,
    "The probability that the answer is yes is 40 percent.": 0.4,
    "Final answer: 0.4": 0.4,
    "So the answer is $\\boxed{0.4}$.": 0.4,
    '```json\n{"probability": 0.4}\n```': 0.4,
    "Probability: <0.400>": 0.4,
    "**Final Answer:** \\boxed{\\text{Probability: } 0.137}": 0.137,
}
REFUSED = [
    *("", "0.5", "Probability: one half", "Probability: 0,5", "Probability: 0x1"),
    *("Probability: 1_0", "Probability: 0.4, or 0.6", "Probability: 0.3/0.7", "Probability: 1/0"),
    *("Probability: 1/2/3", "Probability: 1/2%", "Probability: ~0.3-0.5", "Probability (no): 0.4"),
    *("Probability: 1/2 Probability: 0.5", "Answer: 0.4 or 0.5"),
    "It depends. Probability: 0.4 if it rains, Probability: 0.6 otherwise.",
    "Probability: 0.7\nProbability is hard to tell.",
    "Probability: 0.7\nProbabilities: yes 0.1, no 0.9",
]
OUT_OF_RANGE = ["1.2", "-0.1", "101%", "nan", "inf", "-Infinity", "1e999", "1e3%", "3/2"]


@every(("reply", "value"), ACCEPTED.items())
def test_a_stated_probability_is_read(reply: str, value: float) -> None:
    assert read_forecast(reply, 0).value == pytest.approx((1.0 - value, value))


@every("reply", REFUSED)
def test_what_states_no_number_is_refused_with_the_expected_form(reply: str) -> None:
    value, said = read_forecast(reply, 0)
    assert value is None
    assert said.startswith("Malformed reply")
    assert said.endswith(describe_form(0))


@pytest.mark.parametrize("number", OUT_OF_RANGE)
def test_a_last_line_out_of_range_hides_no_earlier_one(number: str) -> None:
    value, said = read_forecast(f"Probability: 0.5\nProbability: {number}", 0)
    assert value is None
    assert number in said


@given(st.integers(0, 1000), st.text(max_size=50))
def test_three_decimals_survive_thinking_before_them(thousandths: int, thinking: str) -> None:
    read = read_forecast(f"{thinking}\nProbability: {thousandths / 1000:.3f}", 0).value
    assert read == (1.0 - thousandths / 1000, thousandths / 1000)


@given(
    st.text() | replies("forecast"),
    st.integers(0, 8).filter(lambda options: options != 1),
    st.booleans(),
)
def test_any_text_gives_a_distribution_or_a_reason(text: str, options: int, complete: bool) -> None:
    read, said = read_forecast(text, options, complete=complete)
    assert (read is None and said) or (
        read is not None
        and len(read) == (options or 2)
        and sum(read) == pytest.approx(1.0)
        and min(read) >= 0.0
    )


@pytest.mark.parametrize("options", [0, 3])
def test_a_cut_off_reply_states_nothing(options: int) -> None:
    whole = write_forecast((1.0 / (options or 2),) * (options or 2), options)
    assert "cut off" in read_forecast(whole, options, complete=False).said
    ended = read_forecast(f"{whole}\nQuestion: Will", options, complete=False)
    assert ended == read_forecast(whole, options)


@given(st.lists(st.integers(0, 100), min_size=2, max_size=26).filter(sum))
def test_a_stated_distribution_is_read_and_sums_to_one(weights: list[int]) -> None:
    shares = [weight / sum(weights) for weight in weights]
    cells = ", ".join(f"{name} {share:.3f}" for name, share in zip(LETTERS, shares, strict=False))
    read, said = read_forecast(f"Probabilities: {cells}", len(weights))
    assert read is not None
    assert said == ""
    assert sum(read) == pytest.approx(1.0)
    assert read == pytest.approx(shares, abs=0.01)


@every("options", range(2, 27))
def test_what_is_written_is_read(options: int) -> None:
    uniform = (1 / options,) * options
    assert read_forecast(write_forecast(uniform, options), options).value == pytest.approx(uniform)


@pytest.mark.parametrize("options", [0, 3])
def test_malformed_replies_are_graded_by_their_nearness(options: int) -> None:
    whole = write_forecast((1.0 / (options or 2),) * (options or 2), options)
    grades = [nearness_of_forecast(whole[:end], options) for end in range(0, len(whole), 3)]
    assert grades[0] == 0.0
    assert grades == sorted(set(grades))


@pytest.mark.parametrize(
    "reply",
    [
        *("Probabilities: A 0.5, B 0.3", "Probabilities: A 0, B 0, C 0"),
        *("Probabilities: A 0.5, C 0.3, B 0.2", "Probabilities: A 1.5, B -0.5, C 0"),
        *("Probabilities: A nan, B 0.5, C 0.5", "Probability: 0.5"),
    ],
)
def test_a_distribution_that_is_none_is_refused(reply: str) -> None:
    value, said = read_forecast(reply, 3)
    assert value is None
    assert said.startswith("Malformed reply")


@pytest.mark.parametrize("factor", [1.1, 1.5, 10.0, 100.0])
def test_a_common_factor_is_divided_out_and_remarked_on(factor: float) -> None:
    cells = ", ".join(f"{k} {factor * p:.4f}" for k, p in zip("ABC", (0.5, 0.3, 0.2), strict=True))
    found, said = read_forecast(f"Probabilities: {cells}", 3)
    assert found == pytest.approx((0.5, 0.3, 0.2))
    assert f"sum to {factor:.4g};" in said


@pytest.mark.parametrize("negated", [False, True])
def test_the_answer_that_is_asked_for_may_be_named(negated: bool) -> None:
    asked, other = ("no", "yes") if negated else ("yes", "no")
    for form in ("Probability of {}: 0.4", "Probability ({}): 0.4"):
        assert read_forecast(form.format(asked), 0, negated=negated).value == (0.6, 0.4)
        assert read_forecast(form.format(other), 0, negated=negated).value is None


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_lines_of_single_outcomes_are_read_once_all_ended(end: str) -> None:
    cut = end.join(["Probabilities:", "- **A**: 50%", "- **B:** 30%", "- C is about 20%"])
    assert read_forecast(cut, 3).value == pytest.approx((0.5, 0.3, 0.2))
    assert read_forecast(cut, 3, complete=False).value is None
    assert read_forecast(cut + end, 3, complete=False).value is not None
    assert read_forecast(f"{cut}{end}Probabilities: A 0, B 0, C 1", 3).value == (0.0, 0.0, 1.0)
    assert read_forecast(cut, 4).value is None
