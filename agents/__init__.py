"""Policies, rollouts, evaluation, training and the `tokengym` command.

Every name here is imported when it is first used; all but `Estimate`, `evaluate` and `play` need
the extra `tinker`, see docs/install.md.
"""

if __name__ != "tokengym.agents":
    raise ImportError("import tokengym.agents: the bare name would load each module a second time")

from typing import TYPE_CHECKING

from tokengym.envs.core.play import play
from tokengym.lazy import lazy_attributes

if TYPE_CHECKING:
    from tokengym.agents.evaluation.experiment import run_experiment
    from tokengym.agents.evaluation.scripted import evaluate
    from tokengym.agents.service import LocalService
    from tokengym.agents.tinker.codec import RendererCodec, codec_named
    from tokengym.agents.tinker.dataset import TaskDataset, TaskDatasetBuilder
    from tokengym.agents.tinker.env import TinkerEnv
    from tokengym.agents.tinker.groups import TaskGroupBuilder
    from tokengym.agents.tinker.language_model import LanguageModelOpponent
    from tokengym.agents.tinker.many_prompts import sample_prompts
    from tokengym.agents.tinker.paper_env import PaperEnv
    from tokengym.agents.training.batches.datums import datum
    from tokengym.agents.training.config import DpoConfig, SftConfig, TrainConfig
    from tokengym.agents.training.earlier_runs import trained_opponent
    from tokengym.agents.training.folder.run import RunFolder
    from tokengym.agents.training.job import Job
    from tokengym.agents.training.presets import preset, preset_for
    from tokengym.agents.training.progress import Progress
    from tokengym.rewards.estimates import Estimate

__all__ = [
    "DpoConfig",
    "Estimate",
    "Job",
    "LanguageModelOpponent",
    "LocalService",
    "PaperEnv",
    "Progress",
    "RendererCodec",
    "RunFolder",
    "SftConfig",
    "TaskDataset",
    "TaskDatasetBuilder",
    "TaskGroupBuilder",
    "TinkerEnv",
    "TrainConfig",
    "codec_named",
    "datum",
    "evaluate",
    "play",
    "preset",
    "preset_for",
    "run_experiment",
    "sample_prompts",
    "trained_opponent",
]

__getattr__ = lazy_attributes(__name__)


def __dir__() -> list[str]:
    return __all__
