"""A sound world keeps every law; of one that breaks a law, that law is named."""

import pickle
import subprocess
import sys
from dataclasses import replace

import pytest

import tokengym
from tests.testing import broken
from tests.testing.thermometer import POLICIES, ROLE, SPEC, Thermometer
from tokengym.envs.core.play import Policy, play
from tokengym.testing import LAWS, LawBroken, Subject, TurnLaw, check_world

CASES = [
    (broken.DrawsAnew, "an_index_is_one_task", "instance_json"),
    (broken.WritesItsOwnJson, "tasks_survive_json_and_pickle", "JSON: instance_json"),
    (broken.DrawsByProcess, "an_index_is_one_task_in_every_process", "instance_json"),
    (broken.ForgetsTheSplit, "an_instance_lies_in_one_split", "belongs to 'test'"),
    (broken.TakesAnySplit, "unknown_splits_are_refused", "'TEST'"),
    (broken.TakesAnyIndex, "wrong_indices_are_refused", "-1"),
    (broken.GoesOnPastTheEnd, "wrong_indices_are_refused", "20"),
    (broken.PlaysForeignTasks, "foreign_tasks_are_refused", "other/World-v0"),
    (broken.TrustsItsTasks, "damaged_tasks_are_refused", "['tomorrow'] missing: KeyError"),
    (broken.AnswersAlways, "replies_need_an_episode", "before the start"),
    (broken.AnswersAnyone, "other_roles_are_refused", "'nobody'"),
    (broken.RefusesTasks, "every_task_can_be_played", "KeyError: 'averages'"),
    (broken.RaisesOnAWord, "no_reply_raises", "ValueError: invalid literal"),
    (broken.RaisesWhereCutOff, "no_reply_raises", "cut off,: IndexError"),
    (broken.RaisesOnItsPrompt, "no_reply_raises", "RecursionError"),
    (broken.ShowsBytes, "texts_are_strings", "the text of the opening is a bytes"),
    (broken.PaysAStranger, "roles_are_declared", "judge"),
    (broken.NeverEnds, "turn_limit_holds", "after its 2 turns"),
    (broken.Overpays, "rewards_lie_in_their_range", "reward of 'reader'"),
    (broken.OverpaysInSecret, "rewards_lie_in_their_range", "not in Range"),
    (broken.ReturnsTooMuch, "rewards_lie_in_their_range", "return of 'reader'"),
    (broken.PaysOffTheGrid, "rewards_lie_on_the_grid", "pays 'reader'"),
    (broken.NamesOtherTerms, "terms_sum_to_the_reward", "{'nearness': 1.0}"),
    (broken.MisstatesReturns, "rewards_sum_to_the_return", "{'reader': 0.0}"),
    (broken.DoesNotJudgeTheForm, "answers_report_the_form", "well_formed=None"),
    (broken.EndsWithoutReason, "an_end_has_a_reason", "reason None"),
    (broken.PaysNonsense, "malformed_replies_earn_no_more_than_well_formed_ones", "earned 0.5"),
    (broken.PaysANearMiss, "malformed_replies_earn_no_more_than_well_formed_ones", "earned 0.5"),
    (broken.IgnoresTheCut, "replies_cut_before_their_end_are_malformed", "reported as well-formed"),
    (
        broken.PaysWhatWasCutOff,
        "replies_cut_before_their_end_are_malformed",
        "'oracle' cut off earned 1.0",
    ),
    (broken.StopsLikeAnEnd, "stopping_early_ends_the_episode", "not truncated"),
    (broken.SharesItsDay, "interleaved_worlds_play_alike", "text:"),
    (broken.Remembers, "a_used_world_plays_like_a_fresh_one", "rewards:"),
    (broken.ForksShareAList, "a_fork_is_an_independent_twin", "metrics:"),
    (broken.CannotBePickled, "a_fork_is_an_independent_twin", "cannot pickle 'generator'"),
    (broken.LosesItsStateInAPickle, "a_pickled_world_plays_on", "text:"),
    (broken.ShowsTheAnswer, "the_answer_is_not_shown", "another opening Turn"),
    (broken.PromisesTooMuch, "optima_lie_in_the_range", "1.5"),
    (broken.PromisesTooLittle, "no_policy_beats_the_oracle_or_the_optimum", "mean optimum"),
    (broken.PaysHalf, "no_policy_beats_the_oracle_or_the_optimum", "0.5000 less than the optimum"),
    (broken.PaysAllAlike, "groups_of_rollouts_differ", "6 of 6 groups tie"),
    (broken.PrintsTheAnswer, "no_rule_finds_the_answer_in_the_prompt", "of what the answer earns"),
    (broken.PaysTheFarther, "no_policy_beats_the_oracle_or_the_optimum", "than the oracle"),
]


ID_CASES = [
    (broken.RepeatsTasks, "neighbouring_tasks_differ", "Task 0 is the same"),
    (broken.ShowsABook, "gymnasium_accepts_the_env", "it is not shown"),
    (broken.SharesItsDay, "envs_of_one_seed_are_identical", "answer differently"),
    (broken.DrawsAnew, "infos_are_complete", "another Task"),
    (broken.CannotBePickled, "a_pickled_env_goes_on", "pickle"),
    (broken.ShowsItsProcess, "an_env_can_be_spawned", "starts differently"),
    (broken.DrawsAnew, "vector_envs_match_single_envs", "differently"),
    (broken.SharesItsDay, "make_vec_makes_the_native_vector_env", "IndexError"),
]


@pytest.mark.nightly
def test_a_sound_world_keeps_every_law() -> None:
    kept = check_world(Thermometer(SPEC))
    assert {law.name for law in kept} == {law.name for law in LAWS if not law.needs_id}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("world", "law", "detail"), CASES, ids=lambda case: getattr(case, "__name__", "")
)
def test_the_law_that_is_broken_is_named(world: type[Thermometer], law: str, detail: str) -> None:
    with pytest.raises(LawBroken) as caught:
        check_world(world(SPEC), seed=0)
    assert caught.value.law == law, str(caught.value)
    assert detail in caught.value.detail


@pytest.mark.nightly
@pytest.mark.usefixtures("fresh_registry")
def test_another_packages_sound_world_keeps_every_law() -> None:
    tokengym.register(SPEC)
    assert check_world("thermometer", tasks=4, examples=5) == LAWS
    assert Subject((SPEC.id, "days")).name == Subject("thermometer").name


@pytest.mark.nightly
@pytest.mark.usefixtures("fresh_registry")
@pytest.mark.parametrize(
    ("world", "law", "detail"), ID_CASES, ids=lambda case: getattr(case, "__name__", "")
)
def test_the_law_of_an_id_that_is_broken_is_named(
    world: type[Thermometer], law: str, detail: str
) -> None:
    tokengym.register(replace(SPEC, entry_point=f"{world.__module__}:{world.__name__}"))
    (checked,) = [one for one in LAWS if one.name == law]
    with pytest.raises(LawBroken) as caught:
        checked.check(Subject(SPEC.id))
    assert caught.value.law == law
    assert detail in caught.value.detail


def test_every_law_is_broken_by_some_world_above() -> None:
    named = {law for _, law, _ in CASES}
    umbrellas = {
        "scripted_policies_keep_the_laws",
        "no_replies_break_an_episode",
        "repeating_the_prompt_breaks_nothing",
    }
    stated = {law.name for law in LAWS if not law.needs_id} - umbrellas
    assert named == stated | {law.name.lower() for law in TurnLaw}
    assert {law for _, law, _ in ID_CASES} == {law.name for law in LAWS if law.needs_id}


def test_the_message_names_law_world_level_and_task() -> None:
    with pytest.raises(LawBroken) as caught:
        check_world(broken.PaysNonsense(SPEC))
    law, where, seen = str(caught.value).splitlines()
    assert law == "An episode of malformed replies earns no more than any of well-formed ones."
    assert where.strip() == ("broken by test/Thermometer-v0 at level 'days', Task 0 of train")
    assert "earned 0.5, 'random' 0." in seen
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.task) == (str(caught.value), caught.value.task)


def test_a_world_that_does_not_pickle_is_checked_too() -> None:
    class Local(Thermometer):
        """A class inside a function: pickle cannot find it."""

    with pytest.raises(LawBroken) as caught:
        check_world(Local(SPEC))
    assert caught.value.law in ("an_index_is_one_task_in_every_process", "a_pickled_world_plays_on")


@pytest.mark.nightly
def test_policies_of_ones_own_take_the_place_of_the_specs() -> None:
    policies: dict[str, Policy] = {"random": POLICIES["random"]}
    kept = check_world(Thermometer(SPEC), policies=policies)
    assert len(kept) == len(check_world(Thermometer(SPEC)))
    with pytest.raises(LawBroken) as caught:
        check_world(Thermometer(SPEC), policies={**POLICIES, "oracle": POLICIES["null"]})
    assert caught.value.law == "no_policy_beats_the_oracle_or_the_optimum"
    with pytest.raises(LawBroken) as caught:
        check_world(Thermometer(SPEC), policies={"failing": lambda world, turn, rng: str(1 / 0)})
    assert "ZeroDivisionError" in caught.value.detail


@pytest.mark.nightly
def test_luck_on_few_tasks_does_not_beat_the_oracle() -> None:
    """A gambler who loses once in ten times may never lose on two Tasks; more of them show it."""
    subject = Subject(broken.Lottery(SPEC), policies={**POLICIES, "gambler": broken.gamble})
    world = subject.make()
    play_all = [play(world, task, broken.gamble) for task in subject.tasks("validation", 10)]
    won = [record.returns[ROLE] for record in play_all]
    assert won[:2] == [1.0, 1.0]
    assert min(won) < 0.95
    check_world(broken.Lottery(SPEC), policies={**POLICIES, "gambler": broken.gamble}, tasks=2)


def test_nothing_to_check_is_refused() -> None:
    with pytest.raises(ValueError, match="tasks=1"):
        Subject("forecast", tasks=1)
    with pytest.raises(ValueError, match="no training Tasks"):
        check_world(broken.HasNoTasks(SPEC))


@pytest.mark.nightly
def test_without_hypothesis_one_error_names_the_extra() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; import tokengym.testing"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert last == "ImportError: tokengym.testing needs Hypothesis: pip install 'tokengym[testing]'"


@pytest.mark.nightly
def test_no_test_runner_is_needed() -> None:
    code = (
        "import sys; sys.modules['pytest'] = None; import tokengym.testing as t;"
        "print(len(t.check_world(('forecast', None), tasks=2, examples=2)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == len(LAWS)
