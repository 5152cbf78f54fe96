"""Sets of real papers, built from OpenAlex or SciSciNet-v2, and their splits."""

from tokengym.envs.disruption.data.build import build_papers
from tokengym.envs.disruption.data.dataset import PaperSet, load_papers
from tokengym.envs.disruption.data.jsonl import read_papers, write_papers
from tokengym.envs.disruption.data.openalex import Work
from tokengym.envs.disruption.data.openalex_api import fetch_works
from tokengym.envs.disruption.data.recipe import Recipe
from tokengym.envs.disruption.data.score_table import score_works

__all__ = [
    "PaperSet",
    "Recipe",
    "Work",
    "build_papers",
    "fetch_works",
    "load_papers",
    "read_papers",
    "score_works",
    "write_papers",
]
