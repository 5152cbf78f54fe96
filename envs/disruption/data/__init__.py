"""Sets of real papers, built from OpenAlex, SciSciNet-v2 or JSON lines, and their splits."""

from tokengym.envs.disruption.data.build import build_papers
from tokengym.envs.disruption.data.dataset import PaperSet, load_papers
from tokengym.envs.disruption.data.jsonl import read_papers, write_papers
from tokengym.envs.disruption.data.openalex import Work
from tokengym.envs.disruption.data.openalex_api import fetch_works
from tokengym.envs.disruption.data.recipe import Recipe
from tokengym.envs.disruption.data.score_table import score_works
from tokengym.envs.disruption.data.sources import detect_kind

__all__ = [
    "PaperSet",
    "Recipe",
    "Work",
    "build_papers",
    "detect_kind",
    "fetch_works",
    "load_papers",
    "read_papers",
    "score_works",
    "write_papers",
]
