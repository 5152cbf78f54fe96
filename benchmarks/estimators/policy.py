"""The toy model as a policy over six replies to a question, with exact scores in all its weights.

A reply is one of .200, .250, .500, .550, .800 and .850. Its first two decimals are sampled among
these as constrained decoding does, by masking; the rest is forced. The scores of the nine tokens
are found by automatic differentiation, and handed on as nine vectors with the same products.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from benchmarks.estimators.exact import Replies
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.envs.core.task import canonical_json
from tokengym.envs.registry import make_world
from tokengym.rewards.arrays import Floats

FIRST, SECOND = "258", "05"
STATED = [float(f"0.{first}{second}0") for first, second in product(FIRST, SECOND)]


class SmallPolicy:
    """The toy model on a Task of forecast's first level, which it may be moved on."""

    def __init__(self, index: int) -> None:
        self.model = AutoModelForCausalLM.from_pretrained(MODEL_DIR, dtype=torch.float64)
        tokenizer = AutoTokenizer.from_pretrained(MODEL_DIR)
        world = make_world("forecast", "easy", prompt="terse")
        self.task = world.task("train", index)
        prompt = tokenizer.apply_chat_template(
            [{"role": "user", "content": world.start(self.task).text}],
            add_generation_prompt=True,
            tokenize=False,
        )
        texts = [f"{prompt}Probability: 0.", *(f"{prompt}Probability: 0.{n}" for n in FIRST)]
        self.inputs = [tokenizer(text, return_tensors="pt")["input_ids"] for text in texts]
        self.choices = [tokenizer.convert_tokens_to_ids([*of]) for of in (FIRST, SECOND)]

    def log_steps(self, temperature: float = 1.0) -> torch.Tensor:
        """Return the log-probabilities of both decimals of each reply, (K, 2)."""
        heads = [self.model(ids).logits[0, -1] / temperature for ids in self.inputs]
        first = heads[0][self.choices[0]].log_softmax(0)
        second = torch.stack([head[self.choices[1]].log_softmax(0) for head in heads[1:]])
        pairs = torch.stack([first[:, None].expand_as(second), second], dim=2)
        return pairs.reshape(-1, 2)

    def gradients(self, of: torch.Tensor) -> Floats:
        """Return the gradients of some numbers in all weights, (len(of), weights)."""
        parameters = [*self.model.parameters()]
        rows = [torch.autograd.grad(number, parameters, retain_graph=True) for number in of]
        return np.stack([torch.cat([part.ravel() for part in row]).numpy() for row in rows])

    def earned(self, outcome: str = "") -> Floats:
        """Return what each reply earns: on one outcome, or by the exact probability, (K,)."""
        task = self.task
        if outcome:
            always = outcome * len(task.answer["outcomes"])
            task = replace(task, answer_json=canonical_json({**task.answer, "outcomes": always}))
        world = make_world(
            "forecast", "easy", label="outcome" if outcome else "expected", prompt="terse"
        )
        task, found = world.adopt(task), []
        for stated in STATED:
            world.start(task)
            world.reply(f"Probability: {stated:.3f}")
            found.append(world.returns["forecaster"])
        return np.array(found)

    def replies(self) -> Replies:
        """Return the replies with their exact rewards."""
        logs = self.log_steps()
        rows = self.gradients(torch.cat([logs[:: len(SECOND), 0], logs[:, 1]]))
        values, vectors = np.linalg.eigh(rows @ rows.T)
        root = vectors * np.sqrt(values.clip(min=0.0))
        first, second = np.split(root, [len(FIRST)])
        scores_KTD = np.stack([np.repeat(first, len(SECOND), axis=0), second], axis=1)
        logs_KT = logs.detach().numpy()
        chance_K, ones = np.exp(logs_KT.sum(axis=1)), np.ones_like(logs_KT)
        return paying(Replies(chance_K, logs_KT, scores_KTD, ones), self.earned())

    def exact_gradient(self) -> Floats:
        """Return the gradient of the expected return in all weights, by differentiating it."""
        expected = self.log_steps().sum(dim=1).exp() @ torch.tensor(self.earned())
        row: Floats = self.gradients(expected[None])[0]
        return row

    def move(self, length: float) -> None:
        """Move all weights along the exact gradient by a step of some length."""
        row = self.exact_gradient()
        step = torch.tensor(row * length / np.linalg.norm(row))
        weights = torch.nn.utils.parameters_to_vector(self.model.parameters())
        torch.nn.utils.vector_to_parameters(weights.detach() + step, self.model.parameters())


def paying(replies: Replies, earned_K: Floats) -> Replies:
    """Return replies that earn something else, at their last step."""
    rewards_KT = np.zeros_like(replies.rewards_KT)
    rewards_KT[:, -1] = earned_K
    return replace(replies, rewards_KT=rewards_KT)


def sampled_by(replies: Replies, policy_KT: Floats, sampler_KT: Floats) -> Replies:
    """Return replies that are sampled with other log-probabilities than the policy's."""
    sampled_K = np.exp(sampler_KT.sum(axis=1))
    return replace(replies, sampled_K=sampled_K, log_ratio_KT=policy_KT - sampler_KT)
