"""An EvaluationFolder: the one writer and reader of an evaluation on disk.

| file | contents |
|---|---|
| `evaluation.json` | what was asked, versions, the Tasks' fingerprints, at the end the results |
| `rollouts/` | every rollout, see `RolloutLog` |
| `worlds.csv`, `policies.csv`, `pairs.csv` | the results for people |
"""

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.results import Results
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.model_files import read_object
from tokengym.agents.rollouts import RolloutLog, evaluation_segment
from tokengym.agents.settings import read_plain
from tokengym.agents.versions import installed_version
from tokengym.atomic_write import replacing
from tokengym.envs.core.errors import DataError, OptionError

SCHEMA_VERSION = 1
"""Version of the folder's layout; it goes up whenever an older one can no longer be read."""

_FILE = "evaluation.json"
_PACKAGES = ("tokengym", "numpy", "scipy", "openai", "tinker", "torch", "transformers")


@dataclass(frozen=True)
class EvaluationFolder:
    """The folder of one evaluation.

    Attributes:
        folder: where it lies.
    """

    folder: Path

    @classmethod
    def open(cls, path: Path) -> "EvaluationFolder":
        """Return the evaluation in a folder, or of its `evaluation.json`.

        Raises:
            OptionError: if there is none.
        """
        evaluation = cls(path.parent if path.name == _FILE else path)
        if not evaluation.exists:
            raise OptionError(f"{path} holds no evaluation: it has no {_FILE}")
        return evaluation

    @property
    def file(self) -> Path:
        """The file of settings and results."""
        return self.folder / _FILE

    @property
    def exists(self) -> bool:
        """Whether the folder holds an evaluation."""
        return self.file.is_file()

    @property
    def rollouts(self) -> RolloutLog:
        """Every rollout."""
        return RolloutLog(self.folder / "rollouts")

    def segment(self, world: WorldLevel, policy: str, config: EvaluationConfig) -> str:
        """Return the segment of one policy's rollouts in one world."""
        number = list(config.policies).index(policy)
        return evaluation_segment(f"{world.name.replace(':', '_')}_{number}")

    def read(self) -> dict[str, Any]:
        """Return the contents of `evaluation.json`.

        Raises:
            DataError: if it is damaged, or of another version.
        """
        data = read_object(self.file, DataError)
        which = data.get("schema")
        if which != SCHEMA_VERSION:
            raise DataError(
                f"{self.file} has schema {which!r}; this version of Tokengym reads {SCHEMA_VERSION}"
            )
        return data

    def config(self) -> EvaluationConfig:
        """Return what was asked for.

        Raises:
            DataError: if the file is damaged.
        """
        try:
            return read_plain(EvaluationConfig, self.read()["asked"])
        except (KeyError, OptionError) as error:
            raise DataError(f"{self.file} is damaged: {error!r}") from error

    def fits(self, config: EvaluationConfig) -> bool:
        """Return whether all rollouts that are saved are of an evaluation with these settings.

        So a command that was mended goes on: before anything was played it may be any other, later
        one with more Tasks, rollouts or policies, or other prices.

        Raises:
            DataError: if the file is damaged.
        """
        saved = self.config()
        written = {segment.name for segment in self.rollouts.segments() if segment.size}
        if not written:
            return True
        free = ("policies", "tasks", "rollouts", "prices", "success_margin")
        if replace(saved, **{name: getattr(config, name) for name in free}) != config:
            return False
        played = [
            (number, policy)
            for number, policy in enumerate(saved.policies)
            if written & {self.segment(world, policy, saved) for world in saved.worlds}
        ]
        return (
            config.tasks >= saved.tasks
            and config.rollouts >= saved.rollouts
            and all(config.policies[number : number + 1] == (policy,) for number, policy in played)
        )

    def write(
        self, config: EvaluationConfig, worlds: Sequence[EvaluatedWorld], results: Results | None
    ) -> None:
        """Record the settings and, at the end, the results.

        Args:
            config: what is asked.
            worlds: its worlds.
            results: what was found; `None` while it is under way.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        versions = {"python": platform.python_version(), "platform": platform.platform()}
        versions |= {name: found for name in _PACKAGES if (found := installed_version(name))}
        data = {
            "schema": SCHEMA_VERSION,
            "asked": asdict(config),
            "versions": versions,
            "worlds": [
                {
                    "world": world.place.world,
                    "level": world.place.level,
                    "fingerprints": [task.fingerprint for task in world.tasks],
                    **world.scale.to_dict(),
                }
                for world in worlds
            ],
            "results": None if results is None else results.to_dict(),
        }
        # Written as it is spelled: of many Tasks the whole text takes a hundred megabytes.
        with replacing(self.file) as part, part.open("w", encoding="utf-8") as file:
            json.dump(data, file, indent=1, allow_nan=False)
            file.write("\n")
