"""Which samplers are told from the model that is trained, by how many replies.

    python -m benchmarks.sampled_replies

The starting policy replies to random prompts through `generate` of Transformers. Prints the rows of
docs/howto/servers.md: ten seeds of a sampler that is right, with and without the tokens that end
replies, then samplers that are not.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from tokengym.agents.probe.policy import END, PAD, load_model
from tokengym.agents.probe.rollouts import ProbeRollout
from tokengym.agents.probe.sampled import Reply, judge_sample, sample_of, temperature_of
from tokengym.agents.toy_model import MODEL_DIR

SAMPLERS: tuple[dict[str, float], ...] = (
    {},
    *({"temperature": value} for value in (0.7, 0.9, 1.2)),
    *({"top_p": value} for value in (0.9, 0.98)),
    *({"top_k": float(value)} for value in (5, 20, 50)),
)
PROMPTS, LENGTH = 8, 6


def drawn(model: Any, seed: int, count: int = 64, **settings: float) -> list[ProbeRollout]:
    """Return replies of at most 16 tokens to random prompts, each to the token that ends it.

    Args:
        model: the model that samples.
        seed: of prompts and replies.
        count: replies, the same number to each of 8 prompts.
        settings: of `generate`.
    """
    torch.manual_seed(seed)
    prompts = np.random.default_rng(seed).integers(END + 1, 1024, (PROMPTS, LENGTH)).tolist()
    usual = {"do_sample": True, "max_new_tokens": 16, "eos_token_id": END, "pad_token_id": PAD}
    given: dict[str, Any] = {"temperature": 1.0, "top_p": 1.0, "top_k": 0} | settings
    given["top_k"] = int(given["top_k"])
    rollouts = []
    for prompt in prompts:
        ids = torch.tensor([prompt] * (count // PROMPTS))
        made = model.generate(ids, attention_mask=torch.ones_like(ids), **usual, **given)
        for row in made[:, LENGTH:].tolist():
            ids_T = tuple(row[: row.index(END) + 1] if END in row else row)
            rollouts.append(ProbeRollout(tuple(prompt), ids_T, (1,) * len(ids_T), 0.0, str(prompt)))
    return rollouts


def whole(rollouts: list[ProbeRollout]) -> list[Reply]:
    """Return replies as they are."""
    return [(rollout.prompt_ids, rollout.completion_ids, rollout.mask) for rollout in rollouts]


def without_ends(rollouts: list[ProbeRollout]) -> Iterator[Reply]:
    """Yield replies without the token that ends them, those that are more than that."""
    for prompt, ids, mask in whole(rollouts):
        if kept := len(ids) - (ids[-1] == END):
            yield prompt, ids[:kept], mask[:kept]


def main() -> None:
    """Print the rows."""
    torch.set_num_threads(1)
    model = load_model(MODEL_DIR).float()
    batches = [drawn(model, seed) for seed in range(10)]
    for name, replies in (("whole", whole), ("no ends", without_ends)):
        scores = [temperature_of(sample_of(model, replies(batch)))[0] for batch in batches]
        listed = " ".join(f"{score:.1f}" for score in scores)
        print(f"{name}: z {listed}, mean {np.mean(scores):.2f}")
    for settings in SAMPLERS:
        for count in (64, 256):
            verdict = judge_sample(sample_of(model, whole(drawn(model, 3, count, **settings))))
            print(settings, count, verdict)


if __name__ == "__main__":
    main()
