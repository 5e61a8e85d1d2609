"""Writes ``covey/_api.pyi``: the constructors of learners and features, typed one argument at a time.

The parameters are declared in the ``…Parameters`` classes, from which the constructors follow when a program
runs. A type checker cannot see that, so this script writes what it needs to know.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from typing_extensions import TypeAliasType

from models.catalog import ENTRIES
from models.features import NumericFeatures, TextFeatures

SOURCE = Path(__file__).parents[2] / "covey" / "_api.py"
STUB = SOURCE.with_suffix(".pyi")
_HEAD = "# Written by tests/support/library_types.py from the declarations of the parameters.\n"
_FUTURE = "from __future__ import annotations\n"
_VERSION = "\n__version__: str\n"


def stub() -> str:
    """Return the text of the file."""
    typed = {entry.learner.__name__: entry.learner for entry in ENTRIES.values()}
    features = {cls.__name__: cls for cls in (NumericFeatures, TextFeatures)}
    models: set[type[BaseModel]] = {cls.parameters_type for cls in features.values()}
    classes = [_class(name, _of_learner(cls, models)) for name, cls in sorted(typed.items())]
    classes += [_class(name, _of_features(cls, models)) for name, cls in sorted(features.items())]
    _, names, exports = SOURCE.read_text("utf-8").replace(_VERSION, _FUTURE).split(_FUTURE)
    imports = ["from collections.abc import Mapping, Sequence", "from typing import Any, Literal", ""]
    imports += [_aliased(line, {*typed, *features}) for line in names.strip().splitlines()]
    imports += sorted(f"from {model.__module__} import {model.__name__}" for model in models)
    return "\n".join([_HEAD, *imports, _VERSION, exports.strip(), "", *classes])


def _class(name: str, arguments: list[str]) -> str:
    body = "".join(f"        {argument},\n" for argument in ["self", *arguments])
    return f"class {name}(_{name}):\n    def __init__(\n{body}    ) -> None: ...\n"


def _of_learner(learner: Any, models: set[type[BaseModel]]) -> list[str]:
    fields = learner.parameters.model_fields
    arguments = []
    for name, argument in inspect.signature(learner).parameters.items():
        annotation = fields[name].annotation if name in fields else int
        # None stands for a default that is an object.
        kinds = _kinds(annotation, models) | ({"None": None} if argument.default is None else {})
        arguments.append(f"{name}: {' | '.join(kinds)} = {_literal(argument.default)}")
    return arguments


def _of_features(features: Any, models: set[type[BaseModel]]) -> list[str]:
    parameters = features.parameters_type
    arguments = [f"parameters: {parameters.__name__} | None = None", "*"]
    for name, field in parameters.model_fields.items():
        if name != "kind":
            default = "..." if isinstance(field.default, BaseModel) else _literal(field.default)
            arguments.append(f"{name}: {' | '.join(_kinds(field.annotation, models))} = {default}")
    return arguments


def _kinds(annotation: Any, models: set[type[BaseModel]]) -> dict[str, None]:
    """Return the members of the union of types that a parameter accepts, as source, in their order."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, TypeAliasType):
        return _kinds(annotation.__value__, models)
    if origin is Annotated:
        return _kinds(arguments[0], models)
    if origin in (Union, UnionType):
        return {kind: None for argument in arguments for kind in _kinds(argument, models)}
    if origin is Literal:
        return {f"Literal[{', '.join(map(_literal, arguments))}]": None}
    if origin in (tuple, dict):
        inner = [" | ".join(_kinds(argument, models)) for argument in arguments if argument is not Ellipsis]
        return {f"{'Sequence' if origin is tuple else 'Mapping'}[{', '.join(dict.fromkeys(inner))}]": None}
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        models.add(annotation)
        return {"Mapping[str, Any]": None, annotation.__name__: None}
    return {"None" if annotation in (None, NoneType) else annotation.__name__: None}


def _literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _aliased(line: str, names: set[str]) -> str:
    module, _, imported = line.partition(" import ")
    parts = [f"{name} as _{name}" if name in names else name for name in imported.split(", ")]
    return f"{module} import {', '.join(parts)}"


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
