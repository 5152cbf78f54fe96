"""Words of our own that readers stumbled over do not come back, on pages or in the code."""

import re

from tests.docs.pages import PAGES, ROOT

AVOIDED = {
    r"null polic(y|ies)": "doing nothing, or the baseline `null`",
    r"nats a (sampled )?token": "nats per token",
    r"\bms a Task": "ms per Task",
    r"[Cc]ould show\b|Tasks to show it": "detectable, Tasks needed",
    r"keeps? (every|all) laws?": "all contract tests",
    r"beside (one|two|three|other|one or two) (other )?runs?": "while other jobs used the machine",
    r"\bso many\b": "a number, or the name of what is counted",
    r"\b[Hh]ears?\b": "reads, receives",
    r"is counted is what is held": "a sentence that can be read once",
    r"interrupted run goes on|the command goes on": "resumes, continues",
    r"\bis told (what|which) (is|are) (done|left)": "is called with",
    r"closes? \d+ % by the": "the best simple rule closes … of the gap",
}
FILES = sorted(
    {*PAGES, *(f for d in ("agents", "envs", "rewards") for f in (ROOT / d).rglob("*.py"))}
)


def test_words_that_readers_stumbled_over_are_not_used() -> None:
    rules = {re.compile(pattern): instead for pattern, instead in AVOIDED.items()}
    texts = {file: file.read_text(encoding="utf-8") for file in FILES}
    found = [
        f"{file.relative_to(ROOT)}: {line.strip()[:120]}; write instead: {instead}"
        for file, text in texts.items()
        for rule, instead in rules.items()
        if rule.search(text)
        for line in text.splitlines()
        if rule.search(line)
    ]
    assert not found, "\n".join(found)
