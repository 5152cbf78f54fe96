"""Laws of building sets: labels as in memory, balanced classes, splits apart."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.disruption.literature_files import WORKS, papers_in, recipe, tree, write_tables
from tokengym.envs.core.errors import DataError
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.disruption.data import build_papers
from tokengym.envs.disruption.data.manifest import MANIFEST, read_manifest
from tokengym.envs.disruption.labels import LABELS
from tokengym.envs.disruption.paper import Paper
from tokengym.envs.registry import make_world


@pytest.mark.nightly
def test_labels_and_scores_are_those_of_the_works_in_memory(
    built: Path, labelled: dict[str, Paper]
) -> None:
    found = [paper for listed in papers_in(built).values() for paper in listed]
    assert len(found) > 100
    assert found == [labelled[paper.openalex_id] for paper in found]


def test_the_manifest_lists_what_went_in_and_what_came_out(built: Path, snapshot: Path) -> None:
    manifest = read_manifest(built)
    assert manifest["inputs"] == {"works": tree(snapshot)}
    assert {name: entry["sha256"] for name, entry in manifest["files"].items()} == {
        name: digest for name, digest in tree(built).items() if name != MANIFEST
    }
    assert manifest["source"]["works"] == len(WORKS)
    assert manifest["source"]["records"] == len(WORKS) + 1
    papers = papers_in(built)
    for split, listed in papers.items():
        counts = manifest["audit"]["counts"][split]["disruption"]
        assert counts == Counter(paper.disruption_label for paper in listed)
        assert sum(manifest["audit"]["by_field"][split].values()) == len(listed)
        assert sum(manifest["audit"]["by_year"][split].values()) == len(listed)
    kept = sum(map(len, papers.values()))
    assert manifest["source"]["eligible"] == kept + sum(manifest["source"]["left_out"].values())
    assert manifest["audit"]["prompts_compared"] == 24 * kept
    assert str(snapshot) not in (built / MANIFEST).read_text()


def test_splits_are_apart_in_time_and_in_text_and_balanced(built: Path) -> None:
    papers = papers_in(built)
    texts = Counter(paper.title for listed in papers.values() for paper in listed)
    assert max(texts.values()) == 1
    counted = max(p.publication_year for s in SPLITS[:2] for p in papers[s]) + 5
    assert counted < min(paper.publication_year for paper in papers["test"])
    for listed in papers.values():
        counts = Counter(paper.disruption_label for paper in listed)
        assert set(counts) == set(LABELS["disruption"])
        assert len(set(counts.values())) <= 1


def test_a_world_plays_the_folder_with_its_splits(built: Path) -> None:
    papers = papers_in(built)
    for level in ("L0", "L2"):
        world = make_world("disruption", level, data=str(built))
        for split in SPLITS:
            assert world.size(split) == len(papers[split])
            tasks = [world.task(split, k) for k in range(len(papers[split]))]
            assert {task.split for task in tasks} == {split}
            assert [t.answer["source"] for t in tasks] == [p.openalex_id for p in papers[split]]


@pytest.mark.nightly
def test_sciscinet_tables_give_the_same_index_and_their_own_novelty(
    tmp_path: Path, snapshot: Path, labelled: dict[str, Paper]
) -> None:
    rows = [
        {"paperid": w.id, "year": w.year, "disruption": 0.0, "Atyp_10pct_Z": k % 5 - 2.0,
         "Atyp_Median_Z": k % 5 + 1.0 if k % 7 else None, "team_size": 9 if k % 2 else None}
        for k, w in enumerate(WORKS)
    ]  # fmt: skip
    edges = [(w.id, r) for w in WORKS for r in w.references]
    write_tables(tmp_path / "tables", rows, [*edges, ("W999999", "W1")])
    out = tmp_path / "out"
    build_papers(recipe(tmp_path / "tables", texts=snapshot), out)
    found = [paper for listed in papers_in(out).values() for paper in listed]
    assert len(found) > 100
    for paper in found:
        known, k = labelled[paper.openalex_id], int(paper.openalex_id[1:]) - 1
        assert paper.cd_index == known.cd_index
        assert (paper.title, paper.first_year) == (known.title, known.first_year)
        assert paper.novelty_score == (k % 5 - 2.0 if k % 7 else None)
        assert paper.authors == (
            9 if k % 2 else known.authors
        )  # the texts' where the table is mute


@pytest.mark.nightly
@pytest.mark.parametrize("target", ["disruption", "novelty", "both"])
@pytest.mark.parametrize("rule", ["threshold", "percentile"])
def test_every_target_is_balanced(snapshot: Path, tmp_path: Path, target: str, rule: str) -> None:
    balance = "none" if target == "both" else "split"
    changes: dict[str, Any] = {"target": target, "rule": rule, "balance": balance}
    if target == "novelty":
        # By these shuffles conventional papers, which are rare, occur before 2001 and in 2012.
        changes |= {"shuffles": 2, "seed": 1, "test_from": 2013}
        with pytest.raises(DataError, match=r"is left for test: .* --balance none keeps"):
            build_papers(recipe(snapshot, **changes), tmp_path / "out")
        changes["test_from"] = 2011
    build_papers(recipe(snapshot, **changes), tmp_path / "out")
    for listed in papers_in(tmp_path / "out").values():
        labels = [paper.labels() for paper in listed]
        if target == "both":
            assert all(None not in found.values() for found in labels)
        else:
            counts = Counter(found[target] for found in labels)  # type: ignore[index]
            assert len(set(counts.values())) <= 1
