"""GRPO on Tokengym, whole: rollouts, advantages, loss, update and evaluation in one file.

    python examples/grpo.py --env energy --level small --steps 20

It needs a Tinker service: that of TINKER_BASE_URL and TINKER_API_KEY, such as the one that
`tokengym serve --model tokengym-start` starts, which prints both. Read it from top to bottom: a
policy plays groups of episodes of the same Task, each reply is judged by how much its episode
earned beyond the group's mean, and one step of Adam makes the tokens of better episodes likelier.
`tokengym train` does the same with filters, checkpoints and reports; none of it is imported here.

Names end in their dimensions: P Tasks of a step, G episodes of a Task, T tokens.
"""

import argparse

import numpy as np
import tinker

from tokengym.agents.tinker.codec import codec_name, codec_named, renderer_for
from tokengym.envs import make_world
from tokengym.envs.tokens.episode import Episode

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("--env", default="forecast", help="a world with one role")
parser.add_argument("--level", help="default: the world's first")
parser.add_argument("--prompt", default="terse", help="full, for models that know English")
parser.add_argument("--model", help="of the service; default: its first")
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--groups", type=int, default=16, help="Tasks of a step, P")
parser.add_argument("--group-size", type=int, default=8, help="episodes of a Task, G")
parser.add_argument("--max-tokens", type=int, default=32, help="longest reply")
parser.add_argument("--learning-rate", type=float, default=1e-3)
parser.add_argument("--evaluation-tasks", type=int, default=64)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()

# A world draws Tasks; a codec is the chat format and tokenizer in which a model reads and writes.
world = make_world(args.env, args.level, prompt=args.prompt)
if len(world.spec.roles) > 1:
    parser.error(f"this loop plays worlds with one role, {args.env} has {world.spec.roles}")
role = world.spec.roles[0]
try:
    served = tinker.RestClient().get_server_capabilities().result().supported_models
except tinker.TinkerError as error:
    parser.error(f"{error}\n`tokengym serve --model tokengym-start` starts one and prints both")
model = args.model or served[0].model_name
codec = codec_named(codec_name(renderer_for(model), model))

# The policy is a LoRA adapter on the service; only tokens and numbers travel.
service = tinker.ServiceClient()
policy = service.create_lora_training_client(base_model=model, rank=32, seed=args.seed).result()


def play(sampler, tasks, seed, temperature=1.0):
    """Play one episode of each Task, all at once; return each one's turns and its return.

    A turn is (tokens read, tokens sampled, their log-probabilities), as the model saw it.
    """
    episodes = [Episode(world.fork(), task, codec) for task in tasks]
    turns = [[] for _ in tasks]
    number = 0
    while running := [place for place, episode in enumerate(episodes) if not episode.done]:
        asked = {}
        for place in running:
            read = episodes[place].observation.tolist()
            params = tinker.SamplingParams(
                max_tokens=args.max_tokens,
                temperature=temperature,
                stop=codec.stop,
                seed=hash((seed, place, number)) % 2**31,
            )
            asked[place] = read, sampler.sample(tinker.ModelInput.from_ints(read), 1, params)
        for place, (read, future) in asked.items():
            (reply,) = future.result().sequences
            turns[place].append((read, list(reply.tokens), list(reply.logprobs)))
            episodes[place].act(reply.tokens, reply.stop_reason)
        number += 1
    return turns, np.array([episode.world.returns[role] for episode in episodes])


def datums(turns, advantage):
    """Lay an episode out as training data: every sampled token gets the episode's advantage.

    Most turns read all that the turn before them read and wrote, and then more. Such turns
    share a sequence, so that the service computes it once; where a chat format rewrites what was
    said (it may drop the thinking), a new sequence begins.
    """
    sequences = []
    for read, sampled, sampled_logprobs in turns:
        tokens, logprobs = sequences[-1] if sequences else ([], [])
        if not tokens or read[: len(tokens)] != tokens:
            tokens, logprobs = [], []
            sequences.append((tokens, logprobs))
        new = read[len(tokens) :]
        tokens += new + sampled
        logprobs += [None] * len(new) + sampled_logprobs
    for tokens, logprobs in sequences:
        # Token t is predicted from those before it: inputs are all but the last, targets all but
        # the first. Tokens that were read have the advantage 0 and are not learned.
        logprobs_T = np.array([value or 0.0 for value in logprobs[1:]], np.float32)
        written_T = np.array([value is not None for value in logprobs[1:]])
        yield tinker.Datum(
            model_input=tinker.ModelInput.from_ints(tokens[:-1]),
            loss_fn_inputs={
                "target_tokens": np.array(tokens[1:], np.int64),
                "logprobs": logprobs_T,
                "advantages": (written_T * advantage).astype(np.float32),
            },
        )


def evaluate(name):
    """Print the mean return, with its standard error, over Tasks that are never trained on."""
    tasks = [world.task("test", index) for index in range(args.evaluation_tasks)]
    sampler = policy.save_weights_and_get_sampling_client().result()
    _, returns = play(sampler, tasks, seed=-1)
    error = returns.std(ddof=1) / np.sqrt(len(returns))
    print(f"{name}: mean return {returns.mean():.3f} ± {error:.3f} over {len(returns)} Tasks")


evaluate("before")
for step in range(args.steps):
    # Rollouts: G episodes of each of P Tasks, with the weights as they are.
    sampler = policy.save_weights_and_get_sampling_client().result()
    first = step * args.groups
    tasks = [world.task("train", index) for index in range(first, first + args.groups)]
    turns, returns = play(sampler, [t for t in tasks for _ in range(args.group_size)], seed=step)
    returns_PG = returns.reshape(args.groups, args.group_size)

    # Advantages: what an episode earned beyond its group's mean. A group that earned the same
    # throughout teaches nothing. (GRPO as first published also divides by the group's standard
    # deviation, which gives easy and hard Tasks updates of the same size.)
    advantages_PG = returns_PG - returns_PG.mean(axis=1, keepdims=True)

    # Loss: minus the sum over sampled tokens of exp(logprob - logprob when sampled) * advantage.
    # One update a batch: the ratio is 1 but for rounding, and its gradient the policy gradient.
    data = [
        datum
        for episode, advantage in zip(turns, advantages_PG.ravel(), strict=True)
        if advantage != 0.0
        for datum in datums(episode, advantage / len(turns))
    ]
    norm = 0.0
    if data:
        policy.forward_backward(data, "importance_sampling").result()
        update = policy.optim_step(tinker.AdamParams(learning_rate=args.learning_rate)).result()
        norm = (update.metrics or {}).get("optim/grad_norm", float("nan"))
    live = int((advantages_PG != 0.0).any(axis=1).sum())
    print(f"step {step}: return {returns.mean():.3f}, {live} live groups, gradient {norm:.3g}")
evaluate("after")
