"""Processor time of a step of the local service beside a plain loop without service or HTTP.

    python -m benchmarks.service_speed [--world energy:small] [--tasks 6] [--rollouts 8]

Both play the same Tasks with the small policy in float32, one thread, and take one step of
importance sampling on a rank-32 adapter. The plain loop keeps the keys of all episodes in one
padded batch, reads a Task's opening once, and trains on groups sorted by length with their opening
computed once. The service's time is that of its process and of the client's, which plays the
worlds. Rounds alternate; the last line has the medians of the ratios.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import psutil
import tinker
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tinker.types import AdamParams, Datum, ModelInput, SamplingParams

from tokengym.agents.service import LocalService
from tokengym.agents.tinker.codec import codec_name, codec_named, renderer_for
from tokengym.agents.toy_model import MODEL_DIR, TOY_MODEL
from tokengym.envs.registry import make_world
from tokengym.envs.tokens.episode import Episode

HEADS, WIDTH, LAYERS, RANK, SCALING = 5, 32, 4, 32, 1.0
LIMIT, STOP, CHUNK = 48, 2, 5000


class PlainModel:
    """The small policy with an adapter on every projection."""

    def __init__(self) -> None:
        self.w = {n: t.float() for n, t in load_file(MODEL_DIR / "model.safetensors").items()}
        draw = torch.Generator().manual_seed(0)
        self.ab = {
            name: [
                (torch.randn(RANK, t.shape[1], generator=draw) / 30).requires_grad_(),
                torch.zeros(t.shape[0], RANK, requires_grad=True),
            ]
            for name, t in self.w.items()
            if "proj" in name
        }
        angles = torch.arange(16384.0)[:, None] / 10000 ** (torch.arange(0, WIDTH, 2) / WIDTH)
        self.cos, self.sin = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)

    def merged(self) -> dict[str, torch.Tensor]:
        """Return all weights, with the adapter added."""
        return self.w | {n: self.w[n] + SCALING * (b @ a) for n, (a, b) in self.ab.items()}

    def layer(
        self, w: dict[str, torch.Tensor], i: int, x: torch.Tensor, at: torch.Tensor, attend: Any
    ) -> torch.Tensor:
        """Run a layer over [B, T, hidden] at positions [B, T]."""

        def norm(x: torch.Tensor, name: str) -> torch.Tensor:
            return F.rms_norm(x, x.shape[-1:], w[f"model.layers.{i}.{name}.weight"], 1e-6)

        def linear(x: torch.Tensor, name: str) -> torch.Tensor:
            return F.linear(x, w[f"model.layers.{i}.{name}_proj.weight"])

        h, cos, sin = norm(x, "input_layernorm"), self.cos[at][:, None], self.sin[at][:, None]
        q, k, v = (
            linear(h, f"self_attn.{n}").unflatten(-1, (HEADS, WIDTH)).transpose(1, 2) for n in "qkv"
        )
        q, k = (
            t * cos + torch.cat([-t[..., WIDTH // 2 :], t[..., : WIDTH // 2]], -1) * sin
            for t in (norm(q, "self_attn.q_norm"), norm(k, "self_attn.k_norm"))
        )
        x = x + linear(attend(i, q, k, v).transpose(1, 2).flatten(2), "self_attn.o")
        h = norm(x, "post_attention_layernorm")
        return x + linear(F.silu(linear(h, "mlp.gate")) * linear(h, "mlp.up"), "mlp.down")

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of hidden states."""
        x = F.rms_norm(x, x.shape[-1:], self.w["model.norm.weight"], 1e-6)
        return F.linear(x, self.w["model.embed_tokens.weight"])


class Cache:
    """Keys and values of N conversations in one buffer that grows."""

    def __init__(self, model: PlainModel, rows: int) -> None:
        self.model = model
        with torch.no_grad():
            self.w = model.merged()
        self.kv = [torch.zeros(2, rows, HEADS, 1024, WIDTH) for _ in range(LAYERS)]
        self.length = torch.zeros(rows, dtype=torch.long)

    @torch.no_grad()
    def feed(self, new: list[list[int]]) -> torch.Tensor:
        """Append tokens to every row, none to some; logits [N, vocab] after the last of each."""
        ids, counts = padded(new)
        at = self.length[:, None] + torch.arange(ids.shape[1])
        end = int(at.max()) + 1
        if end > self.kv[0].shape[3]:
            self.kv = [F.pad(t, (0, 0, 0, max(256, end - t.shape[3]))) for t in self.kv]
        mask = torch.arange(end) <= at[:, None, :, None]
        rows = torch.arange(len(new))[:, None]

        def attend(i: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            keys, values = self.kv[i]
            keys[rows, :, at], values[rows, :, at] = k.transpose(1, 2), v.transpose(1, 2)
            seen = keys[:, :, :end], values[:, :, :end]
            return F.scaled_dot_product_attention(q, *seen, attn_mask=mask)

        x = F.embedding(ids, self.w["model.embed_tokens.weight"])
        for i in range(LAYERS):
            x = self.model.layer(self.w, i, x, at, attend)
        self.length += counts
        return self.model.logits(x[torch.arange(len(new)), (counts - 1).clamp(min=0)])


def padded(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows padded on the right, and their lengths."""
    counts = torch.tensor([len(row) for row in rows])
    ids = torch.zeros(len(rows), max(1, int(counts.max())), dtype=torch.long)
    for row, tokens in enumerate(rows):
        ids[row, : len(tokens)] = torch.tensor(tokens, dtype=torch.long)
    return ids, counts


class Rollout:
    """An episode, its tokens and those that the policy wrote, with their log-probabilities."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self.tokens: list[int] = []
        self.logprobs: list[float] = []

    def observe(self) -> list[int]:
        """Return the conversation so far, and note its new tokens."""
        seen: list[int] = self.episode.observation.tolist()
        self.logprobs += [0.0] * (len(seen) - len(self.tokens))
        self.tokens = seen
        return seen

    def act(self, reply: list[int], logprobs: list[float]) -> None:
        """Play a reply."""
        self.tokens, self.logprobs = self.tokens + reply, self.logprobs + logprobs
        self.episode.act(reply, "stop" if reply[-1] == STOP else "length")


def plain_rollouts(model: PlainModel, rollouts: list[Rollout], copies: int) -> None:
    """Play all rollouts to their ends, side by side."""
    cache = Cache(model, len(rollouts) // copies)
    opening = [rollout.observe()[:-1] for rollout in rollouts[::copies]]
    cache.feed(opening)
    cache.kv = [t.repeat_interleave(copies, 1) for t in cache.kv]
    cache.length = cache.length.repeat_interleave(copies)
    while live := [row for row, one in enumerate(rollouts) if not one.episode.done]:
        new: list[list[int]] = [[] for _ in rollouts]
        for row in live:
            new[row] = rollouts[row].observe()[int(cache.length[row]) :]
        replies: dict[int, tuple[list[int], list[float]]] = {row: ([], []) for row in live}
        open_rows = set(live)
        while open_rows:
            logprobs = torch.log_softmax(cache.feed(new), -1)
            drawn = torch.multinomial(logprobs.exp(), 1)
            picked = logprobs.gather(1, drawn)[:, 0].tolist()
            new = [[] for _ in rollouts]
            for row in sorted(open_rows):
                tokens, values = replies[row]
                tokens.append(int(drawn[row]))
                values.append(picked[row])
                new[row] = tokens[-1:]
                if tokens[-1] == STOP or len(tokens) == LIMIT:
                    open_rows.discard(row)
        for row, reply in replies.items():
            rollouts[row].act(*reply)


def plain_step(model: PlainModel, rollouts: list[Rollout], copies: int) -> None:
    """Take a step on groups sorted by length, each with its opening computed once."""
    optimizer = torch.optim.AdamW([t for pair in model.ab.values() for t in pair], 1e-5)
    groups = [rollouts[i : i + copies] for i in range(0, len(rollouts), copies)]
    groups.sort(key=lambda group: max(len(one.tokens) for one in group))
    width = [max(len(one.tokens) for one in group) * copies for group in groups]
    starts = [0]
    for i in range(1, len(groups)):
        if sum(width[starts[-1] : i + 1]) > CHUNK:
            starts.append(i)
    for first, last in zip(starts, [*starts[1:], len(groups)], strict=True):
        train_chunk(model, groups[first:last], copies)
    optimizer.step()


def train_chunk(model: PlainModel, groups: list[list[Rollout]], copies: int) -> None:
    """Add the gradient of some groups."""
    w = model.merged()
    opened = [int(np.flatnonzero(group[0].logprobs)[0]) - 1 for group in groups]
    before, lengths = padded([g[0].tokens[:n] for g, n in zip(groups, opened, strict=True)])
    pairs = [(one, n) for g, n in zip(groups, opened, strict=True) for one in g]
    after, _ = padded([one.tokens[n:] for one, n in pairs])
    at = torch.tensor([n for _, n in pairs])[:, None] + torch.arange(after.shape[1])
    seen = (torch.arange(before.shape[1]) < lengths[:, None]).repeat_interleave(copies, 0)
    causal = torch.ones(2 * after.shape[1:], dtype=torch.bool).tril().expand(len(after), -1, -1)
    mask = torch.cat([seen[:, None].expand(-1, after.shape[1], -1), causal], -1)[:, None]
    shared: list[tuple[torch.Tensor, torch.Tensor]] = []

    def opening(_: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        shared.append((k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def following(i: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        (k, v) = (
            torch.cat([one.repeat_interleave(copies, 0), own], 2)
            for one, own in zip(shared[i], (k, v), strict=True)
        )
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    x, y = (F.embedding(ids, w["model.embed_tokens.weight"]) for ids in (before, after))
    first = torch.arange(before.shape[1]).expand(len(before), -1)
    for i in range(LAYERS):
        x = model.layer(w, i, x, first, opening)
        y = model.layer(w, i, y, at, following)
    own = torch.zeros(after.shape)
    for row, (one, n) in enumerate(pairs):
        own[row, : len(one.tokens) - n] = torch.tensor(one.logprobs[n:])
    written = own[:, 1:] != 0
    logprobs = torch.log_softmax(model.logits(y[:, :-1][written]), -1)
    picked = logprobs.gather(1, after[:, 1:][written][:, None])[:, 0]
    sign = torch.tensor([(-1.0) ** row for row in range(len(pairs))])[:, None].expand_as(written)
    (-(picked - own[:, 1:][written]).exp() * sign[written]).sum().backward()


def served_rollouts(sampler: Any, rollouts: list[Rollout]) -> None:
    """Play all rollouts to their ends, each by itself."""

    async def play(one: Rollout) -> None:
        while not one.episode.done:
            prompt = ModelInput.from_ints(one.observe())
            params = SamplingParams(max_tokens=LIMIT, stop=[STOP])
            found = await sampler.sample(prompt, 1, params)
            (reply,) = found.sequences
            one.act(list(reply.tokens), list(reply.logprobs))

    async def play_all() -> None:
        await asyncio.gather(*map(play, rollouts))

    asyncio.run(play_all())


def served_step(run: Any, rollouts: list[Rollout]) -> None:
    """Take a step on all rollouts."""
    data = []
    for row, one in enumerate(rollouts):
        old = np.array(one.logprobs[1:], np.float32)
        inputs: Any = {
            "target_tokens": np.array(one.tokens[1:]),
            "logprobs": old,
            "advantages": np.where(old != 0, np.float32((-1.0) ** row), np.float32(0)),
        }
        data.append(Datum(model_input=ModelInput.from_ints(one.tokens[:-1]), loss_fn_inputs=inputs))
    run.forward_backward(data, "importance_sampling")
    run.optim_step(AdamParams(learning_rate=1e-5)).result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", default="energy:small")
    parser.add_argument("--tasks", type=int, default=6)
    parser.add_argument("--rollouts", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    world = make_world(options.world, prompt="terse")
    codec = codec_named(codec_name(renderer_for(TOY_MODEL, ""), str(MODEL_DIR)))
    tasks = world.first_tasks("train", options.tasks)
    model = PlainModel()
    ratios: list[tuple[float, float]] = []

    def begun() -> list[Rollout]:
        openings: dict[str, list[int]] = {}
        return [
            Rollout(Episode(world.fork(), task, codec, openings=openings))
            for task in tasks
            for _ in range(options.rollouts)
        ]

    def timed(work: Callable[[], object]) -> float:
        start = time.process_time() + sum(process.cpu_times()[:2])
        work()
        return time.process_time() + sum(process.cpu_times()[:2]) - start

    with (
        tempfile.TemporaryDirectory() as state,
        LocalService(MODEL_DIR, state_dir=state, threads=1) as service,
    ):
        process = psutil.Process(service.pid)
        client = tinker.ServiceClient(base_url=service.base_url, api_key=service.api_key)
        run = client.create_lora_training_client(service.model_name, rank=RANK).result()
        for _ in range(options.rounds):
            sampler = run.save_weights_and_get_sampling_client().result()
            ours, theirs = begun(), begun()
            row = {
                "service sampling": timed(partial(served_rollouts, sampler, ours)),
                "plain sampling": timed(partial(plain_rollouts, model, theirs, options.rollouts)),
                "service step": timed(partial(served_step, run, ours)),
                "plain step": timed(partial(plain_step, model, theirs, options.rollouts)),
                "tokens ours": sum(len(one.tokens) for one in ours),
                "tokens theirs": sum(len(one.tokens) for one in theirs),
            }
            whole = [row[f"{who} sampling"] + row[f"{who} step"] for who in ("service", "plain")]
            ratios.append((row["service sampling"] / row["plain sampling"], whole[0] / whole[1]))
            print(json.dumps({k: round(float(v), 2) for k, v in row.items()}), flush=True)
    sampling, step = np.median(ratios, axis=0)
    print(f"{options.world}: sampling {sampling:.2f}, step {step:.2f} times the plain loop")


if __name__ == "__main__":
    main()
