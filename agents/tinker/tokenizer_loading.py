"""Loading a tokenizer as the cookbook does, without the code it would run or import."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from tinker_cookbook.tokenizer_utils import (
    get_tokenizer,
    is_tokenizer_registered,
    register_tokenizer,
)

from tokengym.agents.models.files import refuse_remote_code
from tokengym.agents.models.hub import PATIENCE

_STATED = "Answer in verse."
"""A system text that no template has for its own."""


def load_tokenizer(name: str) -> Any:
    """Return the tokenizer that the cookbook's `get_tokenizer` knows by a name or a directory.

    The cookbook runs code that lies in a directory; here none is run, unless `trust_tokenizer` was
    called. And it asks `AutoTokenizer`, which imports the modelling code of transformers to find
    the tokenizer's class; that takes seconds. A directory whose `tokenizer_config.json` names the
    common class of fast tokenizers is loaded by that class, which is what `AutoTokenizer` would
    come to. It is registered with the cookbook, so that its trainer gets the same object.

    A hub that does not answer within seconds is not asked again: its client would try for minutes.

    Raises:
        OSError, ValueError: if there is no such tokenizer, or the hub does not answer and the cache
            lacks it.
        ModelError: if it is code.
    """
    directory = Path(name)
    if not is_tokenizer_registered(name) and directory.is_dir():
        load = _load_fast if _is_fast(directory) else partial(_load, trust_remote_code=False)
        register_tokenizer(name, cache(partial(load, name)))
    elif not directory.is_dir() and (name.startswith((".", "/", "~")) or name.count("/") > 1):
        raise ValueError(f"{name!r} is no directory, and no name of the Hugging Face hub")
    if is_tokenizer_registered(name):
        return get_tokenizer(name)
    with _hub_or_cache():
        return get_tokenizer(name)


def template_system(name: str) -> str:
    """Return the system text that the chat template of a tokenizer begins a conversation with.

    The cookbook's renderers leave it out. It is empty where the template adds none, or refuses or
    rephrases a system's text, and for names of no tokenizer, which `load_tokenizer` explains.
    """
    try:
        loaded = load_tokenizer(name)
    except (OSError, ValueError):
        return ""
    if not getattr(loaded, "chat_template", None):
        return ""
    question = {"role": "user", "content": "?"}
    stated = {"role": "system", "content": _STATED}
    try:
        bare, whole = (
            loaded.apply_chat_template(talk, tokenize=False)
            for talk in ([question], [stated, question])
        )
    except TemplateError:
        return ""
    before, _, after = whole.partition(_STATED)
    own = bare[len(before) : len(bare) - len(after)]
    return str(own) if bare == f"{before}{own}{after}" else ""


@contextmanager
def _hub_or_cache() -> Iterator[None]:
    """Use the hub's cache alone while the hub does not answer."""
    from huggingface_hub import constants

    offline = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = offline or not _hub_answers(constants.ENDPOINT)
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = offline


def _hub_answers(address: str) -> bool:
    import httpx
    from huggingface_hub import get_session

    try:
        get_session().head(address, timeout=PATIENCE)
    except httpx.TransportError:
        return False
    return True


def trust_tokenizer(directory: str) -> None:
    """Allow the code that comes with a directory's tokenizer to run when it is loaded."""
    register_tokenizer(directory, cache(partial(_load, directory, trust_remote_code=True)))


def _is_fast(directory: Path) -> bool:
    """Whether a directory names the common class of fast tokenizers, and no code of its own."""
    path = directory / "tokenizer_config.json"
    if not path.is_file():
        return False
    config = json.loads(path.read_text(encoding="utf-8"))
    return config.get("tokenizer_class") == "TokenizersBackend" and "auto_map" not in config


def _load_fast(directory: str) -> Any:
    from transformers.tokenization_utils_tokenizers import TokenizersBackend

    return TokenizersBackend.from_pretrained(directory)


def _load(directory: str, *, trust_remote_code: bool) -> Any:
    from transformers.models.auto.tokenization_auto import AutoTokenizer

    if not trust_remote_code:
        refuse_remote_code(Path(directory))
    return AutoTokenizer.from_pretrained(
        directory, local_files_only=True, trust_remote_code=trust_remote_code
    )
