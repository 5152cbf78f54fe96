"""Targets of the public table beside the sources that ship: packages, solvers and prompts.

    python -m benchmarks.certified_sources prompts     writes rows for graders that bring none
    benchmarks/certified_sources.py:Gem --option name=game:Mastermind-v0-hard
    --option reference=benchmarks/certified_sources.py:tower

`Gem` and `SkyRL` are packages that certify has no source for. Solvers are of games that do not say
what is right: each takes a game or an environment that was reset and returns the replies that solve
it. They read what the package keeps of the game, and nothing of ours.
"""

import argparse
import json
import logging
import random
import string
from collections import deque
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product as every
from pathlib import Path
from typing import Any

from tokengym.agents.certify.source import Facts, Source, SourceEpisode, SourceStep, TaskPlace
from tokengym.agents.certify.sources import MANY_TURNS, package
from tokengym.envs.intake.rows import rows_of

SECRETS: Mapping[str, Callable[[Any], str]] = {
    "GuessTheNumber": lambda game: str(game.game_number),
    "Mastermind": lambda game: " ".join(map(str, game.game_code)),
}
"""What ends a game at once, by the game's name."""


class Gem(Source):
    """A game of gem-llm; a Task is the seed of its reset.

    Args:
        name: id, such as `game:Mastermind-v0-hard`.
        best: the return claimed for naming the secret at once; `None` without a claim.
    """

    def __init__(self, name: str, best: float | None = None) -> None:
        import gem  # type: ignore[import-not-found]  # here, not when an episode starts: importing it takes longer than an answer may

        self._made, self._name, self._best = gem.make, name, best
        self._secret = SECRETS.get(name.removeprefix("game:").partition("-")[0])
        self.facts = Facts(package("gem-llm"), turns=MANY_TURNS, form=r"\boxed{{{}}}")

    def start(self, place: TaskPlace) -> SourceEpisode:
        """Reset a new game."""
        game = self._made(self._name)
        shown, more = game.reset(seed=place.index)

        def reply(text: str) -> SourceStep:
            seen, reward, terminated, truncated, told = game.step(text)
            return SourceStep(reward, terminated or truncated, f"{seen}\n{told.get('suffix', '')}")

        known = (self._secret(game),) if self._secret else ()
        prompt = f"{shown}\n{more.get('suffix', '')}"
        return SourceEpisode(prompt, reply, known, self._best if known else None)


class SkyRL(Source):
    """An environment of SkyRL-Gym on rows of a file; a Task is a row.

    Args:
        name: id, such as `gsm8k`.
        prompts: rows with a prompt, which is messages, and an answer.
        best: the return claimed for the answer.
    """

    def __init__(self, name: str, prompts: str, best: float) -> None:
        import skyrl_gym

        logging.disable()
        self._made = skyrl_gym.make
        self._name, self._best = name, best
        self._rows = [row for _, row in rows_of(Path(prompts))]
        turns = MANY_TURNS if name.endswith("multi_turn") else 1
        self.facts = Facts(package("skyrl-gym"), size=len(self._rows), turns=turns)

    def start(self, place: TaskPlace) -> SourceEpisode:
        """Make an environment of a row."""
        row = self._rows[place.index]
        truth = {"ground_truth": row.get("ground_truth", row["answer"])}
        extras = {"reward_spec": truth, "reward_model": truth, "extra_info": {}}
        extras |= {"max_turns": 5}
        env = self._made(self._name, env_config={}, extras=extras)
        asked, _ = env.init(row["prompt"])

        def reply(text: str) -> SourceStep:
            step = env.step(text)
            shown = "\n".join(one["content"] for one in step["observations"])
            return SourceStep(step["reward"], step["done"], shown)

        prompt = "\n".join(one["content"] for one in asked)
        return SourceEpisode(prompt, reply, (row["answer"],), self._best)


def best_button(game: Any) -> list[str]:
    """Press the button with the highest mean, in every turn."""
    means = game.state.game_state["ground_truth"]
    return [f"[{max(means, key=means.get)}]"]


def secret_number(game: Any) -> list[str]:
    return [f"[{game.state.game_state['game_number']}]"]


def secret_code(game: Any) -> list[str]:
    return [f"[{' '.join(map(str, game.state.game_state['secret_code']))}]"]


def followed_ball(game: Any) -> list[str]:
    return [f"[{game.env.ball_pos if hasattr(game, 'env') else game.ball_pos}]"]


def highest_draw(game: Any) -> list[str]:
    """Accept the highest of the values that will be shown."""
    draws = game.state.game_state["draws"]
    return [*["[continue]"] * draws.index(max(draws)), "[accept]"]


def tower(game: Any) -> list[str]:
    """Move the disks from A to C by the usual recursion."""

    def moves(count: int, source: str, target: str, spare: str) -> list[str]:
        if not count:
            return []
        before, after = moves(count - 1, source, spare, target), f"[{source} {target}]"
        return [*before, after, *moves(count - 1, spare, target, source)]

    return moves(len(game.state.game_state["towers"]["A"]), "A", "C", "B")


def lake_path(game: Any) -> list[str]:
    """Walk the shortest way around the holes."""
    state = game.state.game_state
    grid, start, goal = state["grid"], tuple(state["player_pos"]), tuple(state["goal_pos"])
    ways = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
    seen: dict[tuple[int, ...], list[str]] = {start: []}
    queue = deque([start])
    while queue:
        row, column = at = queue.popleft()
        if at == goal:
            return [f"[{way}]" for way in seen[at]]
        for way, (down, right) in ways.items():
            to = (row + down, column + right)
            inside = 0 <= to[0] < len(grid) and 0 <= to[1] < len(grid)
            if inside and to not in seen and grid[to[0]][to[1]] != "H":
                seen[to] = [*seen[at], way]
                queue.append(to)
    return []


def lights(game: Any) -> list[str]:
    """Find the lamps to press by trying the first row and chasing the others."""
    grid = game.state.game_state["grid"]
    size = len(grid)
    known = []
    for first in every((0, 1), repeat=size):
        left, pressed = [list(map(bool, row)) for row in grid], []
        for row in range(size):
            for column in range(size):
                if first[column] if row == 0 else left[row - 1][column]:
                    pressed.append((row, column))
                    for r, c in ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)):
                        if 0 <= row + r < size and 0 <= column + c < size:
                            left[row + r][column + c] ^= True
        if not any(map(any, left)):
            known.append([f"[{row} {column}]" for row, column in pressed])
    return min(known, key=len, default=[])


def shortest_way(env: Any) -> list[str]:
    """Search the transitions of a toy text environment whose steps leave nothing to chance."""
    start = int(env.s)
    last = [way for state in env.P.values() for ways in state.values() for way in ways if way[3]]
    best = max(reward for _, _, reward, _ in last)
    seen: dict[int, list[str]] = {start: []}
    queue = deque([start])
    while queue:
        at = queue.popleft()
        for action, outcomes in env.P[at].items():
            ((_, to, reward, done),) = outcomes
            if done and reward == best:
                return [*seen[at], str(action)]
            if not done and to not in seen:
                seen[to] = [*seen[at], str(action)]
                queue.append(to)
    return []


ROWS = 60
_ENDS = ("mouth", "ford", "ville")
_PLACES = [f"{begin}{end}" for begin in ("Ar", "Bel", "Cor", "Dun", "Esk") for end in _ENDS]
_PEOPLE = ("Ada", "Ben", "Cleo", "Dov", "Edda", "Finn", "Gus", "Hana", "Iris", "Jon")


def _asked(text: str, answer: str, **more: Any) -> dict[str, Any]:
    asked = [{"role": "user", "content": text}]
    return {"prompt": asked, "answer": answer, "solution": answer, **more}


def product(rng: random.Random) -> dict[str, Any]:
    """A whole number."""
    a, b = rng.randint(100, 999), rng.randint(100, 999)
    return _asked(f"What is {a} times {b}?", str(a * b), data_source="openai/gsm8k")


def fraction(rng: random.Random) -> dict[str, Any]:
    """A fraction in LaTeX, in lowest terms."""
    a, b = Fraction(rng.randint(1, 9), rng.randint(11, 19)), Fraction(1, rng.randint(2, 9))
    total = a + b
    text = f"What is {a} + {b}, in lowest terms?"
    return _asked(text, rf"\frac{{{total.numerator}}}{{{total.denominator}}}")


def place(rng: random.Random) -> dict[str, Any]:
    """A name that the text says."""
    people, places = rng.sample(_PEOPLE, 3), rng.sample(_PLACES, 3)
    lives = zip(people, places, strict=True)
    told = " ".join(f"{who} lives in {where}." for who, where in lives)
    at = rng.randrange(3)
    row = _asked(f"{told} Where does {people[at]} live?", places[at])
    return row | {"ground_truth": {"target": [places[at]]}}


def choice(rng: random.Random) -> dict[str, Any]:
    """A letter, as NeMo Gym asks for it."""
    a, b = rng.randint(11, 99), rng.randint(11, 99)
    wrong = rng.sample([a * b + d for d in (-20, -11, -10, -2, 2, 10, 11, 20)], 3)
    right = rng.randrange(4)
    values = [*wrong[:right], a * b, *wrong[right:]]
    options = [{letter: str(value)} for letter, value in zip("ABCD", values, strict=True)]
    listed = "\n".join(f"{letter}: {text}" for option in options for letter, text in option.items())
    text = f"What is {a} times {b}? Answer with \\boxed{{letter}}.\n{listed}"
    sent = {"input": [{"role": "user", "content": text}]}
    row = {"responses_create_params": sent, "options": options, "metadata": {}}
    row["grading_mode"] = "strict_single_letter_boxed"
    return row | {"expected_answer": string.ascii_uppercase[right]}


def needle(rng: random.Random) -> dict[str, Any]:
    """A name in the text, in the form of NeMo Gym's server of RULER."""
    row = place(rng)
    sent = {"responses_create_params": {"input": row["prompt"]}, "expected_answer": row["answer"]}
    return sent | {"outputs": [row["answer"]], "length": 100, "subset": "niah_single_1"}


def graph(rng: random.Random) -> dict[str, Any]:
    """Nodes that lead to a node, in the form of NeMo Gym's server of walks in graphs."""
    nodes = [f"node_{number}" for number in rng.sample(range(100), 8)]
    edges = {node: rng.sample([one for one in nodes if one != node], 3) for node in nodes}
    goal = rng.choice([to for several in edges.values() for to in several])
    known = [node for node, several in edges.items() if goal in several]
    listed = "\n".join(f"{node} -> {', '.join(several)}" for node, several in edges.items())
    text = f"{listed}\n\nWhich nodes lead to {goal}? End with 'Final Answer: [node_1, node_2]'."
    sent = {"responses_create_params": {"input": [{"role": "user", "content": text}]}}
    told = {"expected_answer": json.dumps(known), "problem_type": "parents"}
    return sent | told | {"reference": ", ".join(known)}


def puzzle(rng: random.Random) -> dict[str, Any]:
    """A whole number, in the form of NeMo Gym's server of reasoning-gym."""
    row = product(rng)
    asked = row["prompt"][0]["content"]
    sent = {"responses_create_params": {"input": row["prompt"]}, "question": asked}
    return sent | {"answer": row["answer"], "metadata": {"source_dataset": "products"}}


def text(rng: random.Random) -> dict[str, Any]:
    """A text to reverse, as verifiers' example reads it."""
    words = " ".join(rng.sample([*_PLACES, *_PEOPLE], 6))
    return {"prompt": words}


KINDS: Mapping[str, Callable[[random.Random], dict[str, Any]]] = {
    "products": product,
    "fractions": fraction,
    "places": place,
    "choices": choice,
    "needles": needle,
    "graphs": graph,
    "puzzles": puzzle,
    "texts/train": text,
}
"""Functions that make a row of each file."""


def main() -> None:
    """Write the files below a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for name, make in KINDS.items():
        rng = random.Random(name)
        rows = [json.dumps(make(rng)) for _ in range(ROWS)]
        file = folder / f"{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{row}\n" for row in rows))


if __name__ == "__main__":
    main()
