"""Runs the Python example of the README."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_library_example_returns_the_stated_labels() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    *statements, call = example.rstrip().splitlines()
    expression, stated = call.split("  # ")
    names: dict[str, object] = {}
    exec("\n".join(statements), names)  # noqa: S102 - the example itself
    assert eval(expression, names) == eval(stated)  # noqa: S307
