"""Train one model on what another thinks of its replies, with an advantage for each token.

    python examples/plain_python/two_models.py --run runs/two-models

The policy writes a note on a question. It is paid for by how much the note raises the judge's
log-probability of the answer (delta log P), which is one number for all tokens of the note; and
every token beyond the first eight costs a little, which is that token's own affair. The service is
that of TINKER_BASE_URL and TINKER_API_KEY; --wandb PROJECT logs to Weights & Biases as well.
"""

import argparse
from pathlib import Path
from statistics import fmean

import tinker

from tokengym.agents import RunFolder, datum, sample_prompts
from tokengym.envs import baselines, make_world, play

arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("--run", type=Path, default=Path("runs/two-models"))
arguments.add_argument("--model", help="that is trained (default: the service's first)")
arguments.add_argument("--judge", help="that judges (default: the same, untrained)")
arguments.add_argument("--wandb", help="a project of Weights & Biases")
arguments.add_argument("--steps", type=int, default=3)
arguments.add_argument("--prompts", type=int, default=8)
arguments.add_argument("--replies", type=int, default=8)
arguments.add_argument("--free", type=int, default=8, help="tokens that cost nothing")
arguments.add_argument("--price", type=float, default=0.05, help="of each further token")
said = arguments.parse_args()

run = RunFolder(said.run, wandb=said.wandb)  # refused here, if wandb is missing
served = tinker.RestClient().get_server_capabilities().result().supported_models
model = said.model or served[0].model_name
service = tinker.ServiceClient()
policy = service.create_lora_training_client(base_model=model, rank=16, seed=0)
judge = service.create_sampling_client(base_model=said.judge or model)
tokenizer = policy.get_tokenizer()

world = make_world("forecast", level="easy", prompt="terse")


def question(index):
    """Return the tokens of a question and of its best answer."""
    task = world.task("train", index)
    oracle = baselines("forecast")["oracle"]
    best = play(world.fork(), task, oracle).replies[-1]
    return tokenizer.encode(world.fork().start(task).text), tokenizer.encode("\n" + best)


def log_probability(context, answer):
    """Ask the judge for the log-probability of an answer after a context; a future."""
    return judge.compute_logprobs(tinker.ModelInput.from_ints(context + answer)), len(answer)


def summed(asked):
    """Wait for the log-probability of an answer."""
    future, length = asked
    return sum(future.result()[-length:])


for step in range(said.steps):
    sampler = policy.save_weights_and_get_sampling_client()
    questions = [question(step * said.prompts + place) for place in range(said.prompts)]
    prompts = [prompt for prompt, _ in questions]
    groups = sample_prompts(sampler, prompts, said.replies, max_tokens=16, seed=step)

    without = [log_probability(prompt, answer) for prompt, answer in questions]
    with_note = [
        [log_probability(prompt + note.tokens, answer) for note in notes]
        for (prompt, answer), notes in zip(questions, groups, strict=True)
    ]
    data, rewards = [], []
    for prompt, notes, before, after in zip(prompts, groups, without, with_note, strict=True):
        gains = [summed(asked) - summed(before) for asked in after]
        rewards += gains
        for note, gain in zip(notes, gains, strict=True):
            shared = gain - fmean(gains)
            advantages = [
                shared - said.price * (place >= said.free) for place in range(len(note.tokens))
            ]
            data.append(datum(prompt + note.tokens, note.logprobs, advantages))

    update = policy.forward_backward(data, "importance_sampling")
    policy.optim_step(tinker.AdamParams(learning_rate=1e-3)).result()
    lengths = [len(note.tokens) for notes in groups for note in notes]
    run.log(mean_reward=fmean(rewards), note_length=fmean(lengths), **update.result().metrics)
    print(f"step {step}: delta log P {fmean(rewards):.3f}, {fmean(lengths):.1f} tokens a note")
