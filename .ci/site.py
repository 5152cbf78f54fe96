"""What the site has beyond the files in docs/: pages from the checkout's top, and the commands.

`README.md`, `CHANGELOG.md`, `CONTRIBUTING.md` and `SECURITY.md` stay where people look for them in
a checkout; their links are rewritten for the site. The page of commands is made from the command
line itself.
"""

import re
from pathlib import Path

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.cli import get_docs_for_click
from typer.main import get_command

ROOT = Path(__file__).resolve().parent.parent
TOP = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
_LINK = re.compile(r"\]\(([^)#\s]+)")
_CODE_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\.(?:py|ipynb)\)")
_NAMED_FENCE = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for source, target in TOP.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, target, content=_LINK.sub(_in_docs, text)))
    files.append(File.generated(config, "reference/cli.md", content=command_reference()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Write the name of a file above its block; name code of the checkout without a link."""
    titled = _NAMED_FENCE.sub(r'```\1 title="\2"', markdown)
    return _CODE_LINK.sub(r"\1", titled)


def command_reference() -> str:
    """Return every command with its arguments and options, from the application itself."""
    from tokengym.agents.cli import app

    command = get_command(app)
    context = typer.Context(command, info_name="tokengym")
    text = get_docs_for_click(obj=command, ctx=context, name="tokengym")
    return re.sub(r"^#+ `tokengym`$", "# Command line", text, count=1, flags=re.MULTILINE)


def _in_docs(match: re.Match[str]) -> str:
    link = match[1]
    if "://" in link:
        return match[0]
    return "](" + TOP.get(link, link.removeprefix("docs/"))
