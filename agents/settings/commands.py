"""Settings as options of commands."""

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Annotated, Any, Literal, TypeVar

import typer

from tokengym.agents.settings.setting import Setting, Settings, settings_of

T = TypeVar("T", bound=Settings)


def takes(
    *groups: type[Settings],
    only: Collection[str] = (),
    change: Callable[[Setting], Setting] = lambda setting: setting,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of settings groups.

    The command's parameter `said` receives, by name, the values of those that were typed: presets
    may then have other defaults than the classes.

    Args:
        groups: the groups, or classes made of several.
        only: names of the settings that the command takes; all of them if empty.
        change: makes of a setting what the command offers for it.
    """
    settings = {
        setting.name: change(setting)
        for group in groups
        for setting in settings_of(group).values()
        if not only or setting.name in only
    }

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own = [
            parameter
            for parameter in inspect.signature(function).parameters.values()
            if parameter.name != "said"
        ]
        made = [_parameter(setting) for setting in settings.values()]

        @wraps(function)
        def command(**typed: Any) -> None:
            said = {
                name: setting.value(value)
                for name, setting in settings.items()
                if (value := typed.pop(name)) is not None
            }
            function(said=said, **typed)

        parameters = [*own, *made]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return command

    return decorate


def said_of(group: type[T], said: Mapping[str, Any], **more: Any) -> T:
    """Return the settings of one group, of what a command that takes several was told, and more."""
    return group(**{name: said[name] for name in settings_of(group) if name in said}, **more)


def _parameter(setting: Setting) -> inspect.Parameter:
    """Return the parameter that typer makes an option of, in the panel of its group."""
    kind = Literal[setting.choices] if setting.choices else setting.kind
    kind = list[str] if setting.repeats else kind
    panel = (inspect.getdoc(setting.group) or "").partition(".")[0]
    option = typer.Option(*setting.flag.split(), help=setting.described, rich_help_panel=panel)
    return inspect.Parameter(
        setting.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=... if setting.default is ... else None,
        annotation=Annotated[kind | None, option],
    )
