"""Models as players: a run's weights, a model on this machine, or saved weights of a service."""

from dataclasses import dataclass, replace

from tinker_cookbook.completers import TinkerTokenCompleter, TokenCompleter
from tinker_cookbook.rl.rollouts import do_group_rollout

from tokengym.agents.rollouts import Origin, RolloutRecord
from tokengym.agents.training.opponents import names
from tokengym.agents.training.sampling import SeededRollouts
from tokengym.agents.training.session import Session
from tokengym.envs.core.task import Task


@dataclass(frozen=True)
class ModelPlayer:
    """A model that a service samples.

    Attributes:
        session: the job whose world, codec and opponents it plays with.
        role: the role it plays.
        completer: samples its replies.
        origin: what its rollouts have in common.
    """

    session: Session
    role: str
    completer: TokenCompleter
    origin: Origin

    @classmethod
    async def open(
        cls, session: Session, role: str, path: str | None, policy: str = ""
    ) -> "ModelPlayer":
        """Return the player of saved weights.

        Args:
            session: a job on a service.
            role: the role it plays.
            path: the `tinker://` path of the weights; `None` for the base model.
            policy: what records call it; the path or the model's name if empty.
        """
        job = session.job
        temperature = job.config.temperature
        origin = Origin(
            "evaluation",
            policy=policy or path or job.config.model,
            opponents=names(session.opponents[role]),
            options=job.config.options,
            temperature=temperature,
            max_tokens=job.max_tokens,
            seed=job.config.seed,
        )
        completer = TinkerTokenCompleter(
            await session.sampler(path), max_tokens=job.max_tokens, temperature=temperature
        )
        return cls(session, role, completer, origin)

    async def play(self, task: Task, origin: Origin) -> RolloutRecord:
        """Play one rollout."""
        played: list[RolloutRecord] = []
        group = self.session.job.group(task, 1, self.role, self.session.opponents[self.role])
        recorded = replace(group, origin=origin, record=played.extend)
        # The same seeds for all weights: what differs between them is due to the weights.
        strategy = SeededRollouts(("evaluation", origin.seed or 0, origin.member))
        await do_group_rollout(recorded, self.completer, strategy)
        (record,) = played
        return replace(record, origin=origin)
