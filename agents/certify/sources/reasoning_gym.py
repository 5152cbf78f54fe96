"""Data sets of reasoning-gym, by name."""

from functools import lru_cache
from typing import Any

import reasoning_gym
from reasoning_gym.composite import DatasetSpec
from reasoning_gym.factory import create_curriculum

from tokengym.agents.certify.source import Facts, Source, SourceEpisode, SourceStep, TaskPlace
from tokengym.agents.certify.sources import package

_SIZE = 500
_SEEDS_KEPT = 4


class ReasoningGym(Source):
    """A procedural data set; a Task is an item of the data set of a seed.

    A reply is scored by what its last `<answer>` and `</answer>` enclose, as the package's own
    training does, or as a whole where it has no such tags; blanks around it are taken off. The
    package's expression that looks for the tags takes quadratic time; this takes linear time.

    Args:
        name: of the data set, such as `puzzle24`.
        level: of its curriculum, 0 the easiest; the usual configuration if `None`.
        **options: of its configuration; for `composite`, `datasets` lists names of data sets.
    """

    def __init__(self, name: str, level: int | None = None, **options: Any) -> None:
        if level is not None:
            curriculum = create_curriculum(name)
            curriculum.set_global_level(level)
            options = {**vars(curriculum.generate_configuration()), **options}
            del options["seed"], options["size"]
        if name == "composite":
            parts = options["datasets"]
            options["datasets"] = [DatasetSpec(part, weight=1.0, config={}) for part in parts]

        @lru_cache(_SEEDS_KEPT)
        def dataset(seed: int) -> Any:
            return reasoning_gym.create_dataset(name, seed=seed, size=_SIZE, **options)

        @lru_cache(2 * _SIZE)
        def entry(seed: int, index: int) -> Any:
            return dataset(seed)[index]

        self._dataset, self._entry = dataset, entry
        entry(0, 0)
        form, bounds = "<answer>{}</answer>", (0.0, 1.0)
        self.facts = Facts(package("reasoning-gym"), (), True, _SIZE, bounds, form=form)

    def start(self, place: TaskPlace) -> SourceEpisode:
        """Draw an item."""
        dataset = self._dataset(place.seed)
        entry = self._entry(place.seed, place.index)

        def reply(text: str) -> SourceStep:
            return SourceStep(dataset.score_answer(_inside(text), entry), True)

        answer = entry["answer"]
        known = isinstance(answer, str)
        told = (answer,) if known else ()
        return SourceEpisode(entry["question"], reply, told, 1.0 if known else None)


def _inside(text: str) -> str:
    before, closed, _ = text.rpartition("</answer>")
    _, opened, inside = before.rpartition("<answer>")
    return (inside if closed and opened else text).strip()
