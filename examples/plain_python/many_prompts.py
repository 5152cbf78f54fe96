"""Sample several replies to each of many prompts, from any Tinker service.

    python examples/plain_python/many_prompts.py

The service is that of TINKER_BASE_URL and TINKER_API_KEY, and the model its first unless named.
"""

import argparse
from collections import Counter

import tinker

from tokengym.agents import sample_prompts
from tokengym.envs import make_world

arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("--model", help="a model of the service (default: its first)")
arguments.add_argument("--prompts", type=int, default=64)
arguments.add_argument("--replies", type=int, default=8)
said = arguments.parse_args()

served = tinker.RestClient().get_server_capabilities().result().supported_models
model = said.model or served[0].model_name
client = tinker.ServiceClient().create_sampling_client(base_model=model)
tokenizer = client.get_tokenizer()

world = make_world("forecast", level="easy", prompt="terse")
tasks = [world.task("test", index) for index in range(said.prompts)]
prompts = [world.fork().start(task).text for task in tasks]

# One request a prompt, 64 under way at once; replies come in the order of the prompts.
groups = sample_prompts(client, prompts, said.replies, max_tokens=12, temperature=1.0, seed=0)

for prompt, replies in list(zip(prompts, groups, strict=True))[:3]:
    texts = Counter(tokenizer.decode(reply.tokens) for reply in replies)
    print(repr(prompt[-40:]), "->", texts.most_common(2))
print(f"{sum(map(len, groups))} replies to {len(groups)} prompts")
