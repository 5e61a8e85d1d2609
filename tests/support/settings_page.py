"""``docs/settings.md``, made from the settings themselves; run this file to write it anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from app.settings import GIB, KIB, MIB, Settings

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"

HEAD = """\
# Settings

Every setting is an environment variable. Options on the command line come before it; `covey serve` hands
both on to the processes that it starts. A value that makes no sense is refused at start-up. Sizes are in
bytes, times in seconds.

| variable | default | what it is |
|---|---|---|
"""


def page() -> str:
    """The page as it must be."""
    return HEAD + "".join(
        f"| `{variable(name)}` | {_default(field)} | {sentence(field)}{_choices(field)} |\n"
        for name, field in Settings.model_fields.items()
    )


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"{Settings.model_config['env_prefix']}{name.upper()}"


def sentence(field: FieldInfo) -> str:
    """What a setting is, in a line of Markdown."""
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
