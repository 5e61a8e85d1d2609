"""The parameter tables of ``docs/learners.md``, made from the parameters' own constraints.

python tests/support/learners_page.py    # writes them anew
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from models import catalog
from models.catalog import LearnerDescription

PAGE = Path(__file__).parents[2] / "docs" / "learners.md"


def table(learner: LearnerDescription) -> str:
    """The parameters of one learner as a table."""
    schema = learner.parameters
    rows = ["| parameter | values | default | |", "|---|---|---|---|"]
    for name, field in schema["properties"].items():
        if name == "algorithm":
            continue
        default = learner.defaults.get(name)
        shown = "" if default is None else f"`{json.dumps(default)}`".replace('"', "")
        words = " ".join(field.get("description", "").split())
        rows.append(f"| `{name}` | {_values(field, schema)} | {shown} | {words} |".replace("||", "| |"))
    return "\n".join(rows)


def _values(field: dict[str, Any], schema: dict[str, Any]) -> str:
    if "$ref" in field:
        field = schema["$defs"][field["$ref"].rsplit("/", 1)[-1]]
    branches = field.get("anyOf") or field.get("oneOf")
    if branches:
        kinds = [_values(branch, schema) for branch in branches if branch.get("type") != "null"]
        return ", ".join(dict.fromkeys(kinds))
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    low = next((f"{sign} {field[key]}" for key, sign in _LOWEST.items() if key in field), "")
    return f"{field.get('type', 'object')} {low}".strip()


_LOWEST = {"minimum": "≥", "exclusiveMinimum": ">"}


def written(page: str) -> str:
    """The page with every table made anew, between its markers."""
    for learner in catalog.describe():
        begin, end = f"<!-- {learner.algorithm} -->", f"<!-- end {learner.algorithm} -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        # A replacement is a pattern too: its backslashes are said twice.
        made = f"{begin}\n{table(learner)}\n{end}".replace("\\", r"\\")
        page, found = pattern.subn(made, page)
        if found != 1:
            raise ValueError(f"docs/learners.md has {found} tables of {learner.algorithm}")
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
