"""Which recipes of the cookbook run on the local service for three steps: one of each kind.

python -m tests.integrations.recipes docs/service.md    writes the table; test_recipes.py runs them
"""

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.pages import write_block
from tokengym.agents.reports.markdown import markdown_table

MODEL = "Qwen/Qwen3-8B"
"""Name of the starting policy, by which recipes look its renderer up."""
STEPS = 3

_RL = ["group_size=2", "max_tokens=8", "max_steps=3"]
_SPARSE = ["eval_every=0", "save_every=0"]
RUNS: dict[str, list[str]] = {
    "chat_sl.train": ["dataset=chats.jsonl", "batch_size=2", "max_steps=3", *_SPARSE],
    "multiplayer_rl.guess_number.train": ["renderer_name=qwen3", "batch_size=2", *_RL, *_SPARSE],
    "preference.dpo.train": ["dataset=hhh", "batch_size=2", "max_steps=3"],
    "distillation.on_policy_distillation": [
        *("dataset=deepmath", f"teacher_model={MODEL}", "groups_per_batch=2", *_RL, *_SPARSE)
    ],
    "rubric.train": [
        *("train_jsonl_path=rubric.jsonl", "test_jsonl_path=rubric.jsonl"),
        *(f"grader_llm_name={MODEL}", "grader_renderer_name=qwen3", "renderer_name=qwen3"),
        *("groups_per_batch=2", "train_group_size=2", "max_tokens=8", "max_steps=3", *_SPARSE),
    ],
}
"""By module the settings of a run of three steps, besides the model and the folder of its log."""

_WITH = {
    "chat_sl.train": "a file of conversations",
    "preference.dpo.train": "a stand-in for HH",
    "distillation.on_policy_distillation": "a stand-in for DeepMath; the teacher is the same model",
    "rubric.train": "a file of rubrics; the same model grades",
}


def stand_ins(folder: Path) -> None:
    """Write small data sets where recipes look for large ones: a folder of the name comes first."""
    chat = [{"role": "user", "content": "How many?"}, {"role": "assistant", "content": "Four."}]
    rows: dict[str, tuple[str, dict[str, Any]]] = {
        "zwhe99/DeepMath-103K": ("default", {"question": "What is 2 + 2?"}),
        "Anthropic/hh-rlhf": (
            "default",
            {
                "chosen": "\n\nHuman: How many?\n\nAssistant: Four.",
                "rejected": "\n\nHuman: How many?\n\nAssistant: Five.",
            },
        ),
    }
    for name, (config, row) in rows.items():
        data = folder / name
        data.mkdir(parents=True)
        for split in ("train", "test"):
            (data / f"{split}.jsonl").write_text(f"{json.dumps(row)}\n" * 8)
        files = "".join(
            f"  - split: {split}\n    path: {split}.jsonl\n" for split in ("train", "test")
        )
        (data / "README.md").write_text(
            f"---\nconfigs:\n- config_name: {config}\n  data_files:\n{files}---\n"
        )
    rubric = {
        "rubric_str": "Does the reply name a number?",
        "extraction_regex": "<score>(.*)</score>",
        "grader_output_format_instruction": "Answer 0 or 1 in <score></score>.",
    }
    graded = json.dumps({"convo": chat[:1], "rubric_items": [rubric]})
    (folder / "rubric.jsonl").write_text(f"{graded}\n" * 8)
    (folder / "chats.jsonl").write_text(f"{json.dumps({'messages': chat})}\n" * 8)


def table() -> str:
    """Return the table of recipes: what each runs with."""
    return markdown_table(["recipe", "with"], [[f"`{name}`", _WITH.get(name, "")] for name in RUNS])


if __name__ == "__main__":
    write_block(Path(sys.argv[1]), "tests/integrations/recipes.py", table())
