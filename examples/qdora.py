"""Fit the debate's demonstrations by peft: DoRA adapters, on a GPU over a model of 4 bits.

    python examples/qdora.py MODEL TARGET PAPERS

MODEL is a directory of a model or its name on the hub, TARGET the folder of the merged result, PAPERS
the number of demonstrations. On a GPU it needs `pip install bitsandbytes`; without one it trains
plain DoRA, slowly.
"""

import sys

import numpy as np
import torch
from peft import LoraConfig, PeftModel, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

from tokengym.agents import codec_named
from tokengym.envs.disruption.demonstrations import labelled
from tokengym.envs.registry import make_world
from tokengym.envs.tokens.episode import Episode

source, target, papers, batch = sys.argv[1], sys.argv[2], int(sys.argv[3]), 8
gpu = torch.cuda.is_available()
if gpu:
    bits = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )
    model = AutoModelForCausalLM.from_pretrained(
        source, dtype=torch.bfloat16, quantization_config=bits, device_map="auto"
    )
    model = prepare_model_for_kbit_training(model)
else:
    model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
adapter = LoraConfig(r=32, lora_alpha=32, use_dora=True, target_modules="all-linear")
model = get_peft_model(model, adapter)
codec = codec_named(f"qwen3_instruct@{source}")
world = make_world("disruption", prompt="terse")  # like the runs it is compared with


def example(index):
    """One debate as the predictor reads it; only its own tokens are labels."""
    rng = np.random.default_rng(index)
    episode = Episode(world, world.task("train", index), codec, roles=("predictor",))
    labels = []
    while not episode.done:
        reply = labelled(world, episode.turn, rng)
        if episode.role == "predictor":
            labels += [-100] * (len(episode.observation) - len(labels)) + list(codec.write(reply))
        episode.say(reply)
    return torch.tensor(episode.tokens_of("predictor")), torch.tensor(labels)


optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-4)
pad = torch.nn.utils.rnn.pad_sequence
model.train()
for first in range(0, papers, batch):
    tokens, labels = zip(*map(example, range(first, min(first + batch, papers))), strict=True)
    mask = pad([torch.ones_like(row) for row in tokens], batch_first=True)
    inputs, targets = (
        pad(tokens, batch_first=True),
        pad(labels, batch_first=True, padding_value=-100),
    )
    on = model.device
    loss = model(input_ids=inputs.to(on), attention_mask=mask.to(on), labels=targets.to(on)).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"{first + len(tokens)} papers, loss {loss.item():.3f}", flush=True)

# Adapters are merged into the model as it was before it was quantised.
model.save_pretrained(f"{target}-adapter")
whole = AutoModelForCausalLM.from_pretrained(source, dtype=torch.bfloat16 if gpu else None)
PeftModel.from_pretrained(whole, f"{target}-adapter").merge_and_unload().save_pretrained(target)
AutoTokenizer.from_pretrained(source).save_pretrained(target)
