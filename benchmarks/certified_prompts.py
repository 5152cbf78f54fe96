"""Rows on which the public table certifies graders that bring none: a file for each kind of answer.

python -m benchmarks.certified_prompts prompts
"""

import argparse
import json
import random
import string
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

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
    listed = "\n".join(f"{letter}: {text}" for one in options for letter, text in one.items())
    text = f"What is {a} times {b}? Answer with \\boxed{{letter}}.\n{listed}"
    sent = {"input": [{"role": "user", "content": text}]}
    row = {"responses_create_params": sent, "options": options, "metadata": {}}
    row["grading_mode"] = "strict_single_letter_boxed"
    return row | {"expected_answer": string.ascii_uppercase[right]}


def needle(rng: random.Random) -> dict[str, Any]:
    """A name that the text says, as NeMo Gym's server of RULER is told."""
    row = place(rng)
    sent = {"responses_create_params": {"input": row["prompt"]}, "expected_answer": row["answer"]}
    return sent | {"outputs": [row["answer"]], "length": 100, "subset": "niah_single_1"}


def graph(rng: random.Random) -> dict[str, Any]:
    """Nodes that lead to a node, as NeMo Gym's server of walks in graphs is told."""
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
    """A whole number, as NeMo Gym's server of reasoning-gym is told."""
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
"""What makes a row of each file."""


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
