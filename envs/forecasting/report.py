"""Meanings of an episode's metrics, for reports."""

from pathlib import Path

from tokengym.envs.core.metric import read_metrics

METRICS = read_metrics(Path(__file__).with_name("metrics.toml"))
