"""Which recipes of the cookbook run on the local service for three steps, and why others do not.

python -m tests.integrations.recipes docs/service.md    writes the table; test_recipes.py runs them
"""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.pages import write_block
from tokengym.agents.reports.markdown import markdown_table

MODEL = "Qwen/Qwen3-8B"
"""What the starting policy is called: recipes look its renderer up by the name."""
STEPS = 3

_SMALL = ["batch_size=2", "max_steps=3", "eval_every=0", "save_every=0"]
_RL = [*_SMALL, "group_size=2", "max_tokens=8"]
_PLAIN = ["batch_size=2", "max_steps=3", "save_every=0"]
RUNS: dict[str, list[str]] = {
    "rl_loop": [*_PLAIN, "group_size=2", "max_tokens=8"],
    "rl_basic": [
        # The recipe makes a builder of 128 groups of 16; a class in its place takes its fields.
        "dataset_builder=tinker_cookbook.recipes.math_rl.math_env:Gsm8kDatasetBuilder",
        f"dataset_builder.model_name_for_tokenizer={MODEL}",
        "dataset_builder.renderer_name=qwen3",
        *("dataset_builder.batch_size=2", "dataset_builder.group_size=2"),
        *("max_tokens=8", "max_steps=3", "save_every=0"),
    ],
    "sl_loop": _PLAIN,
    "sl_basic": ["max_steps=3", "eval_every=0", "save_every=0"],
    "chat_sl.train": [*_SMALL, "dataset=chats.jsonl"],
    "prompt_distillation.train": [*_SMALL, "file_path=chats.jsonl"],
    "math_rl.train": [
        *("env=arithmetic", "group_size=2", "groups_per_batch=2"),
        *("max_steps=3", "eval_every=0", "save_every=0"),
    ],
    "multiplayer_rl.guess_number.train": [*_RL, "renderer_name=qwen3"],
    "multiplayer_rl.text_arena.train": [
        *(*_SMALL, "max_tokens=8", "num_train_datapoints=8", "num_test_datapoints=2"),
        "renderer_name=qwen3",
    ],
    "preference.shorter.train": [
        *("batch_size=2", "group_size=2", "max_tokens=8", "max_steps=3", "eval_every=0"),
        "renderer_name=qwen3",
    ],
    "preference.dpo.train": ["dataset=hhh", "batch_size=2", "max_steps=3"],
    "distillation.on_policy_distillation": [
        *("dataset=deepmath", f"teacher_model={MODEL}", "groups_per_batch=2", "group_size=2"),
        *("max_tokens=8", "max_steps=3", "eval_every=0", "save_every=0"),
    ],
    "distillation.on_policy_multi_teacher": [
        *(f"deepmath_teacher_model={MODEL}", f"tulu3_teacher_model={MODEL}"),
        *("deepmath_groups_per_batch=1", "tulu3_groups_per_batch=1", "group_size=2"),
        *("max_tokens=8", "max_steps=3", "eval_every=0", "save_every=0"),
    ],
    "distillation.off_policy_reasoning": [
        *_SMALL,
        *("renderer_name=qwen3", "max_prompts=6", "buffer_size=6"),
    ],
    "rubric.train": [
        *("train_jsonl_path=rubric.jsonl", "test_jsonl_path=rubric.jsonl"),
        *(f"grader_llm_name={MODEL}", "grader_renderer_name=qwen3", "renderer_name=qwen3"),
        *("groups_per_batch=2", "train_group_size=2", "max_tokens=8", "max_steps=3"),
        *("eval_every=0", "save_every=0"),
    ],
}
"""By module the settings of a run of three steps, besides the model and the folder of its log."""

NOT_RUN: dict[str, str] = {
    "audio": "audio or images, which the service does not take",
    "chat_sl.sweep": "parts of recipes that run",
    "code_rl": "needs a sandbox or a search index",
    "decisions.demo": "no training",
    "decisions.forecasting": "downloads its data",
    "distillation.on_policy_distillation_harbor_multi_turn": "needs a sandbox or a search index",
    "forecasting": "downloads its data",
    "harbor_rl": "needs a sandbox or a search index",
    "multiplayer_rl.text_arena.play": "no training",
    "multiplayer_rl.twenty_questions": "needs a large model",
    "preference.rlhf": "downloads its data",
    "prompt_distillation.create_data": "needs a large model",
    "rl_numerics_check": "downloads its data",
    "rubric.debug_env": "parts of recipes that run",
    "rubric.generate_data": "parts of recipes that run",
    "rubric.prometheus_experimental": "downloads its data",
    "sdft": "downloads its data",
    "search_tool": "needs a sandbox or a search index",
    "true_thinking_score": "downloads its data",
    "verifiers_rl": "needs verifiers 0.1.9",
    "vlm_classifier": "audio or images, which the service does not take",
}
"""By module or package why it is not run."""

_SHOWN = {
    "rl_loop": "stand-in for GSM8K",
    "rl_basic": "stand-in for GSM8K; `dataset_builder` given as a class with fewer groups; needs "
    "the cookbook's extra `math-rl`",
    "sl_loop": "stand-in for no_robots",
    "sl_basic": "stand-in for no_robots",
    "chat_sl.train": "a file of conversations",
    "prompt_distillation.train": "a file of conversations",
    "math_rl.train": "`env=arithmetic`; needs the cookbook's extra `math-rl`",
    "multiplayer_rl.text_arena.train": "needs textarena",
    "preference.dpo.train": "stand-in for HH",
    "distillation.on_policy_distillation": "stand-in for DeepMath; the teacher is the same model",
    "distillation.on_policy_multi_teacher": (
        "stand-ins for DeepMath and Tulu 3; both teachers are the same model"
    ),
    "distillation.off_policy_reasoning": "stand-in for OpenThoughts3",
    "rubric.train": "a file of rubrics; the same model grades",
}


def modules() -> list[str]:
    """Return the recipes that the installed cookbook has: its modules that can be run."""
    found = find_spec("tinker_cookbook.recipes")
    assert found is not None
    assert found.submodule_search_locations is not None
    root = Path(next(iter(found.submodule_search_locations)))
    return sorted(
        ".".join(path.relative_to(root).with_suffix("").parts)
        for path in root.rglob("*.py")
        if path.stem != "__main__" and '__name__ == "__main__"' in path.read_text("utf-8")
    )


def stand_ins(folder: Path) -> None:
    """Write small data sets where recipes look for large ones: a folder of the name comes first."""
    chat = [{"role": "user", "content": "How many?"}, {"role": "assistant", "content": "Four."}]
    rows: dict[str, tuple[str, dict[str, Any]]] = {
        "openai/gsm8k": ("main", {"question": "What is 2 + 2?", "answer": "Add. #### 4"}),
        "HuggingFaceH4/no_robots": ("default", {"messages": chat}),
        "allenai/tulu-3-sft-mixture": ("default", {"messages": chat}),
        "zwhe99/DeepMath-103K": ("default", {"question": "What is 2 + 2?"}),
        "Anthropic/hh-rlhf": (
            "default",
            {
                "chosen": "\n\nHuman: How many?\n\nAssistant: Four.",
                "rejected": "\n\nHuman: How many?\n\nAssistant: Five.",
            },
        ),
        "open-thoughts/OpenThoughts3-1.2M": (
            "default",
            {
                "conversations": [
                    {"from": "human", "value": "How?"},
                    {"from": "gpt", "value": "So."},
                ]
            },
        ),
    }
    for name, (config, row) in rows.items():
        data = folder / name
        data.mkdir(parents=True)
        # Three batches of 128, which is what `sl_basic` has.
        for split, count in (("train", 384), ("test", 8)):
            (data / f"{split}.jsonl").write_text(f"{json.dumps(row)}\n" * count)
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
    """Return the table of recipes: what each runs with, or why some do not."""
    rows = [[f"`{name}`", "yes", _SHOWN.get(name, "")] for name in RUNS]
    for why in dict.fromkeys(NOT_RUN.values()):
        names = [f"`{name}`" for name, reason in NOT_RUN.items() if reason == why]
        rows.append([", ".join(names), "no", why])
    return markdown_table(["recipe", "runs", "with, or why not"], rows)


if __name__ == "__main__":
    write_block(Path(sys.argv[1]), "tests/integrations/recipes.py", table())
