"""The plan of an evaluation: the settings in which policies play, and who they are.

`tokengym evaluate` makes one of its options, a training job one of its held-out Tasks.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from tokengym.agents.rollouts import evaluation_segment
from tokengym.envs.core.spec import short_name
from tokengym.envs.core.task import canonical_json

Split = Literal["train", "validation", "test"]

BEFORE, WARM, AFTER = RUN_POLICIES = ("before", "warm", "after")
"""The policies of a run's evaluation: as it was, after a warm start, as it became."""

_LABEL = re.compile(r"[A-Za-z]\w*")


@dataclass(frozen=True)
class EvaluationPlace:
    """Tasks that all policies play.

    Attributes:
        world: id of the world.
        level: its level.
        role: the evaluated role.
        opponents: by other role, who plays it: a baseline's name, in training a model's too.
        options: of the world.
        split: of the Tasks.
        tasks: how many, the first of the split; all of it if it has fewer.
        temperature: of sampling; `None` for 1 at endpoints, or for a run's own.
        max_tokens: most tokens of a reply; `None` for 1024 at endpoints, or for a run's own.
        part: names its files apart from those of other settings; settings that share one share
            files.
    """

    world: str
    level: str
    role: str
    opponents: Mapping[str, str]
    options: Mapping[str, Any]
    split: Split
    tasks: int
    temperature: float | None = None
    max_tokens: int | None = None
    part: str = ""

    @property
    def name(self) -> str:
        """The world's short name and the level: `energy:day`."""
        return f"{short_name(self.world)}:{self.level}"

    @property
    def test(self) -> str:
        """A text that is the same where returns can be compared: a wording changes no Task."""
        options = {name: value for name, value in self.options.items() if name != "prompt"}
        return canonical_json(asdict(replace(self, options=options, part="")))


@dataclass(frozen=True)
class EvaluationPlan:
    """Tasks, policies and counts of an evaluation.

    Attributes:
        places: where.
        policies: who, by name.
        rollouts: of each Task.
        seed: of scripts and of sampling.
        success_margin: largest shortfall from the oracle that counts as success.
        prices: dollars per million tokens read and written, or `None`.
        system: a text before every conversation; `None` for the chat template's or the run's own.
        model: name or directory of the model that `tinker://` weights belong to.
        base_url: address of a Tinker service.
        renderer: name of a cookbook renderer; the model's or the run's own if empty.
        first_tasks: by policy, how many of the Tasks it plays, the first; all where none is stated.
    """

    places: tuple[EvaluationPlace, ...]
    policies: tuple[str, ...]
    rollouts: int = 1
    seed: int = 0
    success_margin: float = 0.05
    prices: tuple[float, float] | None = None
    system: str | None = None
    model: str | None = None
    base_url: str | None = None
    renderer: str = ""
    first_tasks: Mapping[str, int] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Eight hexadecimal digits that identify it."""
        return hashlib.sha256(canonical_json(asdict(self)).encode()).hexdigest()[:8]

    @property
    def titles(self) -> list[str]:
        """The places' names, with the role where another has the same."""
        counts = Counter(place.name for place in self.places)
        return [
            f"{place.name} {place.role}" if counts[place.name] > 1 else place.name
            for place in self.places
        ]

    def segment(self, place: EvaluationPlace, policy: str) -> str:
        """Return the segment of a policy's rollouts in a setting, named by number if need be."""
        label = policy if _LABEL.fullmatch(policy) else f"{self.policies.index(policy)}"
        return evaluation_segment("_".join(filter(None, (label, place.part))))
