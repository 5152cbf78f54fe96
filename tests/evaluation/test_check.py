"""Laws of certificates: a sound world keeps every contract, and each broken one is named."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.pages import read_block, table_rows
from tests.evaluation.digits import POLICIES, SPEC, Digits
from tests.forecasting.questions_file import plain, write_csv
from tokengym.agents.certify.level_tables import LIMITS_HEADER, table
from tokengym.agents.certify.levels import Contract, LevelCertificate, check
from tokengym.agents.cli import app
from tokengym.agents.evaluation.scripted import evaluate, play_all
from tokengym.agents.scale import shipped_scale
from tokengym.envs import registry
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.optimum import Optimum
from tokengym.envs.core.play import PlayedEpisode, Policy
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn, expected_return
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, import_object, make_world, spec
from tokengym.rewards.bounds import RewardRangeError

_MOST = 10**6 - 1


class Coded(Digits):
    """Shows what the number lacks to 999,999: an answer that is shown would break a contract."""

    def _begin(self, task: Task) -> Turn:
        super()._begin(task)
        return Turn("reader", f"{_MOST - self.number:06d}")


def decoding(policy: Policy) -> Policy:
    def decoded(world: World, turn: Turn, rng: np.random.Generator) -> str:
        number = f"{_MOST - int(turn.text[:6]):06d}"
        return policy(world, Turn("reader", number), rng)

    return decoded


CODED = {name: decoding(policy) for name, policy in POLICIES.items()}


def certify(world: World, policies: Mapping[str, Policy] = CODED) -> LevelCertificate:
    return check(world, policies, tasks=12)


def test_a_sound_world_keeps_every_contract() -> None:
    found = certify(Coded(SPEC))
    assert found.broken == {}
    assert found.returns["oracle"] == found.optimum == (1.0, 1.0, 1.0, 12)
    assert found.observed == (0.0, 1.0)
    assert found.declared == (0.0, 1.0)
    # A number among random bytes is read as an answer, seldom.
    assert found.malformed is not None
    assert 0.8 < found.malformed <= 1.0


def test_returns_are_those_of_evaluate_on_the_same_tasks() -> None:
    world = Coded(SPEC)
    tasks = [world.task("test", index) for index in range(12)]
    found = certify(world)
    for name, policy in CODED.items():
        assert found.returns[name] == evaluate(world, tasks, policy)


def test_ties_are_those_of_the_noisy_policy() -> None:
    ties = certify(Coded(SPEC)).ties
    assert ties["reward_tie_pair_rate"].value == pytest.approx(0.1, abs=0.03)
    assert ties["zero_advantage_probability_2"] == pytest.approx(ties["reward_tie_pair_rate"])
    assert ties["zero_advantage_probability_16"].value == 0.0
    assert 4.0 < ties["effective_group_size"].value < 10.0


def test_the_bytes_of_an_episode_are_the_prompt_the_reply_and_two_markers() -> None:
    found = check(Coded(SPEC), {**CODED, "noisy": CODED["oracle"]}, tasks=12)
    world = Coded(SPEC)
    lengths = [2 * len(world.start(world.task("test", index)).text) + 2 for index in range(12)]
    assert found.episode_bytes.value == pytest.approx(sum(lengths) / 12)


class PaysOffTheGrid(Coded):
    """Adds to what the world's own rounding has made of a reward."""

    def _respond(self, text: str, complete: bool) -> Turn:
        turn = super()._respond(text, complete)
        self._returns["reader"] *= 0.9
        return turn


class DrawsByTheTime(Coded):
    drawn = 0

    def task(self, split: str = "train", index: int = 0) -> Task:
        type(self).drawn += 1
        return super().task(split, index + type(self).drawn)


class ForgetsItsSplit(Coded):
    def task(self, split: str = "train", index: int = 0) -> Task:
        return super().task("test", index)


class DrawsFromTraining(Coded):
    """No test Task is among the training Tasks that are compared, but all belong to training."""

    def task(self, split: str = "train", index: int = 0) -> Task:
        if split != "test":
            return super().task(split, index)
        return replace(super().task("train", index + 1000), split="test", index=index)


class UnderstatesItsOptimum(Coded):
    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        return {"reader": Optimum(0.05, exact=False)}


class PaysNonsense(Coded):
    """Any nonsense longer than the null policy's pays."""

    def _respond(self, text: str, complete: bool) -> Turn:
        self.length = len(text)
        return super()._respond(text, complete)

    def malformed(self) -> float:
        return 0.125 if self.length > 9 else 0.0


class DoesNotTell(Coded):
    def told(self, well_formed: bool) -> Mapping[str, float]:
        return {}


class PaysAllAlike(Coded):
    def worth(self, distance: float) -> float:
        return 0.5

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        return {"reader": Optimum(0.5, exact=True)}


class RemembersEpisodes(Coded):
    """Pays less each time it is played."""

    played = 0

    def worth(self, distance: float) -> float:
        type(self).played += 1
        return 1.0 / (1.0 + type(self).played)


class ShowsTheAnswer(Coded):
    def _begin(self, task: Task) -> Turn:
        turn = super()._begin(task)
        return Turn("reader", f"{turn.text} (the answer is {self.number:06d})")


class RaisesOnSurrogates(Coded):
    def _respond(self, text: str, complete: bool) -> Turn:
        text.encode()
        return super()._respond(text, complete)


class PromisesWhatNobodyEarns(PaysAllAlike):
    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        return {"reader": Optimum(1.0, exact=True)}


@pytest.mark.parametrize(
    ("broken", "contract"),
    [
        (PaysOffTheGrid, Contract.RANGE),
        (ForgetsItsSplit, Contract.SPLITS),
        (DrawsFromTraining, Contract.SPLITS),
        (DrawsByTheTime, "runtime.seed_control"),
        (RemembersEpisodes, "semantic.verifier_determinism"),
        (ShowsTheAnswer, "semantic.no_solution_leakage"),
        (RaisesOnSurrogates, "sound.no_reply_raises"),
        (PromisesWhatNobodyEarns, Contract.OPTIMUM),
        (UnderstatesItsOptimum, Contract.OPTIMUM),
        (PaysNonsense, Contract.MALFORMED),
        (DoesNotTell, Contract.FORM),
        (PaysAllAlike, Contract.SIGNAL),
    ],
)
def test_a_broken_contract_is_named(broken: type[Coded], contract: str) -> None:
    assert contract in certify(broken(SPEC)).broken


def test_a_reward_out_of_its_declared_range_is_refused_by_the_world() -> None:
    with pytest.raises(RewardRangeError, match=r"1\.5"):
        certify(Overpays(SPEC))


def test_an_oracle_that_a_baseline_beats_by_far_is_named() -> None:
    policies = {**CODED, "oracle": CODED["null"], "better": CODED["oracle"]}
    found = check(Coded(SPEC), policies, tasks=40)
    assert "better earns 1.0000 more than the oracle" in found.broken[Contract.ORACLE]


def test_where_the_oracle_attains_the_optimum_one_better_episode_is_enough() -> None:
    class Overstates(Coded):
        """The oracle's plan is worth what the world calls the optimum, and another beats it."""

        def worth(self, distance: float) -> float:
            return 0.75 if distance == 0.0 else 0.75 + 0.25 * (distance < 0.055)

        def optimum(self, task: Task) -> Mapping[str, Optimum]:
            return {"reader": Optimum(0.75, exact=True)}

    assert " earns 0.25" in certify(Overstates(SPEC)).broken[Contract.OPTIMUM]


@pytest.mark.nightly
def test_a_tie_budget_is_that_of_groups_of_eight() -> None:
    class PaysWhole(Coded):
        def worth(self, distance: float) -> float:
            return float(distance < 0.085)

    ties = certify(PaysWhole(SPEC)).ties["zero_advantage_probability_8"].value
    assert 0.2 < ties < 0.6
    for budget, broken in ((ties, False), (ties - 0.01, True)):
        found = check(PaysWhole(SPEC), CODED, tasks=12, ties=budget)
        assert (Contract.SIGNAL in found.broken) is broken


def test_luck_breaks_no_contract() -> None:
    """A lottery that is lost once in 20 Tasks: 12 Tasks hardly ever see it lost."""

    class Lottery(Coded):
        def worth(self, distance: float) -> float:
            return float(self.number % 20 > 0) if distance == 0.0 else 0.5

        def optimum(self, task: Task) -> Mapping[str, Optimum]:
            return {"reader": Optimum(0.95, exact=True)}

    assert certify(Lottery(SPEC)).broken == {}


@pytest.mark.nightly
def test_an_oracle_that_random_play_beats_by_far_is_no_signal() -> None:
    policies = {**CODED, "oracle": CODED["null"]}
    assert "than random play" in check(Coded(SPEC), policies, tasks=12).broken[Contract.SIGNAL]


@pytest.mark.nightly
def test_an_unlucky_oracle_is_a_signal_still() -> None:
    """A lottery: the oracle wins 6 times in 10 and random play 5, so 12 Tasks can say otherwise."""

    class Lottery(Coded):
        def worth(self, distance: float) -> float:
            won = self.number % 10 < 6 if distance == 0.0 else self.number // 10 % 10 < 5
            return float(won)

        def optimum(self, task: Task) -> Mapping[str, Optimum]:
            return {"reader": Optimum(0.6, exact=False)}

    for seed in range(4):
        assert (
            Contract.SIGNAL not in check(Lottery(SPEC), CODED, tasks=12, seed=seed, ties=1.0).broken
        )


def test_a_certificate_needs_two_test_tasks() -> None:
    with pytest.raises(OptionError, match="got 1"):
        check(Coded(SPEC), CODED, tasks=1)


@pytest.mark.nightly
def test_certificates_come_out_as_json_and_the_exit_status_says_all_contracts_are_kept(
    tmp_path: Path,
) -> None:
    out = tmp_path / "certificates.json"
    exact = ["--option", "label=expected"]
    call = ["check", "forecast", "--level", "easy", "--tasks", "8", *exact, "--json", str(out)]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 0, result.output
    (found,) = json.loads(out.read_text())
    assert (found["world"], found["level"], found["tasks"]) == ("tokengym/Forecast-v0", "easy", 8)
    assert found["returns"]["oracle"]["value"] > found["returns"]["null"]["value"] == 0.0
    assert found["malformed"] == 1.0
    assert found["broken"] == {}
    header, row = table_rows(table(LIMITS_HEADER, [found]))
    cells = dict(zip(header, row, strict=True))
    assert found["blind"]["value"] < found["reachable"]["value"]
    known = f"{found['reachable']['value']:.3f} `oracle` (exact posterior, proved optimal)"
    assert cells["best policy known to us"] == known
    assert "all kept" in result.output


class Overpays(Coded):
    def worth(self, distance: float) -> float:
        return 1.5


@pytest.mark.nightly
@pytest.mark.usefixtures("fresh_registry")
def test_a_table_without_a_row_for_a_level_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A level whose rewards leave their range has no certificate."""
    page = tmp_path / "page.md"
    name = "tokengym check, by level"
    for world, written in ((Coded, True), (Overpays, False)):
        page.write_text(f"<!-- made by {name} -->\n<!-- end of {name} -->\n")
        made = replace(
            SPEC, entry_point=f"{__name__}:{world.__name__}", baselines=f"{__name__}:CODED"
        )
        monkeypatch.setattr(registry, "BY_ID", {made.id: made})
        result = CliRunner().invoke(
            app, ["check", "--all", "--tasks", "12", "--markdown", str(page)]
        )
        assert result.exit_code == (0 if written else 1), result.output
        assert bool(read_block(page, name)) is written


@pytest.mark.nightly
def test_every_episode_that_is_played_can_be_kept() -> None:
    world, policies = make_world("forecast"), baselines("forecast")
    kept: dict[str, Sequence[Sequence[PlayedEpisode]]] = {}
    found = check(world, policies, tasks=2, keep=lambda who, groups: kept.update({who: groups}))
    assert {*kept} == {*policies, "noisy in groups", "random bytes"}
    for name, value in found.returns.items():
        returns = [group[0].metrics[expected_return(found.role)] for group in kept[name]]
        assert sum(returns) / len(returns) == value.value
    assert [len(group) for group in kept["noisy in groups"]] == [16, 16]


def best_of(world: World, policies: Sequence[Policy]) -> float:
    """What the best of some policies earns on test Tasks, against scripted opponents."""
    role, *others = world.spec.roles
    scripts = {other: baselines(world.spec)["scripted"] for other in others}

    def earned(policy: Policy) -> float:
        played = play_all(world, world.first_tasks("test", 20), {**scripts, role: policy})
        return float(np.mean([episode.returns[role] for episode in played]))

    return max(map(earned, policies))


@pytest.mark.nightly
@pytest.mark.parametrize("case", [("forecast", "hard"), ("disruption", "L2")], ids="-".join)
def test_each_figure_is_the_mean_return_of_the_policy_that_it_names(case: tuple[str, str]) -> None:
    world = make_world(*case, label="expected")
    policies, declared = baselines(case[0]), spec(case[0])
    found, scale = check(world, policies, tasks=20), shipped_scale(world, declared.roles[0])
    assert scale is not None
    blind = best_of(world, [import_object(declared.blind)(world)[scale.blind]])
    reach = best_of(world, [policies[declared.reachable[case[1]].policy]])
    assert found.reachable is not None
    assert found.blind.value == pytest.approx(blind)
    assert found.reachable.value == pytest.approx(reach)


@pytest.mark.nightly
def test_luck_in_outcomes_is_in_no_figure() -> None:
    policies = {name: baselines("forecast")[name] for name in ("null", "random", "oracle")}
    lucky, exact = (
        check(make_world("forecast", label=label), policies, tasks=12)
        for label in ("outcome", "expected")
    )
    assert lucky.observed != exact.observed
    assert (lucky.unit, exact.unit) == ("expected", "expected")
    for field in ("returns", "blind", "reachable", "optimum"):
        assert getattr(lucky, field) == getattr(exact, field)
    assert certify(Coded(SPEC)).unit == "realised"


@pytest.mark.nightly
def test_what_can_be_reached_is_not_said_without_its_policy_or_of_a_users_data(
    tmp_path: Path,
) -> None:
    policies = dict(baselines("forecast"))
    data = write_csv(tmp_path / "questions.csv", [plain(number) for number in range(60)])
    for world in (make_world("forecast", data=data), Coded(SPEC)):
        known = CODED if isinstance(world, Coded) else policies
        found = check(world, known, tasks=3)
        assert (found.reached_by, found.reachable) == (None, None)
    world = make_world("warehouse", level="full")
    few = {name: baselines("warehouse")[name] for name in ("null", "random", "oracle")}
    assert check(world, few, tasks=2).reached_by is None


def test_a_level_is_named_with_its_world_or_by_its_option_and_not_by_both() -> None:
    shown = CliRunner().invoke(app, ["check", "forecast:expert", "--ladder"])
    assert shown.exit_code == 0, shown.output
    assert "tokengym/Forecast-v0 expert, 400 validation Tasks" in shown.output
    assert "tokengym/Forecast-v0 easy" not in shown.output
    with pytest.raises(OptionError, match=r"'forecast:expert' names a level already"):
        CliRunner().invoke(
            app, ["check", "forecast:expert", "--level", "easy"], catch_exceptions=False
        )
    with pytest.raises(OptionError, match="'nothing'"):
        CliRunner().invoke(app, ["check", "forecast:nothing"], catch_exceptions=False)
