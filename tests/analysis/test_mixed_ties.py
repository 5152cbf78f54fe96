"""Laws of groups that mix simple policies: what ties is counted once, and seldom more remains."""

from itertools import combinations

from benchmarks.mixed_ties import BLOCK, HEADER, as_models_write, joined, measure, simple_policies
from benchmarks.pages import read_block, table_rows
from tests.analysis.digits import POLICIES, SPEC, Digits
from tests.analysis.test_page_blocks import ROOT
from tokengym.agents.evaluation.scripted import play_all
from tokengym.envs.core.play import Policy
from tokengym.envs.registry import specs


def test_policies_that_never_differ_are_one_of_the_others() -> None:
    policies: dict[str, Policy] = {name: POLICIES[name] for name in ("null", "noisy", "random")}
    policies["other words"] = lambda world, turn, rng: (
        f"I say\n{POLICIES['null'](world, turn, rng)}"
    )
    world = Digits(SPEC)
    returns = {
        name: [
            episode.returns[world.spec.roles[0]]
            for episode in play_all(world, world.first_tasks("test", 9), policy)
        ]
        for name, policy in policies.items()
    }
    pairs = [*combinations(returns.values(), 2)]
    tied = sum(a == b for one, other in pairs for a, b in zip(one, other, strict=True))
    row = dict(zip(HEADER, measure(world, policies, 9), strict=True))
    assert row["policies that always tie"] == "`null`, `other words`"
    assert row["tied pairs"] == f"{tied / 9 / len(pairs):.3f}"
    assert row["tied pairs of the others"] == f"{(tied - 9) / 9 / 3:.3f}"


def test_fractions_have_two_decimals_and_whole_numbers_stay() -> None:
    policy = as_models_write(lambda world, turn, rng: "P 0.12345 .5 1\nBATTERY -1.5 for 12")
    world = Digits(SPEC)
    turn = world.start(world.task())
    assert policy(world, turn, None) == "P 0.12 .5 1\nBATTERY -1.50 for 12"  # type: ignore[arg-type]


def test_where_policies_differ_fewer_than_one_pair_in_twenty_ties_at_every_level() -> None:
    header, *rows = table_rows(read_block(ROOT / "docs" / "tables.md", BLOCK))
    assert tuple(header) == HEADER
    cells = [dict(zip(header, row, strict=True)) for row in rows]
    shown = [(row["world"], level) for row in cells for level in row["levels"].split(", ")]
    assert sorted(shown) == sorted(
        (spec.short_name, f"`{level}`") for spec in specs().values() for level in spec.levels
    )
    for row in cells:
        assert float(row["tied pairs of the others"].split(" to ")[-1]) < 0.05
        assert float(row["tied pairs"].split(" to ")[-1]) <= 0.05 or row["policies that always tie"]


def test_levels_at_which_the_same_policies_tie_share_a_row() -> None:
    rows = [
        ("a", "`x`", "0.100", "`null`, `half`", "0.010"),
        ("a", "`y`", "0.000", "", "0.000"),
        ("a", "`z`", "0.050", "`null`, `half`", "0.030"),
        ("b", "`x`", "0.200", "", "0.200"),
    ]
    first = ("a", "`x`, `z`", "0.050 to 0.100", "`null`, `half`", "0.010 to 0.030")
    assert joined(rows) == [first, rows[1], rows[3]]


def test_simple_policies_neither_know_the_answer_nor_plan() -> None:
    assert not simple_policies(Digits(SPEC)).keys() & {"oracle"}
