"""A renderer codec appends exactly what its renderer would have rendered."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tinker_cookbook.renderers import get_text_content

from tokengym.agents.tinker.chat_template import ReplyTemplate, rendered, user
from tokengym.agents.tinker.codec import RendererCodec, codec_named
from tokengym.envs.core.episode import role_stream
from tokengym.envs.core.errors import OptionError
from tokengym.envs.forecasting.grammar import read_forecast
from tokengym.envs.registry import baselines
from tokengym.envs.rollouts import Rollouts
from tokengym.envs.tokens.codec import Message


def fitting(tokenizer: str, renderers: str) -> list[tuple[str, str]]:
    """Return pairs of the renderers and their tokenizer."""
    return [(renderer, tokenizer) for renderer in renderers.split()]


APPENDING = (
    *fitting("bpe", "role_colon llama3 qwen3+keep_thinking qwen3_instruct"),
    *fitting("words", "role_colon qwen3_instruct"),
    *fitting("Qwen3", "role_colon qwen3+keep_thinking qwen3_disable_thinking+keep_thinking"),
    *fitting("Qwen3", "qwen3_instruct qwen3_vl+keep_thinking qwen3_vl_instruct+keep_thinking"),
    *fitting("KimiK26", "role_colon"),
    *fitting("like-qwen", "qwen3_disable_thinking+keep_thinking qwen3_instruct"),
    *fitting("DeepSeekV31", "deepseekv3 deepseekv3_thinking+keep_thinking"),
    *fitting("DeepSeekV41", "deepseekv4_1_disable_thinking deepseekv4_1_preserve_thinking"),
    *fitting("Glm", "glm5_3_max_reasoning glm5_3_low_reasoning glm5_3_high_reasoning"),
    *fitting("Nemotron3", "nemotron3_preserve_thinking nemotron3_disable_thinking+keep_thinking"),
    *fitting("Nemotron3", "nemotron3_ultra_preserve_thinking"),
    *fitting("Nemotron3", "nemotron3_ultra_disable_thinking+keep_thinking"),
    *fitting("inkling", "tml_v0"),
)
RENDERING = (
    *fitting("bpe", "qwen3_disable_thinking+keep_thinking qwen3 kimi_k2"),
    *fitting("Qwen3", "qwen3 qwen3_disable_thinking qwen3_vl qwen3_vl_instruct"),
    *fitting("Qwen35", "qwen3_5 qwen3_5_disable_thinking qwen3_5_preserve_thinking"),
    *fitting("Qwen35", "qwen3_8_xhigh_reasoning qwen3_8_low_reasoning qwen3_8_disable_thinking"),
    *fitting("DeepSeekV31", "deepseekv3_thinking"),
    *fitting("DeepSeekV41", "deepseekv4_1 deepseekv4_1_max_reasoning"),
    *fitting("KimiK26", "kimi_k2 kimi_k25 kimi_k25_disable_thinking kimi_k26_preserve_thinking"),
    *fitting("Nemotron3", "nemotron3 nemotron3_low_thinking nemotron3_ultra_medium_thinking"),
    *fitting("Harmony", "gpt_oss_no_sysprompt gpt_oss_high_reasoning"),
)
QUICK = fitting("bpe", "role_colon qwen3_instruct qwen3")
"""What the quick tests look at; other tokenizers take seconds to load."""
TRICKY = (
    *(
        "<|im_end|>",
        "<|im_start|>assistant\n",
        "<|eot_id|>",
        "<\uff5cend\u2581of\u2581sentence\uff5c>",
        "<|user|>",
    ),
    *("<think>", "</think>", "<tool_call>", "[INST]", "[EOS]", "<|end_message|>", "<|", "|>"),
    *("\n", "\n\n", "\n\n\n", " ", "  ", "\t", "\r\n", "User:", "\n\nUser:", "Assistant: yes", "7"),
)
texts = st.lists(st.sampled_from(TRICKY) | st.text(max_size=12), max_size=6).map("".join)
# A canonical reply is one whose text the format keeps as it is: no framing and no outer blanks.
words = st.text("abcxyz 0123456789.,:%-=()\n'é世🙂", max_size=30)
replies = words.map(str.strip).filter(bool)
fast = settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture
def codec(request: pytest.FixtureRequest, tokenizer_named: Callable[[str], str]) -> RendererCodec:
    renderer, tokenizer = request.param
    made = codec_named(f"{renderer}@{tokenizer_named(tokenizer)}")
    assert isinstance(made, RendererCodec)
    return made


def each(pairs: tuple[tuple[str, str], ...]) -> pytest.MarkDecorator:
    night = [() if pair in QUICK else pytest.mark.nightly for pair in pairs]
    cases = [pytest.param(pair, marks=late) for pair, late in zip(pairs, night, strict=True)]
    return pytest.mark.parametrize("codec", cases, indirect=True, ids="-".join)


@pytest.mark.nightly
@each(APPENDING)
def test_appending_equals_rendering_for_canonical_replies(codec: RendererCodec) -> None:
    form = ReplyTemplate(codec.renderer, recurring=True).form

    @fast
    @given(texts, st.lists(st.tuples(replies, texts), max_size=3))
    def law(first: str, turns: list[tuple[str, str]]) -> None:
        tokens = codec.render([Message(first, own=False)])
        messages = [user(codec.sanitize(first))]
        assert tokens == rendered(codec.renderer, messages)
        for reply, text in turns:
            action = codec.write(reply)
            tokens += [*action, *codec.extend(action, text)]
            messages += [form(reply), user(codec.sanitize(text))]
            assert tokens == rendered(codec.renderer, messages)

    assert codec.append_only
    law()


@pytest.mark.nightly
@each(RENDERING)
def test_the_other_codecs_render_again(codec: RendererCodec) -> None:
    assert not codec.append_only
    talk = [Message("Begin.", own=False), Message("17", own=True), Message("Next.", own=False)]
    first = codec.render(talk[:1])
    assert codec.render(talk) != first
    assert codec.read(codec.write("17"), "stop") == ("17", True)


@each(APPENDING + RENDERING)
def test_a_canonical_reply_is_read_as_written(codec: RendererCodec) -> None:
    @fast
    @given(replies)
    def law(reply: str) -> None:
        assert codec.read(codec.write(reply), "stop") == (reply, True)
        assert codec.read(codec.write(reply), "length") == (reply, False)

    law()


@each(APPENDING + RENDERING)
def test_reading_never_raises_and_agrees_with_the_renderers_parser(codec: RendererCodec) -> None:
    body = codec.write("yes 0.5")
    pieces = st.sampled_from(sorted({*body, *codec.render([Message("Hi", own=False)])}))
    tokens = st.lists(pieces | st.integers(0, codec.vocab_size - 1), max_size=12)
    parts = st.sampled_from([" ", "yes", "0.5", "\n", "\n\n", "User:", "\n\nUser:", "<b>"])
    written = st.lists(parts, max_size=6).map(lambda found: codec.tokenizer.encode("".join(found)))

    @fast
    @given(tokens | written, st.booleans())
    def law(sampled: list[int], ends: bool) -> None:
        action = [*sampled, *body[-1:]] if ends else sampled
        read = codec.read(action, "stop")
        try:
            message, termination = codec.renderer.parse_response(list(action))
            parsed = (get_text_content(message), termination.is_clean)
        except Exception:
            assert not read.complete
            return
        assert read in (parsed, (f"<think>{parsed[0]}", parsed[1]))

    law()


@each(tuple(pair for pair in APPENDING + RENDERING if pair[0] != "tml_v0"))
def test_thinking_that_never_ends_holds_no_answer(codec: RendererCodec) -> None:
    prompt = codec.tokenizer.decode(codec.render([Message("How likely?", own=False)]))
    opened = prompt.rstrip().endswith("<think>")

    stop = codec.stop[0]
    end = codec.tokenizer.encode(stop) if isinstance(stop, str) else [stop]

    def forecast(text: str) -> object:
        reply = codec.read([*codec.tokenizer.encode(text), *end], "stop")
        assert reply.complete
        return read_forecast(reply.text, 0).value

    for opening in ("<think>\n", *(("",) if opened else ())):
        assert forecast(f"{opening}It is likely.\nProbability: 0.9") is None
        thinking = f"{opening}It is likely.\nProbability: 0.9\n</think>\n\n"
        assert forecast(f"{thinking}Probability: 0.25") == (0.75, 0.25)


@pytest.mark.parametrize("world", ["forecast:update", "energy", "warehouse", "disruption"])
@each((("qwen3", "Qwen3"), ("qwen3_5", "Qwen35"), ("qwen3+keep_thinking", "Qwen3")))
def test_thoughts_change_nothing_in_any_world(codec: RendererCodec, world: str) -> None:
    """The oracle earns the same whether it thinks or not, where renderers drop or keep thoughts."""
    rollouts = Rollouts(world, codec=codec)
    oracle, task = baselines(rollouts.world.spec.id)["oracle"], rollouts.world.task("train", 0)
    bare, thinks = rollouts.start(task), rollouts.start(task)
    bare.play(oracle)
    rng = role_stream(task, rollouts.role)
    while not thinks.done:
        said = oracle(thinks.episode.world, thinks.turn, rng)
        word = said.split()[0]
        thinks.act(codec.write(f"<think>\n{word} 9?\nNot {said}\n</think>\n\n{said}"), "stop")
    assert all(thinks.well_formed)
    assert thinks.total == bare.total


@each((("qwen3_instruct", "bpe"), ("tml_v0", "inkling"), ("role_colon", "Qwen3")))
def test_tokens_outside_the_vocabulary_are_data(codec: RendererCodec) -> None:
    for strange in (-1, codec.vocab_size, 2**40):
        read = codec.read([strange, *codec.write("yes")], "stop")
        assert isinstance(read.text, str)
        assert codec.extend([strange], "next")


@each(APPENDING)
def test_no_text_forges_a_special_token(codec: RendererCodec) -> None:
    tokenizer = codec.tokenizer
    action = codec.write("yes")

    def special(tokens: list[int]) -> list[int]:
        return [token for token in tokens if tokenizer.decode([token]) in tokenizer.special_tokens]

    plain = special(codec.extend(action, "plain"))

    @fast
    @given(texts, st.sampled_from(sorted(tokenizer.special_tokens)[:40] or ["x"]))
    def law(text: str, marker: str) -> None:
        assert special(codec.extend(action, text)) == plain
        assert special(codec.extend(action, f"{text}{marker}{text}")) == plain

    law()


@each(APPENDING)
def test_a_reply_cut_anywhere_ends_as_a_canonical_one(codec: RendererCodec) -> None:
    reply = codec.write("yes, 0.5")
    follow = codec.extend(reply, "next")
    stop = codec.stop[0]
    end = stop if isinstance(stop, str) else codec.tokenizer.decode(reply[-1:])
    for cut in range(len(reply) + 1):
        tokens = [*reply[:cut], *codec.extend(reply[:cut], "next")]
        ended, after = tokens[: -len(follow)], tokens[-len(follow) :]
        assert ended[:cut] == reply[:cut]
        assert after == follow
        assert codec.tokenizer.decode(ended).endswith(end)


@pytest.mark.parametrize(
    "name", ["byt", "role_colon@", "@bpe", "no_such@{bpe}", "role_colon@/no/dir"]
)
def test_a_name_of_no_codec_is_refused_and_named(
    name: str, tokenizer_named: Callable[[str], str]
) -> None:
    name = name.format(bpe=tokenizer_named("bpe"))
    with pytest.raises(OptionError, match=re.escape(repr(name))):
        codec_named(name)


@pytest.mark.parametrize("renderer", ["deepseekv3", "gpt_oss_medium_reasoning", "tml_v0"])
def test_a_renderer_of_another_tokenizer_is_refused_in_one_line(
    renderer: str, tokenizer_named: Callable[[str], str]
) -> None:
    with pytest.raises(OptionError, match=f"'{renderer}' does not fit .*'qwen3_instruct'") as error:
        RendererCodec(renderer, tokenizer_named("bpe"))
    assert "\n" not in str(error.value)


def test_a_renderer_that_fits_is_named_where_another_does_not(
    tmp_path: Path, tokenizer_named: Callable[[str], str]
) -> None:
    for file in Path(tokenizer_named("bpe")).iterdir():
        text = file.read_text().replace("<|im_", "<|turn_")
        (tmp_path / file.name).write_text(text)
    with pytest.raises(OptionError, match=r"'qwen3_instruct' does not fit .* 'role_colon' does"):
        RendererCodec("qwen3_instruct", str(tmp_path))
    assert RendererCodec("role_colon", str(tmp_path)).append_only


def test_a_system_text_precedes_the_conversation_and_is_appended_to(
    tokenizer_named: Callable[[str], str],
) -> None:
    text = "Be brief: 100% + @ home.\nReply in one line."
    bare = RendererCodec("qwen3_instruct", tokenizer_named("like-qwen"))
    codec = RendererCodec("qwen3_instruct", tokenizer_named("like-qwen"), system=text)
    assert codec_named(codec.name).name == codec.name
    first = codec.render([Message("How warm?", own=False)])
    assert text in codec.tokenizer.decode(first)
    plain = bare.render([Message("How warm?", own=False)])
    assert first[-len(plain) + 1 :] == plain[1:]
    action = codec.write("Warm")
    talk = [Message("How warm?", own=False), Message("Warm", own=True), Message("Sure?", own=False)]
    assert codec.append_only
    assert [*first, *action, *codec.extend(action, "Sure?")] == codec.render(talk)
