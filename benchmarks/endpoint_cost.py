"""What a reply of an endpoint costs the evaluation, beside a client that does nothing else.

A server in a process of its own answers every request after 50 ms. Measured is the processor time
of this process for each reply: of an evaluation of forecasts (all of it, and its rollouts alone),
and of a bare aiohttp client that sends the same conversations and reads the answers; where Inspect
or verifiers before 0.4 is installed, of its own runner on the same Tasks, too. Run it with
`python -m benchmarks.endpoint_cost`; it takes about a minute on an idle machine.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import aiohttp
from aiohttp import web

from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.memory import set_up_memory

LATENCY_S = 0.05
MODEL = "some/model"
ANSWER = {
    "id": "1",
    "object": "chat.completion",
    "created": 0,
    "model": MODEL,
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Probability: 0.4"},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 300, "completion_tokens": 6, "total_tokens": 306},
}


def serve(ready: Connection) -> None:
    """Answer every request after the latency, until the process is ended."""

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(LATENCY_S)
        return web.json_response(ANSWER)

    async def run() -> None:
        application = web.Application()
        application.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        ready.send(f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
        await asyncio.Event().wait()

    asyncio.run(run())


async def send_bare(url: str, bodies: Sequence[Any], concurrency: int) -> None:
    """Send requests with aiohttp alone."""
    left = iter(bodies)
    connector = aiohttp.TCPConnector(limit=0)

    async def send(session: aiohttp.ClientSession) -> None:
        for body in left:
            async with session.post(f"{url}/chat/completions", json=body) as response:
                json.loads(await response.read())

    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(send(session) for _ in range(concurrency)))


def evaluate(url: str, tasks: int, rollouts: int, concurrency: int, folder: Path) -> list[float]:
    """Evaluate; returns the processor time of all of it, and of its rollouts."""
    config = EvaluationConfig(
        (WorldLevel.parse("forecast"),), (f"openai:{MODEL}@{url}",), tasks=tasks, rollouts=rollouts
    )
    at: list[float] = []

    def note(what: str, done: int, total: int) -> None:
        if done in (0, total):
            at.append(process_time())

    begun = process_time()
    run_evaluation(config, EvaluationFolder(folder), note)
    return [process_time() - begun, at[1] - at[0]]


def evaluate_with_inspect(url: str, tasks: int, rollouts: int, concurrency: int) -> None:
    """Evaluate with Inspect's runner."""
    from inspect_ai import eval as inspect_eval
    from inspect_ai.model import get_model

    from tokengym.agents.adapters.inspect import world_task

    with tempfile.TemporaryDirectory() as logs:
        inspect_eval(
            world_task("forecast", samples=tasks),
            model=get_model("openai-api/mock/model", base_url=url, api_key="none"),
            epochs=rollouts,
            max_connections=concurrency,
            max_samples=concurrency,
            display="none",
            log_dir=logs,
        )


def evaluate_with_verifiers(url: str, tasks: int, rollouts: int, concurrency: int) -> None:
    """Evaluate with the runner of verifiers before 0.4."""
    import verifiers as vf

    from tokengym.agents.adapters.verifiers import load_environment

    os.environ["NO_KEY"] = "none"
    load_environment("forecast", evaluation_tasks=tasks).evaluate_sync(
        vf.ClientConfig(api_base_url=url, api_key_var="NO_KEY"),
        MODEL,
        num_examples=tasks,
        rollouts_per_example=rollouts,
        max_concurrent=concurrency,
    )


PEERS = {"inspect_ai": evaluate_with_inspect, "verifiers": evaluate_with_verifiers}


def requests_of(folder: Path) -> list[dict[str, Any]]:
    """Return the requests of an evaluation's rollouts."""
    return [
        {
            "model": MODEL,
            "messages": [{"role": "user", "content": record.turns[0].read}],
            "temperature": record.origin.temperature,
            "max_tokens": record.origin.max_tokens,
        }
        for record in EvaluationFolder(folder).rollouts.read()
    ]


def main() -> None:
    """Print a row for each concurrency."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--rollouts", type=int, default=4)
    parser.add_argument("--concurrency", type=int, nargs="*", default=[16, 64, 256, 512])
    options = parser.parse_args()
    set_up_memory()  # as in a command
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=serve, args=(there,), daemon=True)
    server.start()
    url = here.recv()
    replies = options.tasks * options.rollouts
    print(f"{replies} replies to {options.tasks} Tasks, processor ms a reply")
    print("concurrency | evaluation | its rollouts | bare aiohttp | rollouts above it | replies/s")
    with tempfile.TemporaryDirectory() as scratch:
        # What is imported and compiled once is not counted.
        evaluate(url, 20, 4, 16, Path(scratch) / "warm")
        for concurrency in options.concurrency:
            folder = Path(scratch) / str(concurrency)
            begun = perf_counter()
            whole, played = evaluate(url, options.tasks, options.rollouts, concurrency, folder)
            rate = replies / (perf_counter() - begun)
            bodies = requests_of(folder)
            begun = process_time()
            asyncio.run(send_bare(url, bodies, concurrency))
            bare = process_time() - begun
            of_reply = [1e3 * seconds / replies for seconds in (whole, played, bare, played - bare)]
            cells = [f"{ms:.2f}" for ms in of_reply]
            print(" | ".join([str(concurrency), *cells, f"{rate:.0f}"]), flush=True)
        for name, evaluate_with_peer in PEERS.items():
            for concurrency in options.concurrency if find_spec(name) else ():
                begun = process_time()
                evaluate_with_peer(url, options.tasks, options.rollouts, concurrency)
                ms = 1e3 * (process_time() - begun) / replies
                print(f"{name}, concurrency {concurrency}: {ms:.2f} ms a reply", flush=True)


if __name__ == "__main__":
    main()
