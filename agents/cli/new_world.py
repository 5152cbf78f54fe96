"""`tokengym new-world`: write the package of a world, to be changed."""

import re
import shlex
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import specs

_FILES = Path(__file__).parent / "new_world_files"


def new_world(
    name: Annotated[str, typer.Argument(help="name of the world, such as coin_toss")],
    folder: Annotated[Path | None, typer.Option(help="the folder to create; NAME")] = None,
    namespace: Annotated[str, typer.Option(help="what the world's id begins with")] = "my",
) -> None:
    """Write the package of a world: one function for the question, one for the reward.

    The package has a declaration, tests and a README, and works as it is.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise OptionError(f"NAME must be words of a-z and 0-9 joined by _, got {name!r}")
    if not re.fullmatch(r"[\w-]+", namespace, re.ASCII):
        raise OptionError(f"--namespace must be of letters, digits, _ and -, got {namespace!r}")
    title = "".join(word.capitalize() for word in name.split("_"))
    if title.lower() in {spec.short_name for spec in specs().values()}:
        raise OptionError(f"there is a world {title.lower()!r} already: choose another NAME")
    target = Path(name) if folder is None else folder
    if target.exists():
        raise OptionError(f"{target} exists: name another --folder")
    module = f"{name}_world"
    names = {
        "title": name.replace("_", " ").capitalize(),
        "class_name": f"{title}World",
        "id": f"{namespace}/{title}-v0",
        "module": module,
        "package": module.replace("_", "-"),
        "short": title.lower(),
    }
    for path in sorted(_FILES.rglob("*.txt")):
        inside = path.relative_to(_FILES).with_suffix("")
        parts = ["src", module, *inside.parts[1:]] if inside.parts[0] == "src" else inside.parts
        written = target.joinpath(*parts)
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(Template(path.read_text("utf-8")).substitute(names), encoding="utf-8")
    short = names["short"]
    typer.echo(
        f"{target} holds the world {names['id']}. Its question and its reward are in "
        f"{target / 'src' / module / 'world.py'}. Next:\n"
        f"  pip install -e {shlex.quote(f'{target.resolve()}[test]')}\n"
        f"  pytest {shlex.quote(str(target))}\n"
        f"  tokengym check {short}\n"
        f"  tokengym train {short}"
    )
