"""GRPO by TRL on one GPU: the Tasks, the held-out Tasks and the picture of `tokengym train`.

    pip install 'tokengym[trl]'
    python examples/trl_grpo.py --world energy:evening --model Qwen/Qwen3-0.6B --prompt direct

TRL samples with the model that it trains, so no Tinker service is needed. A step has P Tasks, the
next ones of the split `train`, and G rollouts of each; before and after training the policy plays
the first Tasks of the split `test`. The picture has the mean return of every step, both held-out
means, and the world's reference policies on the held-out Tasks as lines.
"""

import argparse
from pathlib import Path
from statistics import fmean

import torch
from matplotlib.figure import Figure
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from tokengym.agents import RendererCodec
from tokengym.agents.adapters.trl import RETURN, WorldRollouts, return_reward, task_rows
from tokengym.agents.scale.level_scale import Scale, ladder_of, scripted_opponents
from tokengym.agents.tinker.codec import renderer_for
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.envs import Rollouts, spec

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("--world", default="forecast", help="one with a level: energy:evening")
parser.add_argument("--model", default=str(MODEL_DIR), help="a directory, or a name of the hub")
parser.add_argument("--prompt", default="terse", help="or direct, full")
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--groups", type=int, default=8, help="Tasks of a step, P")
parser.add_argument("--group-size", type=int, default=8, help="rollouts of a Task, G")
parser.add_argument("--max-tokens", type=int, default=32, help="longest reply")
parser.add_argument("--learning-rate", type=float, default=1e-5, help="of all weights")
parser.add_argument("--evaluation-tasks", type=int, default=64)
parser.add_argument("--out", type=Path, default=Path("runs/trl"), help="folder")
args = parser.parse_args()

# Options by which training is scored: forecasts against exact probabilities, without luck.
options = {**spec(args.world.partition(":")[0]).training, "prompt": args.prompt}
codec = RendererCodec(renderer_for(args.model), args.model)
rollouts = Rollouts(args.world, codec=codec, **options)
play = WorldRollouts(rollouts, args.max_tokens)
on_gpu = torch.cuda.is_available()
trainer = GRPOTrainer(
    model=AutoModelForCausalLM.from_pretrained(
        args.model, dtype=torch.bfloat16 if on_gpu else torch.float32
    ),
    processing_class=AutoTokenizer.from_pretrained(args.model, padding_side="left"),
    reward_funcs=return_reward,
    rollout_func=play,
    train_dataset=task_rows(rollouts, "train", args.steps * args.groups),
    args=GRPOConfig(
        str(args.out),
        max_steps=args.steps,
        num_generations=args.group_size,
        per_device_train_batch_size=args.group_size,  # a group at a time
        gradient_accumulation_steps=args.groups,
        learning_rate=args.learning_rate,
        lr_scheduler_type="constant",
        scale_rewards="none",  # dividing by a group's deviation would bias proper scores
        shuffle_dataset=False,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=not on_gpu,
        bf16=on_gpu,
    ),
)


def evaluate() -> float:
    """Return the policy's mean return on the held-out Tasks."""
    names = [f"test/{index}" for index in range(args.evaluation_tasks)]
    return fmean(play(names, trainer)[RETURN])


before = evaluate()
trainer.train()
after = evaluate()
trainer.save_model()
print(f"before {before:.3f}, after {after:.3f} on {args.evaluation_tasks} held-out Tasks")

world, role = rollouts.world, rollouts.role
ladder = ladder_of(world.spec, world.level, role)
named = [rung.policy for rung in ladder.rungs if rung.kind == "textbook"] if ladder else []
tasks = world.first_tasks("test", args.evaluation_tasks)
scale = Scale.measure(world, tasks, role, scripted_opponents(world, role), policies=named)
returns = [row["reward"] for row in trainer.state.log_history if "reward" in row]
figure = Figure(layout="tight")
axes = figure.subplots()
axes.plot(range(1, len(returns) + 1), returns)
axes.plot([0, len(returns)], [before, after], "o")
for name, mean in scale.levels(ladder).items():
    axes.axhline(mean, ls="--", lw=1, color="grey")
    axes.annotate(name, (0, mean))
axes.set(title=args.world, xlabel="step", ylabel="mean return")
figure.savefig(args.out / "learned.png")
