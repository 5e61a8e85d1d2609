"""Generates ``docs/settings.md`` from the settings. Run this file to regenerate the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from app.settings import GIB, KIB, MIB, Settings

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"

HEAD = """\
# Settings

This page is a reference for administrators. Every setting is an environment variable. Command-line options
take precedence over environment variables, and `covey serve` passes both to the processes that it starts. If
a value is invalid, the command does not start. If a variable with the prefix `COVEY_` is no setting, the log
names it when the command starts (event `settings.unknown`). Sizes are in bytes, times in seconds.

| variable | default | description |
|---|---|---|
"""


def page() -> str:
    """Return the content of the page."""
    return HEAD + "".join(
        f"| `{variable(name)}` | {_default(field)} | {sentence(field)}{_choices(field)} |\n"
        for name, field in Settings.model_fields.items()
    )


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"{Settings.model_config['env_prefix']}{name.upper()}"


def sentence(field: FieldInfo) -> str:
    """Return the description of a setting as one line of Markdown."""
    return " ".join((field.description or "").replace("``", "`").split())


def _default(field: FieldInfo) -> str:
    value: Any = field.default
    if value in ("", None):
        return "(empty)"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int):
        for name, unit in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
            if value and value % unit == 0:
                return f"`{value}` ({value // unit} {name})"
    return f"`{value}`"


def _choices(field: FieldInfo) -> str:
    if get_origin(field.annotation) is not Literal:
        return ""
    return f" One of {', '.join(f'`{choice}`' for choice in get_args(field.annotation))}."


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
