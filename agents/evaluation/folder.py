"""An EvaluationFolder: the one writer and reader of an evaluation on disk.

| file | contents |
|---|---|
| `evaluation.json` | the plan, versions, fingerprints of the Tasks, their scale, the results |
| `rollouts/` | every rollout, see `RolloutLog` |

A run folder is one too: of the policy before and after training.
"""

import json
import math
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from tokengym.agents.evaluation.plan import EvaluationPlace, EvaluationPlan
from tokengym.agents.evaluation.results import Results
from tokengym.agents.evaluation.rollout_table import RolloutTable
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.models.files import read_object
from tokengym.agents.rollouts import RolloutLog, RolloutRecord
from tokengym.agents.scale.level_scale import Scale
from tokengym.agents.settings import plain, read_plain
from tokengym.atomic_write import replacing
from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.registry import spec
from tokengym.installed import installed_versions

SCHEMA_VERSION = 3
"""Version of the folder's layout; it goes up whenever an older one can no longer be read."""

_FILE = "evaluation.json"


class SavedEvaluation(NamedTuple):
    """Contents of an evaluation's folder besides its rollouts.

    Attributes:
        plan: what was asked.
        scales: by which skill is measured, of each setting.
        results: what was found; `None` before anything was played to the end.
    """

    plan: EvaluationPlan
    scales: Sequence[Scale]
    results: Results | None


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
        """The file of plan and results."""
        return self.folder / _FILE

    @property
    def exists(self) -> bool:
        """Whether the folder holds an evaluation."""
        return self.file.is_file()

    @cached_property
    def rollouts(self) -> RolloutLog:
        """Every rollout."""
        return RolloutLog(self.folder / "rollouts")

    def records(
        self, plan: EvaluationPlan, place: EvaluationPlace, policy: str
    ) -> Iterator[RolloutRecord]:
        """Yield the rollouts of a policy in a setting of its plan."""
        mine = place.world, place.level, place.role
        for record in self.rollouts.read(plan.segment(place, policy)):
            if (record.world, record.level, record.role) == mine:
                yield record

    def table(self, plan: EvaluationPlan, place: EvaluationPlace, policy: str) -> RolloutTable:
        """Return what the rollouts of a policy in a setting of its plan came to."""
        violation = spec(place.world).violation
        return RolloutTable.read(self.records(plan, place, policy), violation)

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

    def saved(self, data: Mapping[str, Any] | None = None) -> SavedEvaluation:
        """Return what the folder holds.

        Args:
            data: what `read` returned; read anew if `None`.

        Raises:
            DataError: if the file is damaged.
        """
        data = self.read() if data is None else data
        try:
            plan = read_plain(EvaluationPlan, data["plan"])
            scales = [read_plain(Scale, world["scale"]) for world in data["worlds"]]
            found = data["results"]
            results = None if found is None else read_plain(Results, _with_nan(found))
        except (KeyError, TypeError, OptionError) as error:
            raise DataError(f"{self.file} is damaged: {error!r}") from error
        return SavedEvaluation(plan, scales, results)

    def fits(self, plan: EvaluationPlan) -> bool:
        """Return whether all rollouts that are saved are of an evaluation with this plan.

        So a command that was mended goes on: before anything was played it may be any other, later
        one with more Tasks, rollouts or policies, or other prices.

        Raises:
            DataError: if the file is damaged.
        """
        saved = self.saved().plan
        written = {segment.name for segment in self.rollouts.segments() if segment.size}
        played = [
            (number, policy)
            for number, policy in enumerate(saved.policies)
            if written & {saved.segment(place, policy) for place in saved.places}
        ]
        if not played:
            return True
        free = ("policies", "rollouts", "prices", "success_margin")
        asked = {name: getattr(plan, name) for name in free}
        pairs = list(zip(saved.places, plan.places, strict=False))
        as_many = tuple(replace(old, tasks=new.tasks) for old, new in pairs)
        return (
            replace(saved, **asked, places=as_many) == plan
            and len(saved.places) == len(plan.places)
            and all(new.tasks >= old.tasks for old, new in pairs)
            and plan.rollouts >= saved.rollouts
            and all(plan.policies[number : number + 1] == (policy,) for number, policy in played)
        )

    def write(
        self, plan: EvaluationPlan, worlds: Sequence[EvaluatedWorld], results: Results | None = None
    ) -> None:
        """Record the plan and, once something was played to the end, the results.

        Args:
            plan: what is asked.
            worlds: its settings.
            results: what was found; `None` while it is under way.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        where = {"python": platform.python_version(), "platform": platform.platform()}
        data = {
            "schema": SCHEMA_VERSION,
            "plan": asdict(plan),
            "versions": {**where, **installed_versions()},
            "worlds": [
                {
                    "fingerprints": [task.fingerprint for task in world.tasks],
                    "scale": plain(world.scale),
                }
                for world in worlds
            ],
            "results": plain(results),
        }
        # Written as it is spelled: of many Tasks the whole text takes a hundred megabytes.
        with replacing(self.file) as part, part.open("w", encoding="utf-8") as file:
            json.dump(data, file, indent=1, allow_nan=False)
            file.write("\n")


def _with_nan(found: Any, among_scores: bool = False) -> Any:
    """Return saved results whose numbers are NaN where JSON has `null`."""
    if isinstance(found, list):
        return [_with_nan(one) for one in found]
    if not isinstance(found, Mapping):
        return math.nan if among_scores and found is None else found
    numbers = among_scores or {"value", "low", "high"} <= found.keys()
    return {name: _with_nan(one, numbers or name == "scores") for name, one in found.items()}
