"""Generates ``docs/cli.md`` from the commands. Run this file to regenerate the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from app.cli.main import cli
from app.inbound import pipe

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"

_KINDS = {
    "str": "text",
    "int": "number",
    "int range": "number",
    "float range": "number",
    "float": "number",
    "path": "path",
    "file": "file",
}
"""What the value of an option is, by the name of its type."""

HEAD = (
    "# Command line\n\n"
    "This page is a reference of the command `covey` and its options. `covey COMMAND --help` prints the "
    "same. `make install` installs the command in `.venv/bin`; `. .venv/bin/activate` puts it on the `PATH` "
    "of a shell. Commands that run parts of the service also read the [settings](settings.md).\n"
)


def page() -> str:
    """Return the content of the page."""
    return HEAD + "".join(_section(name, command) for name, command in _commands("covey", _root()))


def _root() -> Any:
    return typer.main.get_command(cli)


def _commands(name: str, group: Any) -> Iterator[tuple[str, Any]]:
    """Yield every command with its full name."""
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(f"{name} {word}", command)
        else:
            yield f"{name} {word}", command


def _section(name: str, command: Any) -> str:
    if name == "covey route":
        return _route_section()
    arguments = [item for item in command.params if item.param_type_name == "argument"]
    options = [item for item in command.params if item.param_type_name == "option" and not item.hidden]
    usage = [name, *(["[OPTIONS]"] if options else []), *map(_argument, arguments)]
    text = f"\n## {name}\n\n```text\n{' '.join(usage)}\n```\n\n{command.help.strip()}\n"
    rows = [f"| `{_argument(item)}` | {_help(item)} |\n" for item in arguments]
    rows += [f"| `{', '.join(item.opts)}`{_value(item)} | {_help(item)} |\n" for item in options]
    return text + (f"\n| option | meaning |\n|---|---|\n{''.join(rows)}" if rows else "")


def _route_section() -> str:
    """Return the section of the command whose options ``argparse`` reads."""
    parser = pipe.parser()
    rows = ""
    for action in sorted(parser._actions, key=lambda action: bool(action.option_strings)):
        if action.dest != "help":
            names = ", ".join(action.option_strings) or f"[{action.dest.upper()}…]"
            value = f" *{action.metavar}*" if action.option_strings and action.metavar else ""
            required = " Required." if action.required and action.option_strings else ""
            rows += f"| `{names}`{value} | {str(action.help).replace('%%', '%')}{required} |\n"
    return (
        "\n## covey route\n\n```text\ncovey route [OPTIONS] [COMMAND…]\n```\n\n"
        f"{pipe.DESCRIPTION.strip()}\n\n| option | meaning |\n|---|---|\n{rows}"
    )


def _argument(argument: Any) -> str:
    name = argument.name.upper() + ("…" if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _value(option: Any) -> str:
    if option.is_flag:
        return ""
    choices = getattr(option.type, "choices", None)
    return (
        f" {' or '.join(f'`{choice}`' for choice in choices)}"
        if choices
        else f" *{_KINDS[option.type.name]}*"
    )


def _help(item: Any) -> str:
    parts = [" ".join((item.help or "").split())]
    if getattr(item, "envvar", None):
        parts.append(f"Variable: `{item.envvar}`.")
    if (
        item.param_type_name == "option"
        and item.show_default
        and not item.is_flag
        and item.default is not None
    ):
        default = item.default() if callable(item.default) else item.default
        if default not in ([], ()):
            parts.append(f"Default: `{default}`.")
    if item.required and item.param_type_name == "option":
        parts.append("Required.")
    if getattr(item, "multiple", False) and "repeat" not in parts[0]:
        parts.append("You can repeat this option.")
    return " ".join(parts).replace("|", "&#124;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
