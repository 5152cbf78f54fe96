"""`tokengym settings`: every setting of training and of the service, as a page lists them."""

from collections.abc import Sequence
from pathlib import Path

import typer

from tokengym.agents.service.config import ServiceConfig
from tokengym.agents.settings import Setting, Settings, settings_of
from tokengym.agents.training.config import COMMANDS


def settings() -> None:
    """List all settings by group: options, values, and the commands that take them."""
    typer.echo(settings_tables())


def settings_tables() -> str:
    """Return a table of Markdown for each group of settings, under its heading."""
    takers: dict[type[Settings], list[str]] = {}
    for name, offer in COMMANDS.items():
        for group in offer.groups:
            takers.setdefault(group, []).append(name)
    takers[ServiceConfig] = ["serve"]
    return "\n\n".join(_section(group, commands) for group, commands in takers.items())


def _section(group: type[Settings], commands: Sequence[str]) -> str:
    from tokengym.agents.analysis.markdown import markdown_table

    heading = (group.__doc__ or "").partition(".")[0]
    rows = [
        (f"`{setting.flag}`", f"`{setting.name}`", _values(setting), setting.described)
        for setting in settings_of(group).values()
    ]
    table = markdown_table(("option", "in `settings.json`", "value", "what it is"), rows)
    return f"### {heading}\n\nTaken by `{'`, `'.join(commands)}`.\n\n{table}"


def _values(setting: Setting) -> str:
    """Return in words what may stand behind an option."""
    if setting.choices:
        return ", ".join(f"`{choice}`" for choice in setting.choices)
    kinds = {bool: "a flag", int: "an integer", float: "a number", str: "text", Path: "a path"}
    return kinds.get(setting.kind, "text; may be given several times")
