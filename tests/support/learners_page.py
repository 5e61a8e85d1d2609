"""Generates the tables about learners in ``docs`` from the catalog and the constraints of the parameters.

python tests/support/learners_page.py    # regenerates the tables
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks import tables
from models import catalog
from models.catalog import LearnerDescription


def table(learner: LearnerDescription) -> str:
    """Return the parameters of one learner as a table."""
    schema = learner.parameters
    rows = ["| parameter | values | default | description |", "|---|---|---|---|"]
    for name, field in schema["properties"].items():
        if name == "algorithm":
            continue
        default = learner.defaults.get(name)
        shown = "" if default is None else f"`{json.dumps(default)}`".replace('"', "")
        description = " ".join(field.get("description", "").split())
        rows.append(f"| `{name}` | {_values(field, schema)} | {shown} | {description} |".replace("||", "| |"))
    return "\n".join([f"Source: {learner.source}.", "", *rows])


def decisions() -> str:
    """Return the table of the valid decisions of each learner."""
    rows = ["| learner | default | own decision | other decisions |", "|---|---|---|---|"]
    for learner in catalog.describe():
        for decision in learner.decisions:
            when = "".join(f", `{name}`: `{json.dumps(value)}`" for name, value in decision.when.items())
            named = (decision.default, decision.own)
            others = ", ".join(f"`{kind}`" for kind in decision.kinds if kind not in named)
            row = f"| `{learner.algorithm}`{when} | `{decision.default}` | `{decision.own}` | {others} |"
            rows.append(row.replace('"', ""))
    return "\n".join(rows)


def features() -> str:
    """Return the table of the default features of each learner."""
    rows = ["| learner | texts | e-mails: also | numbers |", "|---|---|---|---|"]
    for learner in catalog.describe():
        kinds = learner.default_features.model_dump(mode="json", exclude_unset=True)
        text, email = kinds["text"], kinds["email"]
        more = {name: value for name, value in email.items() if value != text.get(name)}
        cells = [_json(text), _json(more), _json(kinds["features"])]
        rows.append(f"| `{learner.algorithm}` | {' | '.join(cells)} |")
    return "\n".join(rows)


def _json(parameters: dict[str, Any]) -> str:
    shown = {name: value for name, value in parameters.items() if name != "kind"}
    return ", ".join(f"`{json.dumps(name)}: {json.dumps(value)}`" for name, value in shown.items())


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


def rendered() -> dict[str, str]:
    """Return the tables by the names of their marks."""
    tables_of_learners = {learner.algorithm: table(learner) for learner in catalog.describe()}
    return tables_of_learners | {"features": features(), "decisions": decisions()}


if __name__ == "__main__":
    tables.show(rendered())
