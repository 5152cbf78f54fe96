"""Laws of a judge fitted to a user's papers: it reads those, and not our constants."""

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest

from tokengym.envs.core.errors import OptionError
from tokengym.envs.disruption.claims import Claim, Fact, Quote
from tokengym.envs.disruption.data.dataset import load_papers
from tokengym.envs.disruption.data.jsonl import write_papers
from tokengym.envs.disruption.evidence import evidence_of_paper
from tokengym.envs.disruption.fitted_judge import FittedJudge, HeldOutJudge, fitted_judge
from tokengym.envs.disruption.labels import DISRUPTION_LABELS
from tokengym.envs.disruption.oracle import true_claims
from tokengym.envs.disruption.paper import FirstYear, Paper, ReferenceFacts
from tokengym.envs.disruption.world import DisruptionWorld
from tokengym.envs.registry import baselines, make_world

WORDS = ("wholly", "further", "partly")
CD = (0.5, -0.5, 0.0)


def paper(number: int, rng: np.random.Generator) -> Paper:
    """A paper of a literature whose long reference lists are disruptive, unlike ours."""
    place = number % 3
    count = int(10 + (40, 0, 20)[place] + rng.integers(10))
    word = WORDS[place if rng.random() < 0.8 else int(rng.integers(3))]
    return Paper(
        f"W{number}",
        f"Study {number}",
        f"We measure rocks {word} and report.",
        2000,
        50,
        CD[place],
        None,
        None,
        DISRUPTION_LABELS[place],
        None,
        "Geology",
        ReferenceFacts(count, 7, 5, 2),
        FirstYear(1, 1, 1),
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("own") / "papers.jsonl"
    write_papers(path, [paper(number, rng) for number in range(300)])
    return path


def test_it_believes_the_shares_of_the_training_split(file: Path) -> None:
    papers = load_papers(file)
    judge, train = fitted_judge(papers), papers.papers["train"]
    assert judge.believe((), "disruption") == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    claims: list[Claim] = [Fact("references", ">=", 25.0), Quote("partly"), Quote("ROCKS wholly,")]
    for claim in claims:
        shares = []
        for name in DISRUPTION_LABELS:
            of_label = [one for one in train if one.disruption_label == name]
            holding = [
                one.references is not None and one.references.count >= 25
                if isinstance(claim, Fact)
                else str(claim.words).split()[-1].strip(",").lower() in one.abstract
                for one in of_label
            ]
            shares.append(np.mean(holding))
        wanted = np.array(shares) / np.sum(shares)
        # Shrunk towards all labels by as much as four papers weigh among some eighty.
        assert judge.believe((claim,), "disruption") == pytest.approx(tuple(wanted), abs=0.06)
    # Nothing is known of novelty, and nothing follows from what never occurs.
    for silent in (Quote("unheard of"), Fact("age", "=", 7.0), Fact("venues", ">", 90.0)):
        assert judge.believe((silent,), "disruption") == pytest.approx((1 / 3,) * 3)
    assert judge.believe((claims[0],), "novelty") == pytest.approx((1 / 3,) * 3)


@pytest.mark.nightly
def test_a_world_over_papers_pays_claims_by_them(file: Path) -> None:
    world = DisruptionWorld.cast(make_world("disruption", "L2", data=file))
    twin = DisruptionWorld.cast(make_world("disruption", "L2", data=file))
    assert world.fork().compile(world.task("test", 0)) is twin.compile(twin.task("test", 0))
    told = []
    for index in range(12):
        turn, rng = world.start(world.task("test", index)), np.random.default_rng(0)
        while not turn.done:
            turn = world.reply(baselines("disruption")["oracle"](world, turn, rng))
        told.append(turn.terms["predictor"]["reasoning"])
        assert turn.metrics["claim_validity"] == 1.0
    assert np.mean(told) > 0.17


def test_a_part_of_a_word_tells_it_nothing(file: Path) -> None:
    judge = fitted_judge(load_papers(file))
    hidden = dataclasses.replace(paper(1, np.random.default_rng(0)), abstract="Impartly, rocks.")
    evidence = evidence_of_paper(hidden, "L2")
    assert judge.verify([Quote("partly")], evidence) == ((), 0)
    assert judge.verify([Quote("rocks")], evidence) == ((Quote("rocks"),), 0)


def test_it_asks_for_no_quote_longer_than_may_be_quoted(tmp_path: Path) -> None:
    """Texts without blanks between words, as in Chinese, are one word of any length."""
    rng, path = np.random.default_rng(0), tmp_path / "papers.jsonl"
    texts = ("".join(map(chr, rng.integers(0x4E00, 0x4F00, 120))) for _ in range(30))
    papers = [
        dataclasses.replace(paper(number, rng), abstract=text) for number, text in enumerate(texts)
    ]
    write_papers(path, papers)
    judge = fitted_judge(load_papers(path))
    for one in papers:
        evidence = evidence_of_paper(one, "L2")
        assert all(claim.holds(evidence) for claim in true_claims(evidence, judge))


def test_a_level_of_drawn_literature_plays_no_users_papers(file: Path) -> None:
    with pytest.raises(OptionError, match="examples"):
        make_world("disruption", "examples", data=file).task("train", 0)


QUOTED = ("We", "we", "rocks", "We measure rocks", "and report.", "and", "Study", "e", "report")


def test_a_quote_that_fits_every_paper_earns_nothing(file: Path) -> None:
    world = make_world("disruption", data=file, reward="original", single_turn=True)
    for index in range(6):
        task = world.task("test", index)
        for label, words in itertools.product(DISRUPTION_LABELS, QUOTED):
            world.start(task)
            last = world.reply(f'LABEL {label}\nP 0.4 0.3 0.3\nQUOTE "{words}"')
            assert last.terms["predictor"]["reasoning"] == 0.0, words
    used = {word for word in WORDS if word in world.start(world.task("test", 0)).text}
    last = world.reply(f'LABEL neutral\nP 0.4 0.3 0.3\nQUOTE "{used.pop()}"')
    assert last.terms["predictor"]["reasoning"] > 0.0


LANGUAGES = ("opens", "extends", "surveys")


def texts_alone(count: int, telling: float, seed: int = 0) -> list[Paper]:
    """Papers with title and abstract only; one word of it names the label so often."""
    rng = np.random.default_rng(seed)
    ranks = 1.0 / np.arange(1, 201)
    papers = []
    for number in range(count):
        place = int(rng.integers(3))
        words = [f"zebra{k}" for k in rng.choice(200, 30, p=ranks / ranks.sum())]
        words.append(LANGUAGES[place if rng.random() < telling else int(rng.integers(3))])
        papers.append(
            dataclasses.replace(
                paper(number, rng),
                abstract=" ".join(["We", *words]),
                cd_index=CD[place],
                disruption_label=DISRUPTION_LABELS[place],
                references=None,
                first_year=None,
            )
        )
    return papers


def world_of(folder: Path, papers: list[Paper]) -> DisruptionWorld:
    path = folder / "papers.jsonl"
    write_papers(path, papers)
    made = make_world("disruption", data=path, reward="original", single_turn=True)
    return DisruptionWorld.cast(made)


def paid(world: DisruptionWorld, split: str, index: int, *quotes: str) -> float:
    world.start(world.task(split, index))
    last = world.reply(
        "\n".join(["LABEL neutral\nP 0.4 0.3 0.3", *(f'QUOTE "{q}"' for q in quotes)])
    )
    assert 0.0 <= last.terms["predictor"]["reasoning"] <= 0.3
    return last.terms["predictor"]["reasoning"]


@pytest.mark.nightly
def test_telling_quotes_others_and_filler_earn_apart_as_first_described(tmp_path: Path) -> None:
    world = world_of(tmp_path, texts_alone(200, 0.8))
    for split in ("train", "test"):
        earned: dict[str, list[float]] = {"telling": [], "other": [], "rare": []}
        for index in range(min(world.size(split) or 0, 20)):
            words = world.start(world.task(split, index)).text.split()
            (telling,) = set(words) & set(LANGUAGES)
            others = sorted({w for w in words if w.startswith("zebra")}, key=lambda w: int(w[5:]))
            assert paid(world, split, index, "We") == 0.0
            earned["telling"].append(paid(world, split, index, telling))
            earned["other"].append(paid(world, split, index, others[0]))
            earned["rare"].append(paid(world, split, index, others[-1]))
            assert paid(world, split, index, telling, others[-1]) > 0.0
        # Uninformed the judge would pay .2; misled, less.
        assert np.mean(earned["telling"]) > 0.22
        assert max(earned["telling"]) - min(earned["telling"]) > 0.1
        assert max(np.mean(earned["other"]), np.mean(earned["rare"])) < 0.215


@pytest.mark.nightly
def test_words_that_do_not_tell_the_labels_apart_earn_nothing(tmp_path: Path) -> None:
    world = world_of(tmp_path, texts_alone(120, 0.0))
    for split in ("train", "test"):
        for index in range(min(world.size(split) or 0, 8)):
            words = world.start(world.task(split, index)).text.split()
            for word in {w for w in words if w.startswith("zebra")} | set(words) & set(LANGUAGES):
                assert paid(world, split, index, word) == 0.0


def test_a_paper_is_judged_by_the_others_alone(tmp_path: Path) -> None:
    """Its own label changes nothing of what the judge believes of it, nor its own rare words."""
    papers = texts_alone(80, 0.9)
    write_papers(tmp_path / "papers.jsonl", papers)
    train = load_papers(tmp_path / "papers.jsonl").papers["train"]
    whole = HeldOutJudge(train)
    # Of a paper that it was not fitted to nothing is left out.
    other = whole.apart_from(evidence_of_paper(paper(999, np.random.default_rng(1)), "L2"))
    zebra = Quote("zebra0")
    assert other.believe((zebra,), "disruption") == whole.believe((zebra,), "disruption")
    for number in range(4):
        one = train[number]
        evidence = evidence_of_paper(one, "L0")
        judge = whole.apart_from(evidence)
        others = FittedJudge([other for other in train if other is not one])
        claims = [Quote(word) for word in evidence.text.split()]
        counts = [
            [list(map(np.ndarray.tolist, pair)) for pair in of]
            for of in (
                [pair for c in claims for pair in fitted._counts(c, "disruption")]
                for fitted in (judge, others)
            )
        ]
        assert counts[0] == counts[1]
