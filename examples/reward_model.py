"""A reward learned from preferences, and what becomes of the true return when it is trained on.

    tokengym serve --model tokengym-start &  # prints TINKER_BASE_URL and TINKER_API_KEY
    python examples/reward_model.py --steps 30

Of two forecasts of one question the one that earns more, given the exact probability, is preferred,
with the odds of Bradley and Terry (1952). A second adapter learns from these preferences to score
forecasts; then the policy is trained on its scores alone. The true return is printed beside them:
where the score rises without it, the learned reward is over-optimised.
"""

import argparse

import numpy as np
import tinker
import torch

from tokengym.agents.tinker.codec import codec_name, codec_named, renderer_for
from tokengym.envs import make_world
from tokengym.envs.tokens.episode import Episode

parser = argparse.ArgumentParser()
parser.add_argument("--pairs", type=int, default=256, help="preferences that the judge learns from")
parser.add_argument("--steps", type=int, default=30, help="of the policy, 8 groups of 8 each")
args = parser.parse_args()

world, rng = make_world("forecast", prompt="terse", label="expected"), np.random.default_rng(0)
model = tinker.RestClient().get_server_capabilities().result().supported_models[0].model_name
codec, service = codec_named(codec_name(renderer_for(model), model)), tinker.ServiceClient()
clients = [service.create_lora_training_client(model, rank=32, seed=seed) for seed in (0, 1)]
judge, policy = (client.result() for client in clients)
GOOD = list(codec.write("1"))[:1]  # the log-probability of this token after a reply is its score


def play(first, groups, size):
    """Play groups; returns (tokens read, tokens written, log-probabilities, return) of each."""
    sampler = policy.save_weights_and_get_sampling_client().result()
    params = tinker.SamplingParams(max_tokens=12, stop=codec.stop, seed=first)
    tasks, played = [world.task("train", index) for index in range(first, first + groups)], []
    reads = [Episode(world.fork(), task, codec).observation.tolist() for task in tasks]
    asked = [sampler.sample(tinker.ModelInput.from_ints(read), size, params) for read in reads]
    for task, read, future in zip(tasks, reads, asked, strict=True):
        for reply in future.result().sequences:
            episode = Episode(world.fork(), task, codec)
            episode.act(reply.tokens, reply.stop_reason)
            earned = episode.world.returns["forecaster"]
            played.append((read, list(reply.tokens), list(reply.logprobs), earned))
    return played


def datum(read, written, **of_written):
    """Lay out one sequence; numbers of the written tokens are 0 for those that were read."""
    tokens, pad = read + written, [0.0] * (len(read) - 1)
    inputs = {name: np.array([*pad, *values], np.float32) for name, values in of_written.items()}
    inputs["target_tokens"] = np.array(tokens[1:], np.int64)
    return tinker.Datum(model_input=tinker.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=inputs)


def bradley_terry(data, logprobs):
    """Return the cross-entropy of preferences; of every two data the first is the preferred one."""
    scores_P2 = torch.stack([sequence[-1] for sequence in logprobs]).view(-1, 2)
    loss = -torch.nn.functional.logsigmoid(scores_P2[:, 0] - scores_P2[:, 1]).mean()
    return loss, {"cross-entropy": loss.item()}


pairs, data = play(10**6, args.pairs, 2), []
for one, other in zip(pairs[::2], pairs[1::2], strict=True):
    prefers = rng.random() < 1 / (1 + np.exp(20 * (other[3] - one[3])))
    for read, written, _, _ in (one, other) if prefers else (other, one):
        data.append(datum(read + written, GOOD, weights=[1.0]))
for at in range(0, len(data), 64):
    fitted = judge.forward_backward_custom(data[at : at + 64], bradley_terry).result()
    judge.optim_step(tinker.AdamParams(learning_rate=1e-3)).result()
    print(f"judge: cross-entropy {fitted.metrics['cross-entropy']:.3f}")
scorer = judge.save_weights_and_get_sampling_client().result()
for step in range(args.steps):
    played = play(8 * step, 8, 8)
    judged = [tinker.ModelInput.from_ints(read + written + GOOD) for read, written, _, _ in played]
    asked = [scorer.compute_logprobs(rollout) for rollout in judged]
    scores_PG = np.array([future.result()[-1] for future in asked]).reshape(8, 8)
    edges = (scores_PG - scores_PG.mean(1, keepdims=True)).ravel() / 64
    data = [
        datum(read, written, logprobs=logprobs, advantages=[edge] * len(written))
        for (read, written, logprobs, _), edge in zip(played, edges, strict=True)
    ]
    policy.forward_backward(data, "importance_sampling").result()
    policy.optim_step(tinker.AdamParams(learning_rate=1e-3)).result()
    earned = np.mean([rollout[3] for rollout in played])
    print(f"step {step}: score {scores_PG.mean():.3f}, true return {earned:.3f}")
