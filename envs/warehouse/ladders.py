"""The ladders of the world's levels; `ladders.toml` has the reference policies of each."""

from pathlib import Path

from tokengym.envs.core.ladder import read_ladders

LADDERS = read_ladders(Path(__file__).with_suffix(".toml"))
