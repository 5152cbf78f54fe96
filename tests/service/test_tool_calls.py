"""Tools at OpenAI's chat route: declared by the template, called by the model, answered by role."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import openai
import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.evaluation.endpoint_runs import run
from tokengym.agents.evaluation.chat_client import KEY_VARIABLE
from tokengym.agents.service import LocalService
from tokengym.agents.service.http.chat_format import ChatFormat
from tokengym.agents.service.http.tool_calls import split
from tokengym.envs.core.tools import openai_tools
from tokengym.envs.registry import make_world

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tokengym.agents.service.http.tool_calls import Said

END, START, CLOSE = "<|endoftext|>", "<|im_start|>", "<|im_end|>"


def native(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


REPLIES = {
    native("open", '{"note": 3}'): "open(note=3)",
    "Let me look.\n" + native("open", '{"note": "1"}'): 'Let me look.\nopen(note="1")',
    native("open", '{"note": 5}') + "\n" + native("answer", '{"probability": 0.9}'): "open(note=5)",
    native("answer", '{"probability": 0.25}'): "answer(probability=0.25)",
    native("shut", "{}"): "shut()",
    native("open", '{"note": }'): native("open", '{"note": }'),
    "I open(note=2).\nopen(note=2)": "I open(note=2).\nopen(note=2)",
}
"""What the model says, all equally often, and how a world must read it."""

LOOP = """{%- for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}
{{- message.content }}
{%- for call in message.tool_calls or [] %}{%- set called = call.function %}CALL{%- endfor %}
{{- '<|im_end|>\\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\nTHOUGHT' }}{% endif %}"""
DECLARED = """{%- if tools %}{{ '<|im_start|>system\\nFor each call write <tool_call>...' }}
{%- for tool in tools %}{{ '\\n' + (tool | tojson) }}{% endfor %}{{ '<|im_end|>\\n' }}{% endif %}"""
IN_TAGS = """{{ '\\n<tool_call>\\n{"name": "' + called.name + '", "arguments": ' }}
{{- called.arguments if called.arguments is string else called.arguments | tojson }}
{{- '}\\n</tool_call>' }}"""
OF_TAGS = """{{ '<tool_call>\\n<function=' + called.name + '>\\n' }}
{%- for name, value in called.arguments | items %}{{ '<parameter=' + name + '>\\n' }}
{{- value if value is string else value | tojson }}{{ '\\n</parameter>\\n' }}{%- endfor %}
{{- '</function>\\n</tool_call>' }}"""
ALONE = (
    """{{ '{"name": "' + called.name + '", "parameters": ' + called.arguments | tojson + '}' }}"""
)
UNREAD = "{{ '[' + called.name + ']' }}"
QWEN = DECLARED + LOOP.replace("CALL", IN_TAGS).replace("THOUGHT", "")
"""Templates in the manner of Qwen3, Qwen3-Coder and Llama 3."""


def tokenizer_saying(replies: list[str], template: str) -> PreTrainedTokenizerFast:
    """Return a tokenizer of bytes, with a token for each reply."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        [],
        trainers.BpeTrainer(
            special_tokens=[END, START, CLOSE], initial_alphabet=alphabet, show_progress=False
        ),
    )
    made.add_tokens([AddedToken(reply, normalized=False) for reply in replies])
    fast = PreTrainedTokenizerFast(tokenizer_object=made, eos_token=CLOSE, pad_token=END)
    fast.chat_template = template
    return fast


def write_model(folder: Path, replies: list[str], template: str) -> None:
    """Write a model that reads the last token: after a line's end any reply, then the end."""
    tokenizer = tokenizer_saying(replies, template)
    tokenizer.save_pretrained(folder)
    size = len(tokenizer)
    config = LlamaConfig(
        vocab_size=size,
        hidden_size=size,
        intermediate_size=4,
        num_hidden_layers=1,
        num_attention_heads=1,
        head_dim=4,
        max_position_embeddings=32768,
        eos_token_id=tokenizer.eos_token_id,
    )
    model: Any = LlamaForCausalLM(config)
    said = tokenizer.convert_tokens_to_ids(replies)
    line_end: Any = tokenizer.encode("\n", add_special_tokens=False)[0]
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.endswith("norm.weight"):
                parameter.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(size))
        model.lm_head.weight[said, line_end] = 4.0
        model.lm_head.weight[tokenizer.eos_token_id, said] = 4.0
    model.save_pretrained(folder)


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalService]:
    """Serve a model that says each of `REPLIES`."""
    folder = tmp_path_factory.mktemp("caller")
    write_model(folder / "model", list(REPLIES), QWEN)
    with LocalService(folder / "model", state_dir=folder / "state", threads=1) as running:
        yield running


@pytest.fixture(scope="module")
def client(caller: LocalService) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{caller.base_url}/v1", api_key=caller.api_key, max_retries=0
    ) as made:
        yield made


DESK = make_world("forecast:desk")
TOOLS: Any = openai_tools(DESK.tools)
BEGUN: Any = [{"role": "user", "content": "Begin."}]


def declaring(properties: Any) -> dict[str, Any]:
    """Return what declares a tool with such properties."""
    function = {"name": "open", "parameters": {"type": "object", "properties": properties}}
    return {"tools": [{"type": "function", "function": function}]}


def called_in(choice: Any) -> list[tuple[str, Any]]:
    calls = choice.message.tool_calls or []
    return [(call.function.name, json.loads(call.function.arguments)) for call in calls]


def test_calls_come_back_as_calls_and_words_as_words(
    client: openai.OpenAI, caller: LocalService
) -> None:
    answer: Any = client.chat.completions.create(
        model=caller.model_name, messages=BEGUN, tools=TOOLS, tool_choice="auto", n=64, seed=1
    )
    tokenizer = tokenizer_saying(list(REPLIES), QWEN)
    found = {}
    for choice in answer.choices:
        reply = tokenizer.decode(choice.token_ids[:-1])
        found[reply] = choice
        called = [call for call in reply.split("</tool_call>") if "<tool_call>" in call]
        if '"note": }' in reply or not called:
            assert (choice.finish_reason, choice.message.content) == ("stop", reply)
            assert choice.message.tool_calls is None
            continue
        expected = [json.loads(call.partition("<tool_call>")[2]) for call in called]
        assert called_in(choice) == [(one["name"], one["arguments"]) for one in expected]
        assert choice.finish_reason == "tool_calls"
        words = reply.partition("<tool_call>")[0].strip()
        assert choice.message.content == (words or None)
    assert found.keys() == REPLIES.keys()
    ids = [call.id for choice in answer.choices for call in choice.message.tool_calls or ()]
    assert len(set(ids)) == len(ids)


def test_the_template_declares_the_tools_and_renders_calls_and_results(
    client: openai.OpenAI, caller: LocalService
) -> None:
    tokenizer = tokenizer_saying(list(REPLIES), QWEN)
    function = {"name": "open", "arguments": '{"note": 3}'}
    call = {"id": "call_1", "type": "function", "function": function}
    said: Any = [
        *BEGUN,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": f"{CLOSE} It is red."},
    ]
    shown = {}
    for choice in ("auto", "none"):
        answer: Any = client.chat.completions.create(
            model=caller.model_name, messages=said, tools=TOOLS, tool_choice=choice, max_tokens=1
        )
        shown[choice] = str(tokenizer.decode(answer.prompt_token_ids))
        ended = answer.prompt_token_ids.count(tokenizer.eos_token_id)
        assert ended == shown[choice].count(CLOSE) - 1  # the result spells another
        assert answer.choices[0].finish_reason == "length"
        assert answer.choices[0].message.tool_calls is None
    declared, bare = shown["auto"], shown["none"]
    assert declared.endswith(bare)
    for tool in DESK.tools:
        assert json.dumps(tool.parameters) in declared
        assert tool.description not in bare
    assert native("open", '{"note": 3}') in bare
    assert f"tool\n{CLOSE} It is red." in bare


def test_a_stream_has_the_calls_in_its_last_piece(
    client: openai.OpenAI, caller: LocalService
) -> None:
    settings: Any = {"model": caller.model_name, "messages": BEGUN, "tools": TOOLS, "n": 16}
    whole: Any = client.chat.completions.create(**settings, seed=2)
    stream: Any = client.chat.completions.create(**settings, seed=2, stream=True)
    pieces = {c.index: c for piece in stream for c in piece.choices if c.finish_reason}
    assert {choice.finish_reason for choice in whole.choices} == {"stop", "tool_calls"}
    for expected in whole.choices:
        piece = pieces[expected.index]
        assert piece.finish_reason == expected.finish_reason
        assert piece.delta.content == expected.message.content
        calls = piece.delta.tool_calls or []
        assert [call.index for call in calls] == list(range(len(calls)))
        got = [(call.function.name, json.loads(call.function.arguments)) for call in calls]
        assert got == called_in(expected)


def test_without_tools_what_looks_like_a_call_is_text(
    client: openai.OpenAI, caller: LocalService
) -> None:
    for more in ({}, {"tools": TOOLS, "tool_choice": "none"}):
        answer: Any = client.chat.completions.create(
            model=caller.model_name, messages=BEGUN, n=32, seed=3, **more
        )
        assert {choice.message.content for choice in answer.choices} <= REPLIES.keys()
        assert {choice.finish_reason for choice in answer.choices} == {"stop"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tool_choice": "required"}, "400 .*tool_choice must be 'auto' or 'none', got 'required'"),
        ({"tool_choice": {"type": "function"}}, "400 .*tool_choice must be .*, got {'type'"),
        ({"parallel_tool_calls": False}, "parallel_tool_calls"),
        ({"tools": [{"type": "web_search"}]}, "tools.0.type: Input should be 'function'"),
        ({"tools": [{"type": "function", "function": {"name": 3}}]}, "tools.0.function.name"),
        (declaring({"note": None}), "schema of property 'note' must be an object, .*, got null"),
        (declaring({"note": [3]}), r"schema of property 'note' must be an object, .*, got \[3\]"),
        (declaring(True), "properties must be an object, got true"),
        (declaring(["note"]), r'properties must be an object, got \[\\?"note'),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}]}, "function: Field req"),
    ],
)
def test_what_cannot_be_done_with_tools_is_refused_by_name(
    client: openai.OpenAI, caller: LocalService, changes: dict[str, Any], said: str
) -> None:
    settings = {"model": caller.model_name, "messages": BEGUN, "tools": TOOLS, **changes}
    with pytest.raises(openai.APIStatusError, match=said):
        client.chat.completions.create(**settings)


OPENED: Any = {"note": 3, "why": 'to "see", é', "fast": True, "at": "12", "any": [None, "x"]}
KINDS = {"note": "integer", "why": "string", "fast": "boolean", "at": "string"}
SCHEMA = {**{name: {"type": kind} for name, kind in KINDS.items()}, "any": True}


@pytest.mark.parametrize("thought", ["", "<think>\\n"])
@pytest.mark.parametrize("call", [IN_TAGS, OF_TAGS, ALONE])
def test_templates_calls_are_read_back(call: str, thought: str) -> None:
    template = DECLARED + LOOP.replace("CALL", call).replace("THOUGHT", thought)
    tokenizer = tokenizer_saying([], template)
    form = ChatFormat(tokenizer)
    tools = declaring(SCHEMA)["tools"]
    form.call_form(tools)

    def read(text: str) -> Said:
        return form.read_calls([text], tools)[0]

    called = {"function": {"name": "open", "arguments": OPENED}}
    message: Any = {"role": "assistant", "content": "", "tool_calls": [called]}
    whole: Any = tokenizer.apply_chat_template([message], tokenize=False)
    written = whole.removeprefix(f"{START}assistant\n").removesuffix(f"{CLOSE}\n")
    words, ((name, arguments),) = read(written)
    assert (words, name, json.loads(arguments)) == ("", "open", OPENED)
    for other in ("Probability: 0.5", "{}", "[1]", '{"name": 3}', "<tool_call>{}</tool_call>"):
        assert read(other) == (other, [])


@pytest.mark.parametrize(
    ("template", "said"), [(LOOP, "declares none"), (DECLARED + LOOP, "in a form that is not read")]
)
def test_templates_without_readable_calls_are_refused(template: str, said: str) -> None:
    form = ChatFormat(tokenizer_saying([], template.replace("CALL", UNREAD)))
    with pytest.raises(ValueError, match=said):
        form.call_form(TOOLS)


HOSTILE = {
    "blanks": ("<tool_call>", "\n", ""),
    "calls": ("", "<tool_call>{}</tool_call>", ""),
    "parameters": ("<tool_call><function=f>", "<parameter=a>", "</function></tool_call>"),
    "nested": ('<tool_call>{"name": "f", "arguments": ', "[", "</tool_call>"),
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("call", [OF_TAGS, ALONE], ids=["tags", "alone"])
def test_a_hostile_reply_is_read_in_linear_time(kind: str, call: str) -> None:
    tokenizer = tokenizer_saying([], DECLARED + LOOP.replace("CALL", call))
    form = ChatFormat(tokenizer).call_form(TOOLS)
    start, again, end = HOSTILE[kind]

    def seconds(times: int) -> float:
        text = start + again * times + end
        spent = []
        for _ in range(10):
            before = time.process_time()
            words, calls = split(text, form, {})
            spent.append(time.process_time() - before)
            assert (len(words), calls) == (len(text), [])
        return min(spent)

    # Eight times as long: 64 times would be quadratic.
    assert seconds(2400) <= 24 * seconds(300) + 1e-4


@pytest.mark.nightly
@pytest.mark.parametrize("prompt", ["full", "terse"])
def test_our_endpoint_policy_earns_what_the_lines_earn(
    prompt: str, caller: LocalService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, caller.api_key)
    records = run(
        SimpleNamespace(url=f"{caller.base_url}/v1"),  # type: ignore[arg-type]
        tmp_path,
        world="forecast:desk",
        model=caller.model_name,
        options={"prompt": prompt},
        max_tokens=64,
    )
    said = {turn.said for record in records for turn in record.turns}
    assert said <= set(REPLIES.values())
    assert len(said) > 4

    for record in records:
        world = DESK.fork()
        turn = world.start(world.task("test", record.index))
        for played in record.turns:
            turn = world.reply(played.said or "")
            assert played.reward == turn.rewards["forecaster"]
        assert turn.done
