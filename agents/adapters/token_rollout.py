"""A rollout in tokens as trainers need it: the first text, then everything after it with masks."""

from tokengym.envs.rollouts import Rollout


class TokenRollout:
    """Plays replies as sampled and keeps what was read and written, in order.

    Args:
        rollout: just started, with an append-only codec.

    Attributes:
        rollout: the rollout.
        prompt: tokens of the first text.
        completion: tokens after it: replies as sampled, and what the world said between them.
        own: for each of them 1 if it was sampled, else 0.
        logprobs: for each of them its log-probability, 0 where it was not sampled.
    """

    def __init__(self, rollout: Rollout) -> None:
        self.rollout = rollout
        self.prompt = rollout.tokens
        self.completion: list[int] = []
        self.own: list[int] = []
        self.logprobs: list[float] = []

    def play(self, tokens: list[int], logprobs: list[float], finish_reason: str) -> None:
        """Play a reply.

        Args:
            tokens: as sampled, its end included.
            logprobs: of each token.
            finish_reason: see `is_complete`.
        """
        read = self.rollout.tokens[len(self.prompt) + len(self.completion) :]
        self.completion += [*read, *tokens]
        self.own += [*[0] * len(read), *[1] * len(tokens)]
        self.logprobs += [*[0.0] * len(read), *logprobs]
        self.rollout.act(tokens, finish_reason)
