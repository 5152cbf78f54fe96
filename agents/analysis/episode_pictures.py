"""Pictures of a held-out episode: of the best rule, and of the policy before and after training."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tokengym.agents.analysis.evaluate import Estimate, play_all
from tokengym.agents.analysis.evaluation import Evaluation
from tokengym.agents.training.config import TrainSettings
from tokengym.envs.core.rollout import Policy
from tokengym.envs.core.task import Task
from tokengym.envs.pictures import has_picture, save_picture
from tokengym.envs.registry import baselines, make_world

_KNOWS_ANSWERS = "oracle"


def draw_episodes(
    folder: Path,
    settings: TrainSettings,
    task: Task,
    references: Mapping[str, Estimate],
    before: Evaluation,
    after: Evaluation | None,
) -> list[tuple[str, str]]:
    """Write pictures of one Task's episodes into a run folder, if its world has any.

    Args:
        folder: the run folder.
        settings: the job.
        task: the first held-out Task, the one whose replies evaluations keep.
        references: scripted policies on the held-out Tasks, by name.
        before: the policy as it was.
        after: the policy as it became, or `None` if it was not evaluated.

    Returns:
        who played and the file's name, by picture. The scripted policy is the one of the highest
        mean that does not know the Task's answer.
    """
    if not has_picture(settings.world):
        return []
    players: list[tuple[str, str, Policy]] = []
    known = baselines(settings.world)
    rules = [name for name in references if name in known and name != _KNOWS_ANSWERS]
    if rules:
        best = max(rules, key=lambda name: references[name].mean)
        players.append((best, "episode_rule.png", known[best]))
    for who, evaluation in (("before training", before), ("after training", after)):
        if evaluation is not None and evaluation.replies:
            file = f"episode_{who.partition(' ')[0]}.png"
            players.append((who, file, _saying(evaluation.replies)))
    world = make_world(settings.world, settings.level, **settings.options)
    for who, file, policy in players:
        (record,) = play_all(world, [task], policy)
        save_picture(world, record, folder / file, who)
    return [(who, file) for who, file, _ in players]


def _saying(replies: Sequence[str]) -> Policy:
    """Say what was said; nothing after that, as where a token budget ended the episode."""
    rest = iter(replies)
    return lambda world, turn, rng: next(rest, "")
