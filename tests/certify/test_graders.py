"""Graders in the forms that people write, and rows as their files have them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tokengym.agents.certify.source import TaskPlace, play, say
from tokengym.agents.certify.sources import open_source
from tokengym.envs.core.errors import OptionError

FORMS = {
    "ours": "def r(prompt, reply, row): return float(row['reference'] == reply)",
    "by place": "def r(a, b, c): return float(c['reference'] == b)",
    "two by place": "def r(a, b): return float(eval(a) == int(b))",
    "reply and truth": "def r(response, ground_truth): return float(response == ground_truth)",
    "answer and truth": "def r(answer, ground_truth): return float(answer == ground_truth)",
    "by keyword": "def r(*, prediction, label): return float(prediction == label)",
    "by position alone": "def r(pred, gold, /): return float(pred == gold)",
    "trl": "def r(completions, answer, **kwargs): "
    "return [float(c == a) for c, a in zip(completions, answer)]",
    "trl in messages": "def r(prompts, completions, answer, completion_ids=None, **kwargs): "
    "return [float(c[0]['content'] == a) for c, a in zip(completions, answer)]",
    "trl that skips": "def r(completions, **kwargs): "
    "return [float(c == a) if c else None for c, a in zip(completions, kwargs['answer'])]",
    "verl": "def r(data_source, solution_str, ground_truth, extra_info=None): "
    "return {'score': float(solution_str == ground_truth), 'acc': 1}",
    "verl in batches": "def r(data_sources, solution_strs, ground_truths, extra_infos): "
    "return [float(s == g) for s, g in zip(solution_strs, ground_truths)]",
    "openevals": "def r(*, outputs, reference_outputs, **more): "
    "return {'key': 'same', 'score': outputs == reference_outputs}",
    "verifiers": "def r(completion, answer, state, **kwargs): "
    "return float(completion[-1]['content'] == answer == state['answer'])",
    "inspect": "def r():\n async def score(state, target):\n  "
    "return type('Score', (), {'value': 'CI'[state.output.completion != target.text]})\n"
    " return score",
    "inspect with settings": "def r(location='end', *, ignore_case=True):\n"
    " async def score(state, target):\n  "
    "said = any(state.output.completion == one for one in target)\n  "
    "return type('Score', (), {'value': 'IC'[said]})\n return score",
    "a rubric of verifiers": "class r:\n weights = (0.75, 0.25)\n"
    " def __init__(self): self.parser, self.funcs = str.strip, [self.right, self.same]\n"
    " async def right(self, parser, completion, answer):\n  "
    "return float(parser(completion[-1]['content']) == answer)\n"
    " def same(self, answer, **said):\n  "
    "return float(said['completion'][-1]['content'] == answer)",
    "a rubric": "class r:\n def forward(self, action, observation):\n  "
    "return float(eval(observation['prompt']) == int(action.content or 0))",
    "an object": "class R:\n def __call__(self, response, solution):\n  "
    "return response == solution\nr = R()",
    "async": "async def r(prompt, reply, row): return float(row['reference'] == reply)",
    "a tuple": "def r(prompt, reply, row): return float(row['reference'] == reply), 'why'",
    "a tensor": "import numpy as np\n"
    "def r(prompt, reply, row): return np.array([row['reference'] == reply], float)",
    "messages or nothing": "def r(completion, answer):\n try: return float("
    "completion[0]['content'] == answer)\n except TypeError: return 0.0",
}


def rows(number: int) -> dict[str, Any]:
    asked, answer = f"{number} + 3", str(number + 3)
    return {"prompt": asked} | dict.fromkeys(("reference", "answer", "ground_truth"), answer)


def opened(folder: Path, code: str, several: list[dict[str, Any]], **options: Any) -> Any:
    (folder / "grader.py").write_text(f"{code}\n")
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in several))
    said = {"prompts": str(folder / "rows.jsonl"), **options}
    return open_source(f"{folder}/grader.py:r", said)


@pytest.mark.parametrize("form", FORMS)
def test_a_grader_is_called_as_it_is_written(form: str, tmp_path: Path) -> None:
    source = opened(tmp_path, FORMS[form], [rows(number) for number in range(5)])
    for index in range(3):
        place = TaskPlace("", 0, index)
        known = source.start(place).reference
        assert known == (str(index + 3),)
        assert play(source, place, say(*known)).total == 1.0
        assert play(source, place, say("77")).total == 0.0


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        ({"question": "1 + 3", "answer": 4}, "4"),
        ({"problem": "1 + 3", "solution": "4"}, "4"),
        ({"prompt": [{"role": "user", "content": "1 + 3"}], "target": ["4", "4.0"]}, "4"),
        ({"prompt": "1 + 3", "reward_model": {"ground_truth": "4", "style": "rule"}}, "4"),
        ({"messages": [{"role": "user", "content": "1 + 3"}], "label": "4", "split": "a"}, "4"),
        ({"prompt": "1 + 3"}, None),
        (
            {
                "responses_create_params": {
                    "input": [
                        {"role": "user", "content": [{"type": "input_text", "text": "1 + 3"}]}
                    ]
                },
                "expected_answer": "4",
            },
            "4",
        ),
    ],
)
def test_rows_are_read_as_their_files_name_them(
    row: dict[str, Any], answer: str | None, tmp_path: Path
) -> None:
    code = "def r(prompt, response): return float(eval(prompt) == int(response or 0))"
    episode = opened(tmp_path, code, [row] * 4).start(TaskPlace("", 0, 0))
    assert episode.prompt == "1 + 3"
    assert episode.reference == (() if answer is None else (answer,))


def test_a_prompt_in_messages_reaches_a_grader_that_reads_messages(tmp_path: Path) -> None:
    chat = [{"role": "user", "content": "1 + 3"}]
    code = "def r(prompts, completions, answer): "
    code += "return [float(p[-1]['content'] == '1 + 3' and c[0]['content'] == a) for p, c, a in "
    code += "zip(prompts, completions, answer)]"
    source = opened(tmp_path, code, [{"prompt": chat, "answer": "4"}] * 4)
    assert play(source, TaskPlace("", 0, 0), say("4")).total == 1.0


def test_the_template_makes_a_reply_of_an_answer(tmp_path: Path) -> None:
    code = "def r(response, answer): return float(response == f'<<{answer}>>')"
    source = opened(tmp_path, code, [rows(1)] * 4, reply_template="<<{}>>")
    assert source.facts.form == "<<{}>>"
    assert source.start(TaskPlace("", 0, 0)).reference == ("4",)


@pytest.mark.parametrize(
    "code",
    [
        "def r(judge, temperature, style, model): return 1.0",
        "def r(completions, scores): return [c / s for c, s in zip(completions, scores)]",
        "def r(prompt, reply, row): return row['no such column']",
        "def r(prompt, reply): return object()",
        "def r(prompt, reply): return 'good'",
    ],
)
def test_what_cannot_be_called_is_no_fault_of_the_author(code: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"certify cannot call .*(It passed|no column)"):
        opened(tmp_path, code, [rows(1)] * 4)
