"""Train on a world with SkyRL. It needs a GPU; what is tested is that SkyRL loads the settings.

python examples/skyrl/train.py --rows     write the rows of data
python examples/skyrl/train.py            train
"""

import sys
from pathlib import Path

import ray
import skyrl_gym
from omegaconf import OmegaConf
from skyrl.train.config import SkyRLTrainConfig
from skyrl.train.entrypoints.main_base import BasePPOExp
from skyrl.train.utils import validate_cfg
from skyrl.train.utils.utils import initialize_ray

from tokengym.agents.adapters.rows import task_rows
from tokengym.agents.adapters.skyrl import WorldTextEnv
from tokengym.agents.rollouts.json_lines import write_rows

WORLD = "energy:small"
SETTINGS = Path(__file__).with_name("energy.yaml")
TASKS = {"train": 4096, "validation": 128}


@ray.remote(num_cpus=1)
def train(settings: SkyRLTrainConfig) -> None:
    """Train in the process in which the world is registered."""
    skyrl_gym.register("tokengym", WorldTextEnv, {"rollouts": WORLD})
    BasePPOExp(settings).run()


def main() -> None:
    """Write rows, or train."""
    if "--rows" in sys.argv:
        for split, count in TASKS.items():
            write_rows(task_rows(WORLD, split, count), Path(f"{split}.jsonl"))
        return
    settings = SkyRLTrainConfig.from_dict_config(OmegaConf.load(SETTINGS))
    validate_cfg(settings)
    initialize_ray(settings)
    ray.get(train.remote(settings))


if __name__ == "__main__":
    main()
