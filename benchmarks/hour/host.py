"""Runs an entry on one Task: texts in, replies out, a line of JSON each; knows no Tokengym.

python host.py ENTRY.py SECONDS
"""

import importlib.util
import json
import signal
import sys
import time


def main(path: str, seconds: str) -> None:
    """Answer until the input ends; the kernel ends the process when its time is used up."""
    sys.modules["tokengym"] = None  # type: ignore[assignment]
    found = importlib.util.spec_from_file_location("entry", path)
    assert found is not None
    assert found.loader is not None
    entry = importlib.util.module_from_spec(found)
    sys.modules[found.name] = entry  # dataclasses look their module up
    found.loader.exec_module(entry)
    answers, sys.stdout = sys.stdout, sys.stderr  # an entry may print what it likes
    print(json.dumps(["ready", 0.0]), file=answers, flush=True)
    loaded = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, float(seconds))
    texts: list[str] = []
    replies: list[str] = []
    for line in sys.stdin:
        texts.append(json.loads(line))
        replies.append(str(entry.reply(list(texts), list(replies))))
        print(json.dumps([replies[-1], time.process_time() - loaded]), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
