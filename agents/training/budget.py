"""The budget of a run in tokens: what it has used, and whether that leaves room for a step."""

from dataclasses import dataclass

from tokengym.agents.rollouts import RolloutLog, evaluation_segment
from tokengym.agents.training.config import JobConfig, LearningSettings
from tokengym.agents.training.folder.run import RunFolder

TOKENS = "tokens/total"
"""Metric of a step in our own loop: tokens read, sampled and trained on."""


@dataclass
class TokenBudget:
    """Tokens that a run may use, of its trained roles: read, sampled and trained on.

    Attributes:
        most: in all; `None` without a bound.
        spent: so far.
        reserved: for the evaluations that are still to come.
        step: of the most expensive step so far, or what the episodes of the evaluation let expect.
        ended_after: steps that were done when there was no room for another; `None` while there is.
    """

    most: int | None = None
    spent: int = 0
    reserved: int = 0
    step: int = 0
    ended_after: int | None = None

    @classmethod
    def of_run(cls, config: JobConfig, run: RunFolder, held_out: int) -> "TokenBudget":
        """Return the budget of a run that has been evaluated before training, perhaps resumed.

        Args:
            config: of the run.
            run: its folder.
            held_out: Tasks that are played after training, in all worlds.
        """
        rollouts = run.rollouts
        if config.max_total_tokens is None:
            return cls()
        played = [file.name for file in rollouts.segments() if file.step is None]
        before = evaluation_segment("before")
        evaluation, episodes = _used(rollouts, before), sum(1 for _ in rollouts.read(before))
        reserved = evaluation * held_out // max(episodes, 1)
        if config.group(LearningSettings).warm_start and evaluation_segment("warm") not in played:
            reserved += evaluation
        logs = [part.step_log(replies=False) for part in (run.warm_start, run)]
        steps = [int(row.metrics[TOKENS]) for log in logs for row in log.current()]
        spent = sum(_used(rollouts, name) for name in played) + sum(steps)
        # What an episode reads and writes is read once more to train on it.
        expected = 2 * evaluation * config.groups_per_batch * config.group_size // max(episodes, 1)
        return cls(config.max_total_tokens, spent, reserved, max(steps, default=expected))

    @property
    def lasts(self) -> bool:
        """Whether it lasts for one more step, as expensive as the most expensive one."""
        return self.most is None or self.spent + self.reserved + self.step <= self.most

    def pay(self, tokens: int) -> None:
        """Count a step."""
        self.spent += tokens
        self.step = max(self.step, tokens)

    def ending(self, steps: int) -> str:
        """State why a run ended before its last step; empty if it did not.

        Args:
            steps: of the run.
        """
        if self.ended_after is None:
            return ""
        return (
            f"Ended after {self.ended_after} of {steps} steps: {self.spent:,} tokens were used, "
            f"and another step (about {self.step:,}) and the evaluation after training (about "
            f"{self.reserved:,}) would pass --max-total-tokens {self.most:,}. To go on, resume "
            "the run with a larger one"
        )


def _used(log: RolloutLog, segment: str) -> int:
    """Return the tokens that the rollouts of a segment read and sampled."""
    turns = (turn for record in log.read(segment) for turn in record.own_turns)
    return sum((turn.prompt_tokens or 0) + (turn.completion_tokens or 0) for turn in turns)
