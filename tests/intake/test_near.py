"""Laws of near texts: spellings are one text, series are many, whatever the order."""

import random
import unicodedata
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.intake.near import group_by, group_near, normal_form

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
SAME = [
    "Will the “café” in Łódź open by May 2024?",
    "will the 'cafe\u0301' in Łódź open by May 2024",
    "By May 2024, will the café in Łódź open?",
    "Will the cafés in Łódź be opened by May 2024?",
    "Will the new café in Łódź open by May 2024?",
]
APART = [
    "Will the café in Łódź open by May 2025?",
    "Will bridge 1 open?",
    "Will bridge 2 open?",
    "Will the price of oil be higher in March than in May?",
    "Will the price of tin be higher in March than in May?",
    "Will x stay > 5?",
    "Will x stay < 5?",
    "Will x stay above -5?",
    "Will x stay above 5?",
    "",
    "?",
]


@given(st.permutations([*SAME, *APART]))
def test_spellings_are_together_and_others_apart_in_any_order(texts: list[str]) -> None:
    groups = dict(zip(texts, group_near(texts), strict=True))
    assert len({groups[text] for text in SAME}) == 1
    assert len({groups[text] for text in APART} | {groups[SAME[0]]}) == len(APART) + 1


@pytest.mark.nightly
@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@given(st.text())
def test_every_form_of_a_text_normalises_alike(form: Form, text: str) -> None:
    assert normal_form(unicodedata.normalize(form, text)) == normal_form(text)


@given(st.lists(st.lists(st.integers(0, 12), max_size=3), max_size=20), st.randoms())
def test_groups_are_the_components_of_what_shares_a_key(
    keys: list[list[int]], rng: random.Random
) -> None:
    groups = group_by(keys)
    for at, own in enumerate(keys):
        assert groups[at] <= at
        for other, theirs in enumerate(keys):
            if set(own) & set(theirs):
                assert groups[at] == groups[other]
    # As many as are left when whatever shares a key is merged again and again.
    parts: list[set[object]] = [{*own} or {f"alone {at}"} for at, own in enumerate(keys)]
    rng.shuffle(parts)
    merged: list[set[object]] = []
    for part in parts:
        touching = [one for one in merged if one & part]
        merged = [one for one in merged if not one & part] + [set().union(part, *touching)]
    assert len(set(groups)) == len(merged)
