"""What the pages tell people to type works: every block of shell and Python is run.

Blocks of a page run in order in one empty folder, those of Python in one interpreter, so that one
can write a file and another use it. A command that would take long runs with small settings. A
block that no rule covers fails its page.
"""

import importlib.machinery
import importlib.util
import os
import re
import shutil
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.docs.packages import pip_install
from tests.docs.pages import PAGES, ROOT, Block, blocks
from tests.docs.reader import Reader, Rule
from tests.evaluation.endpoint_server import Endpoint, serving
from tests.warm import run_tokengym, start_tokengym
from tokengym.agents.service import LocalService
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.agents.training.config import CONFIGS

BIN = Path(sys.executable).parent
SMALL = ["--steps", "1", "--groups", "2", "--group-size", "2"]
SMALL += ["--evaluation-tasks", "2"]
CUT, WHOLE = ["--max-tokens", "16"], ["--max-tokens", "32"]
"""The first cuts long replies off; in a debate the second speaker's turn follows a whole reply."""
WORKED = ["--max-tokens", "75"]
"""Room for demonstrations with their arithmetic."""
BOTH = ["--max-tokens", "96"]
"""Room for demonstrations of two labels and what speaks for them."""
SHARING = {
    *("debate", "design", "evaluation", "quickstart", "reliability", "results", "servers"),
    *("learned", "training", "viewer"),
    *("disruption", "energy", "forecast", "warehouse"),
}
"""Pages whose jobs share a service; one for every job would take longer than the jobs."""
HOSTED = re.compile(r"[A-Z]\w*/[\w.-]+")


def check(reader: Reader, arguments: list[str]) -> str:
    """A few Tasks; of every level there is, only the flags."""
    if "--all" not in arguments:
        return reader.run_tokengym("check", *arguments, "--tasks", "2")
    shown = reader.run_tokengym("check", "--help")
    missing = [word for word in arguments if word.startswith("--") and word not in shown]
    assert not missing, f"tokengym check has no {missing}"
    return shown


def certify(reader: Reader, arguments: list[str]) -> str:
    """Few replies in the check of memory; a list of targets has one that is ours."""
    reader.follow(ROOT, Block(1, "", "benchmarks/certified_targets.txt", "forecast:easy"))
    return reader.run_tokengym("certify", *arguments, "--replies", "50", "--strategies", "20")


def ties(reader: Reader, arguments: list[str]) -> str:
    """A few Tasks; a run is only read, and the policy of one is where it was trained."""
    few = [] if (reader.folder / arguments[0]).is_dir() else ["--tasks", "3"]
    there = any((reader.folder / word).is_dir() for word in arguments[1:])
    key = reader.service.api_key if there and reader.service is not None else ""
    return reader.run_tokengym("ties", *arguments, *few, key=key)


def conform(reader: Reader, arguments: list[str]) -> str:
    """The shared service; a server that runs elsewhere is not reached."""
    assert reader.service is not None, "a page that tries a server has one"
    return reader.run_tokengym("conform", reader.service.base_url, key=reader.service.api_key)


TRAINED: dict[tuple[str, ...], tuple[Path, str]] = {}
"""Runs on the shared service and what they printed, by command: pages that repeat it get a copy."""

COLLECTED: set[tuple[object, ...]] = set()
"""Commands by which pytest has found tests: pages repeat them."""


def train(command: str) -> Rule:
    """Return the rule of a training command."""

    def follow(reader: Reader, arguments: list[str]) -> str:
        """One small step; a hosted model gets as far as one gets without a key."""
        if any(HOSTED.fullmatch(word) for word in arguments):
            shown = reader.run_tokengym(command, *arguments, status=2)
            assert "for hosted models set TINKER_API_KEY" in shown
            return shown
        reader.jobs += 1
        run = [] if "--run" in arguments else ["--run", f"runs/job-{reader.jobs}"]
        # Others learn from the whole replies of a run with a name; equal ones each time.
        cut = WHOLE if {"--role", "--self-play", "--run"} & {*arguments} else CUT
        cut = WORKED if "worked" in arguments else cut
        cut = BOTH if "target=both" in arguments else cut
        warm = ["--warm-start", "1"] if "--warm-start" in arguments else []
        seed = [] if "--seed" in arguments else ["--seed", "0"]
        words = [command, *arguments, *SMALL, *cut, *warm, *seed, *run]
        folder = reader.folder / words[words.index("--run") + 1]
        # A precision is that of a service of the job's own.
        service = None if "--precision" in arguments else reader.service
        if service is not None and ("--model" not in arguments or str(MODEL_DIR) in arguments):
            if "--memory" in words:  # the shared service has its own
                del words[(at := words.index("--memory")) : at + 2]
            words += ["--model", service.model_name, "--base-url", service.base_url]
            if (same := TRAINED.get(tuple(words))) is not None:
                shutil.copytree(same[0], folder)
                return same[1]
            shown = reader.run_tokengym(*words, key=service.api_key)
            if "--data" not in words and "--opponent" not in words:
                TRAINED[tuple(words)] = folder, shown
        else:
            shown = reader.run_tokengym(*words)
        assert (folder / "report.html").is_file()
        return shown

    return follow


def sweep(reader: Reader, arguments: list[str]) -> str:
    """One small step with two of the sizes and one of the seeds."""
    words, fewer = list(arguments), {"--group-size": "2,3", "--seeds": "0"}
    for flag in fewer.keys() & {*words}:
        words[words.index(flag) + 1] = fewer[flag]
    small = list(SMALL)
    del small[(at := small.index("--group-size")) : at + 2]
    assert reader.service is not None, "a page that sweeps has a service"
    place = ["--base-url", reader.service.base_url, "--model", reader.service.model_name]
    key = reader.service.api_key
    shown = reader.run_tokengym("sweep", *words, *small, *CUT, *place, key=key)
    assert (reader.folder / words[words.index("--runs") + 1] / "sweep.json").is_file()
    return shown


def resume(reader: Reader, arguments: list[str]) -> str:
    """The command itself; a run on the shared service needs its key."""
    return reader.run_tokengym("resume", *arguments, key=getattr(reader.service, "api_key", ""))


def evaluate(reader: Reader, arguments: list[str]) -> str:
    """As it stands, with a few Tasks of models or of many; an endpoint is one of the tests."""
    of_run = "runs/first" in arguments
    few = ["--tasks", "2", "--rollouts", "1"] if of_run or str(MODEL_DIR) in arguments else []
    key = reader.service.api_key if of_run and reader.service is not None else ""
    with serving(Endpoint(lambda body: ("Probability: 0.4", "stop", None))) as endpoint:
        words = [re.sub(r"(openai:.*@).*", rf"\g<1>{endpoint.url}", word) for word in arguments]
        if "--tasks" in words and int(words[(at := words.index("--tasks") + 1)]) > 100:
            words[at] = "8"
        return reader.run_tokengym("evaluate", *words, *few, key=key)


def view(reader: Reader, arguments: list[str]) -> str:
    """One page as a file; a server would not end, so that its runs are written as one too."""
    page = [] if "--html" in arguments else ["--html", "page.html"]
    return reader.run_tokengym("view", *arguments, *page)


def models(reader: Reader, arguments: list[str]) -> str:
    """The command itself; a model that cannot be fetched here gives a one-line error."""
    shown = reader.folder / "models.txt"
    status = run_tokengym(["models", *arguments], reader.folder, reader.environment, shown)
    printed = shown.read_text()
    unreachable = status == 2 and "the Hugging Face hub:" in printed
    assert status == 0 or unreachable, f"models {arguments} ended with {status}:\n{printed}"
    return printed


def serve(reader: Reader, arguments: list[str]) -> str:
    """Until it says that it is ready; it stops when the page ends."""
    if "--help" in arguments:
        return reader.run_tokengym("serve", *arguments)
    printed = reader.folder / "serve.txt"
    words = ["serve", *arguments, "--threads", "1"]
    service = start_tokengym(words, reader.folder, reader.environment, printed)
    reader.services.append(service)
    while True:
        lines = printed.read_text().splitlines() if printed.is_file() else []
        for line in lines:
            if line.startswith('{"event": "ready"'):
                return line
        assert service.is_alive(), "\n".join(lines)
        time.sleep(0.05)


def start(reader: Reader, arguments: list[str]) -> str:
    """What `src/tokengym` would run in its own environment, in this one."""
    loader = importlib.machinery.SourceFileLoader("ci_start", str(ROOT / ".ci" / "start"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    script = importlib.util.module_from_spec(spec)
    loader.exec_module(script)
    for path, *words in script.commands(arguments):
        if path.name == "tokengym":
            return reader.type(["tokengym", *words])
        if words[:2] == ["-m", "pytest"]:
            some = ROOT / "tests" / "docs" / "test_links.py"
            # Workers that only collect would import all that this process has imported, each.
            collect = (sys.executable, *words, "-n", "0", "--collect-only", "-q", some)
            if collect not in COLLECTED:
                reader.run(*collect)
                COLLECTED.add(collect)
        elif (BIN / path.name).exists():
            reader.run(BIN / path.name, *words, "--help")
        else:
            # `check` and `docs` install their tools when they are first typed.
            groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
            names = [re.split(r"[^\w-]", str(tool))[0] for tool in groups["check"] + groups["docs"]]
            assert {"lint-imports": "import-linter"}.get(path.name, path.name) in names
    return ""


def probe(reader: Reader, arguments: list[str]) -> str:
    """The command itself, once; it fails where the page has planted a fault."""
    words = tuple(arguments)
    wrong = words[0] == "read" and any(word.startswith("late") for word in words)
    if words not in PROBED or words[0] == "export":
        PROBED[words] = reader.run_tokengym("probe", *words, status=1 if wrong else 0)
    return PROBED[words]


PROBED: dict[tuple[str, ...], str] = {}
"""What a probe has printed, by command: a page shows parts of it under the same command."""


def uv_run(reader: Reader, arguments: list[str]) -> str:
    """The same command here; `.ci/installs` asks uv for it."""
    return reader.type(arguments) if arguments[0] == "tokengym" else start(reader, ["test"])


def export(reader: Reader, arguments: list[str]) -> str:
    """Variables for what is typed afterwards."""
    for pair in arguments:
        name, _, value = pair.partition("=")
        reader.environment[name] = value
    return ""


def python(reader: Reader, arguments: list[str]) -> str:
    """A file the page wrote; a script of the project is only asked whether it has the flags.

    One that takes a model, which is the starting policy here, is run.
    """
    if (reader.folder / arguments[0]).is_file():
        return reader.run_python(*arguments)
    if str(MODEL_DIR) in arguments and arguments[0] != "-m":
        return reader.run_python(str(ROOT / arguments[0]), *arguments[1:])
    script = ["-m", arguments[1]] if arguments[0] == "-m" else [str(ROOT / arguments[0])]
    shown = reader.run_python(*script, "--help")
    if "options of `tokengym train`" in shown:  # the script passes them on
        shown += reader.run_tokengym("train", "--help")
    missing = [word for word in arguments[1:] if word.startswith("--") and word not in shown]
    assert not missing, f"{arguments[0]} has no {missing}"
    return shown


def wheel(reader: Reader, arguments: list[str]) -> str:
    """Only the flags: the build tools are not installed here, and `.ci/installs` builds it."""
    shown = reader.run_python("-m", "pip", "wheel", "--help")
    assert arguments[-1] == "."
    missing = [word for word in arguments if word.startswith("--") and word not in shown]
    assert not missing, f"pip wheel has no {missing}"
    return ""


def install(reader: Reader, arguments: list[str]) -> str:
    """A package that the page wrote or names is installed; the extras that a page names exist."""
    if arguments[0] == "torch":
        assert "--index-url https://download.pytorch.org/whl/cpu" in " ".join(arguments)
        return ""
    if (built := re.match(r"\$\(ls (.*)\)", arguments[0])) is not None:
        assert built[1] == "dist/tokengym-*.whl", "where the page built it"
        arguments = [arguments[0].replace(built[0], "tokengym")]
    if (ROOT / arguments[0]).is_dir() and arguments[0] != "-e":
        shutil.copytree(ROOT / arguments[0], reader.folder / arguments[0])
    if len(arguments) == 1 and (reader.folder / arguments[0]).is_dir():
        site = pip_install(reader.folder / arguments[0], reader.folder / "site")
        path = (reader.environment.get("PYTHONPATH"), str(site))
        reader.environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
        return ""
    if arguments[0] == "-e":
        # An editable install is what this checkout has, or `.ci/installs` makes.
        arguments = ["tokengym" + arguments[1].removeprefix(".")]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for word in arguments:
        match = re.fullmatch(r"(\w+)\[([\w,]+)\]", word)
        assert match is not None, f"no rule for installing {word!r}"
        assert match[1] == project["name"]
        assert set(match[2].split(",")) <= set(project["optional-dependencies"])
    return ""


def serve_env(reader: Reader, arguments: list[str]) -> str:
    """Without OpenEnv the command names its extra; with it, `tests/integrations` serves a world."""
    if importlib.util.find_spec("openenv") is not None:
        return reader.run_tokengym("serve-env", *arguments, "--help")
    shown = reader.run_tokengym("serve-env", *arguments, status=2)
    assert "pip install 'tokengym[openenv]'" in shown
    return ""


RULES: Mapping[tuple[str, ...], Rule] = {
    **{("tokengym", command): train(command) for command in CONFIGS},
    ("tokengym", "resume"): resume,
    ("tokengym", "sweep"): sweep,
    ("tokengym", "serve"): serve,
    ("tokengym", "serve-env"): serve_env,
    ("tokengym", "worlds"): lambda reader, rest: reader.run(BIN / "tokengym", "worlds", *rest),
    ("tokengym", "compare"): lambda reader, rest: reader.run_tokengym("compare", *rest),
    ("tokengym", "evaluate"): evaluate,
    ("tokengym", "view"): view,
    ("tokengym", "export"): lambda reader, rest: reader.run_tokengym("export", *rest),
    ("tokengym", "models"): models,
    ("tokengym", "rollouts"): lambda reader, rest: reader.run_tokengym("rollouts", *rest),
    ("tokengym", "probe"): probe,
    ("tokengym", "play"): lambda reader, rest: reader.run_tokengym("play", *rest),
    ("tokengym", "certify"): certify,
    ("tokengym", "check"): check,
    ("tokengym", "conform"): conform,
    ("tokengym", "new-world"): lambda reader, rest: reader.run_tokengym("new-world", *rest),
    ("tokengym", "ties"): ties,
    ("tokengym", "data"): lambda reader, rest: reader.run_tokengym("data", *rest),
    ("python3", "src/tokengym"): start,
    ("uv", "run"): uv_run,
    ("export",): export,
    ("python",): python,
    ("pip", "install"): install,
    ("pip", "wheel"): wheel,
}


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    monkeypatch.chdir(tmp_path)
    someone = Reader(tmp_path, RULES)
    yield someone
    someone.leave()


@pytest.mark.nightly
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.filterwarnings("ignore")
def test_every_block_of_a_page_does_what_it_says(
    page: Path, reader: Reader, starting_service: LocalService
) -> None:
    if page.stem in SHARING:
        reader.service = starting_service
    found = blocks(page)
    files = [block for block in found if block.name]
    printed = ""
    # A page may show a file below the command that reads it.
    for block in [*files, *(block for block in found if not block.name)]:
        if block.language == "text" and printed:
            lines = iter(printed.splitlines())
            for line in block.text.splitlines():
                assert line == "..." or line in lines, (
                    f"{page.name}:{block.line}: {line!r} in\n{printed}"
                )
        printed = reader.follow(page, block)


def test_a_command_that_no_rule_covers_fails(reader: Reader) -> None:
    with pytest.raises(AssertionError, match="no rule for the command"):
        reader.follow(PAGES[0], Block(1, "bash", "", "tokengym frobnicate\n"))
    with pytest.raises(AssertionError, match="no rule for blocks"):
        reader.follow(PAGES[0], Block(1, "", "", "x\n"))
