"""A debate about one paper as an `Env` of tinker-cookbook."""

from typing import Any

from tokengym.agents.tinker.coordinator import Opponent
from tokengym.agents.tinker.env import TinkerEnv
from tokengym.envs.disruption.free_answers import read_free_answer
from tokengym.envs.disruption.paper import Paper
from tokengym.envs.disruption.world import CHALLENGER, PREDICTOR, DisruptionWorld
from tokengym.envs.registry import make_world, policy
from tokengym.envs.tokens.codec import Codec


class PaperEnv(TinkerEnv):
    """The predictor's side of one debate about one paper. Single-use.

    Besides the form that the prompt asks for, JSON and plain words are read where they leave no
    doubt, see `read_free_answer`.

    Args:
        paper: with a label for every target; what a level shows of it is left out where the record
            lacks it.
        codec: a codec or its name, see `codec_named`.
        level: a level of `tokengym/Disruption-v2`, the default one if `None`.
        challenger: who argues: a name of its baselines or an `Opponent`.
        options: of the world, such as `target="both"` and `reward="original"`.

    Attributes:
        target: what is asked for, `disruption` unless an option says otherwise.
        reward: what it is paid by, `proper` unless an option says otherwise.

    Raises:
        DataError: if the paper has no label for a target.
        OptionError: if an option, the level, the baseline or the codec is unknown.
    """

    def __init__(
        self,
        paper: Paper,
        codec: Codec | str = "byte",
        *,
        level: str | None = None,
        challenger: str | Opponent = "scripted",
        **options: Any,
    ) -> None:
        world = DisruptionWorld.cast(make_world("disruption", level, **options))
        world.read_answer = read_free_answer
        who = policy(world.spec.id, challenger) if isinstance(challenger, str) else challenger
        super().__init__(world, world.task_from_paper(paper), codec, opponents={CHALLENGER: who})
        self.target, self.reward = world.target, world.reward

    def __repr__(self) -> str:
        """State the paper, what is asked of it and what that pays."""
        pays = self.world.spec.return_range[PREDICTOR]
        return (
            f"PaperEnv({self.task.answer['source']}, level={self.world.level!r}, "
            f"target={self.target!r}, reward={self.reward!r}, in [{pays.low:g}, {pays.high:g}])"
        )
