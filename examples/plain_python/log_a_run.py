"""Log any figures into a run folder, and to Weights & Biases.

    python examples/plain_python/log_a_run.py --run runs/mine

--wandb PROJECT needs `pip install 'tokengym[wandb]'`; with WANDB_MODE=offline it needs no account.
"""

import argparse
from pathlib import Path

from tokengym.agents import RunFolder
from tokengym.envs import baselines, make_world, play

arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("--run", type=Path, default=Path("runs/mine"))
arguments.add_argument("--wandb", help="a project of Weights & Biases")
arguments.add_argument("--episodes", type=int, default=5)
said = arguments.parse_args()

run = RunFolder(said.run, wandb=said.wandb)  # refused here, if wandb is missing
world = make_world("energy", level="small")
for index in range(said.episodes):
    record = play(world.fork(), world.task("train", index), baselines("energy")["noisy"])
    run.log(mean_reward=record.returns["operator"], replies=len(record.replies))
print((run.folder / "metrics.jsonl").read_text())
