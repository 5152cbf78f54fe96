"""What the site has beyond the files in docs/: pages from the checkout's top, and tables from code.

`README.md`, `CHANGELOG.md`, `CONTRIBUTING.md` and `SECURITY.md` stay where people look for them in
a checkout, as notebooks do. Links lead from file to file of the checkout, wherever they stand; for
the site they are rewritten here. The page of commands and the tables of settings, worlds and checks
are made from the code itself.
"""

import posixpath
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.cli import get_docs_for_click
from typer.main import get_command

import tokengym
from tokengym.agents.certify.checks import CHECKS
from tokengym.agents.certify.finding import GROUPS
from tokengym.agents.cli import app
from tokengym.agents.cli.worlds import describe
from tokengym.agents.reports.markdown import markdown_table
from tokengym.agents.service.config import ServiceConfig
from tokengym.agents.settings import Setting, Settings, settings_of
from tokengym.agents.training.config import CONFIGS
from tokengym.agents.training.presets import without_world
from tokengym.envs.registry import import_object
from tokengym.rewards import Range

ROOT = Path(__file__).resolve().parent.parent
TOP = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
_LINK = re.compile(r"\]\(([^)#\s]+)(?![^)]*\)\{ download)")
_CODE_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\.py\)")
_NAMED_FENCE = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for source, target in TOP.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, target, content=text))
    files.append(File.generated(config, "reference/cli.md", content=command_reference()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Write the name of a file above its block, and what is declared at its page's end.

    Code of the checkout is named without a link; other links lead to the files' pages.
    """
    if page.file.src_uri.startswith("worlds/"):
        markdown += world_reference(Path(page.file.src_uri).stem)
    elif made := APPENDED.get(page.file.src_uri):
        markdown += f"\n{made()}\n"
    markdown = _LINK.sub(lambda match: _on_site(match, page.file.src_uri), markdown)
    titled = _NAMED_FENCE.sub(r'```\1 title="\2"', markdown)
    return _CODE_LINK.sub(r"\1", titled)


def check_tables() -> str:
    """Return the checks of `tokengym certify` by group: their rules and severities."""
    parts = []
    for group in GROUPS:
        found = [check for check in CHECKS.values() if check.group == group]
        rows = [(f"`{check.name}`", check.rule, check.severity) for check in found]
        table = _table(("check", "what should be true", "severity"), rows)
        parts.append(f"### {group.capitalize()}\n\n{table}")
    return "\n".join(parts)


def settings_tables() -> str:
    """Return a table of Markdown for each group of settings, under its heading."""
    takers: dict[type[Settings], list[str]] = {}
    for name, kind in CONFIGS.items():
        for group in dict.fromkeys(setting.group for setting in settings_of(kind).values()):
            takers.setdefault(group, []).append(name)
    takers[ServiceConfig] = ["serve"]
    return "\n\n".join(_section(group, commands) for group, commands in takers.items())


def _section(group: type[Settings], commands: Sequence[str]) -> str:
    heading = (group.__doc__ or "").partition(".")[0]
    rows = [
        (f"`{setting.flag}`", f"`{setting.name}`", _values(setting), setting.described)
        for setting in map(without_world, settings_of(group).values())
    ]
    table = markdown_table(("option", "in `settings.json`", "value", "what it is"), rows)
    return f"### {heading}\n\nTaken by `{'`, `'.join(commands)}`.\n\n{table}"


def _values(setting: Setting) -> str:
    """Return in words what may stand behind an option."""
    if setting.choices:
        return ", ".join(f"`{choice}`" for choice in setting.choices)
    kinds = {bool: "a flag", int: "an integer", float: "a number", str: "text", Path: "a path"}
    return kinds.get(setting.kind, "text; may be given several times")


APPENDED = {"certify.md": check_tables, "reference/settings.md": settings_tables}
"""What the site writes at a page's end, from declarations in the code."""


def command_reference() -> str:
    """Return every command with its arguments and options, from the application itself."""
    command = get_command(app)
    _lengthen_summaries(command)
    context = typer.Context(command, info_name="tokengym")
    text = get_docs_for_click(obj=command, ctx=context, name="tokengym")
    return re.sub(r"^#+ `tokengym`$", "# Command line", text, count=1, flags=re.MULTILINE)


def _lengthen_summaries(command: Any) -> None:
    """Have lists of subcommands show whole first paragraphs, which are cut at 45 characters."""
    command.short_help = (command.help or "").partition("\n\n")[0].replace("\n", " ")
    for subcommand in getattr(command, "commands", {}).values():
        _lengthen_summaries(subcommand)


def world_reference(name: str) -> str:
    """Return what a world declares: roles, levels, options and metrics."""
    spec = tokengym.spec(name)
    roles = [
        (role, _reach(spec.step_range[role]), _reach(spec.return_range[role]))
        for role in spec.roles
    ]
    options = [
        (f"`{option}`", f"`{about['type']}`", f"`{about['default']!r}`")
        for option, about in describe(spec)["options"].items()
    ]
    metrics = import_object(spec.metrics) if spec.metrics else {}
    return "\n".join(
        (
            f"\n## Reference\n\nMade from the declaration of `{spec.id}`.\n",
            'Observations and actions are strings (`mode="text"`) or arrays of token ids',
            '(`mode="tokens"`). Any content is a legal action.\n',
            _table(("role", "reward of a step", "return"), roles),
            _table(("level", "most turns of a role"), spec.turn_limits.items()),
            _table(("option", "type", "default"), options),
            _table(
                ("metric", "unit", "meaning"),
                [(f"`{key}`", about.unit, about.meaning) for key, about in metrics.items()],
            ),
        )
    )


def _reach(found: Range) -> str:
    return f"{found.low:g} to {found.high:g}"


def _table(header: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    cells = ([str(cell).replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"


def _on_site(match: re.Match[str], page: str) -> str:
    """Return a link to a file of the checkout as one between pages; leave others alone."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(_source(page)), match[1]))
    if not (ROOT / target).is_file() or (found := _page(target)) is None:
        return match[0]
    return f"]({posixpath.relpath(found, posixpath.dirname(page) or '.')}"


def _source(page: str) -> str:
    """Return the file of the checkout that a page is made of."""
    tops = {target: source for source, target in TOP.items()}
    if page.startswith("notebooks/"):
        return f"examples/{Path(page).stem}.ipynb"
    return tops.get(page, f"docs/{page}")


def _page(source: str) -> str | None:
    """Return the page, or the picture, that the site makes of a file of the checkout."""
    if re.fullmatch(r"examples/\w+\.ipynb", source):
        return f"notebooks/{Path(source).stem}.md"
    return TOP.get(source, source[5:] if source.startswith("docs/") else None)
