"""A language model as an opponent: any Tinker sampling client."""

from dataclasses import KW_ONLY, dataclass

import numpy as np
import tinker

from tokengym.agents.tinker.codec import as_codec
from tokengym.agents.tinker.prompt import TokenPrompt
from tokengym.envs.core.episode import DecodedReply, OpponentPolicy
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import Message
from tokengym.envs.tokens.transcript import Transcript

_SEEDS = 2**31


@dataclass(eq=False)
class LanguageModelOpponent:
    """Plays a role with replies from a sampling client, in the model's own chat format.

    It pickles if its sampling client does, as those of the SDK do.

    Attributes:
        sampler: samples the replies: a base model, or trained weights.
        codec: name of the model's codec, see `codec_named`.
        max_tokens: most tokens of a reply; of one that is cut off the ended lines count.
        temperature: of sampling. Seeds come from the opponent's own randomness, so that all
            episodes of a Task sample with the same seeds.
        name: its name in logs.
    """

    sampler: tinker.SamplingClient
    codec: str
    _: KW_ONLY
    max_tokens: int
    temperature: float = 1.0
    name: str = "language model"

    def start_episode(self) -> OpponentPolicy:
        """Return a policy that remembers the conversation of one episode."""
        codec, transcript = as_codec(self.codec), Transcript()

        async def reply(world: World, turn: Turn, rng: np.random.Generator) -> DecodedReply:
            if transcript.last_action is not None and codec.append_only:
                transcript.read(turn.text, codec.extend(transcript.last_action, turn.text))
            else:
                transcript.clear()
                talk = [*transcript.conversation, Message(turn.text, own=False)]
                transcript.read(turn.text, codec.render(talk))
            prompt = TokenPrompt()
            for piece in transcript.pieces:
                prompt.append(piece)
            response = await self.sampler.sample(
                prompt=prompt.model_input(),
                num_samples=1,
                sampling_params=tinker.SamplingParams(
                    stop=codec.stop,
                    max_tokens=self.max_tokens,
                    temperature=self.temperature,
                    seed=int(rng.integers(_SEEDS)),
                ),
            )
            (sampled,) = response.sequences
            tokens = list(sampled.tokens)
            said = codec.read(tokens, sampled.stop_reason)
            transcript.write(said.text, tokens)
            return said

        return reply

    def to_dict(self) -> dict[str, str | int | float]:
        """Return JSON values, for the cookbook's `config.json` of a run."""
        names = ("name", "codec", "max_tokens", "temperature")
        return {name: getattr(self, name) for name in names}
