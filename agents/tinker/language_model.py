"""A language model that speaks for a role: any sampling client as an agent."""

import numpy as np
import tinker

from tokengym.agents.tinker.codec import as_codec
from tokengym.agents.tinker.coordinator import Speaker
from tokengym.agents.tinker.prompt import Prompt
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import Reply
from tokengym.envs.tokens.transcript import Transcript

_SEEDS = 2**31


class LanguageModelOpponent:
    """Speaks for a role with what a sampling client samples, by a chat format of its own.

    It pickles where its sampling client does, as those of the SDK do.

    Args:
        sampler: samples the replies: a base model, or trained weights.
        codec: name of the model's codec, see `codec_named`.
        max_tokens: most tokens of a reply; one that is cut off counts as malformed.
        temperature: of sampling. The seeds are drawn from the agent's own randomness, so that
            episodes of one Task meet the same luck.
        name: what logs call it.
    """

    def __init__(
        self,
        sampler: tinker.SamplingClient,
        codec: str,
        *,
        max_tokens: int,
        temperature: float = 1.0,
        name: str = "language model",
    ) -> None:
        self.sampler = sampler
        self.codec = codec
        self.max_tokens = max_tokens
        self.temperature = temperature
        self.name = name

    def begin(self) -> Speaker:
        """Return who speaks in one episode, and remembers what was said in it."""
        return _Conversation(self).answer

    def to_dict(self) -> dict[str, str | int | float]:
        """Plain values, as the cookbook writes them into a run's `config.json`."""
        return {
            "name": self.name,
            "codec": self.codec,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
        }


class _Conversation:
    """What one role has read and written in one episode."""

    def __init__(self, agent: LanguageModelOpponent) -> None:
        self._agent = agent
        self._codec = as_codec(agent.codec)
        self._transcript = Transcript()

    async def answer(self, world: World, turn: Turn, rng: np.random.Generator) -> Reply:
        """Read a Turn and sample a reply to it."""
        codec, transcript = self._codec, self._transcript
        if transcript.last_action is not None and codec.append_only:
            new = codec.extend(transcript.last_action, turn.text)
            transcript.read(turn.text, new)
        else:
            transcript.clear()
            transcript.read(turn.text, [])
            transcript.tokens += codec.render(transcript.conversation)
        prompt = Prompt()
        prompt.append(transcript.tokens.copy())
        answered = await self._agent.sampler.sample_async(
            prompt=prompt.model_input(),
            num_samples=1,
            sampling_params=tinker.SamplingParams(
                stop=codec.stop,
                max_tokens=self._agent.max_tokens,
                temperature=self._agent.temperature,
                seed=int(rng.integers(_SEEDS)),
            ),
        )
        (sampled,) = answered.sequences
        tokens = list(sampled.tokens)
        reply = codec.read(tokens, sampled.stop_reason)
        transcript.write(reply.text, tokens)
        return reply
