"""Sanitising user text: no control tokens of chat formats, no invisible characters."""

import re
import unicodedata

# Whatever stands between angle brackets without a blank can be a control token of some tokenizer:
# <|im_end|>, </s>, <start_of_turn>, <think>; some write the bar in full width. So can [INST].
_TAG = re.compile(r"<([^\s<>]{1,64})>")
_HALF = re.compile("<([|\uff5c])|([|\uff5c])>")
_CAPITALS = re.compile(r"\[(/?[A-Z_]{3,32})\]")
_HIDDEN = {"Cc", "Cf", "Cs"}
_KEPT = "\n\t\u200c\u200d"
"""Line breaks, tabs, and the joiners that some scripts are misspelt without."""


def sanitise(text: str) -> str:
    """Return user text that no tokenizer reads as a control token.

    <Words> and [CAPITALS] in brackets are put in round ones. Control and format characters are left
    out, among them those that turn the direction of writing.
    """
    visible = "".join(c for c in text if c in _KEPT or unicodedata.category(c) not in _HIDDEN)
    visible = _HALF.sub(lambda match: f"({match[1]}" if match[1] else f"{match[2]})", visible)
    while _TAG.search(visible):
        visible = _TAG.sub(r"(\1)", visible)
    return _CAPITALS.sub(r"(\1)", visible).strip()
