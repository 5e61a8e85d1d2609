"""Responses of the hot path: objects with the fields of a response model, without validation.

A response model is the definition of a response. FastAPI derives the OpenAPI schema from it, and
``unvalidated`` the constructor that the hot path calls. ``mypy`` checks its arguments as those of the model.

>>> class Point(ResponseModel):
...     x: float
...     label: str | None = None
...     exact: bool = False
>>> new_point = unvalidated(Point)
>>> to_json([new_point(x=0.5), new_point(x=-1e-7, label="é", exact=True)]).decode()
'[{"x":0.5,"exact":false},{"x":-1e-7,"label":"é","exact":true}]'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec
import numpy as np
from pydantic.fields import FieldInfo

from app.api.schemas import ResponseModel

Response = TypeVar("Response", bound=ResponseModel)


def unvalidated(model: type[Response]) -> type[Response]:
    """Return a constructor of objects with the fields of a response model, which ``to_json`` can encode.

    The fields have the order of the model, and those that are None are left out. The objects have none of the
    methods of the model, and can contain only such objects, not models.
    """
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for name, field in model.model_fields.items():
        if field.is_required():
            fields.append((name, Any))
        elif field.default is None:
            fields.append((name, Any, None))
        else:  # a default that is not None is not left out
            fields.append((name, Any, msgspec.field(default_factory=_default_of(field))))
    struct = msgspec.defstruct(model.__name__, fields, kw_only=True, omit_defaults=True)
    return cast("type[Response]", struct)


def _default_of(field: FieldInfo) -> Callable[[], Any]:
    return lambda: field.get_default(call_default_factory=True)


def _to_builtin(value: object) -> object:
    """Convert a number of NumPy."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no value of a response")


to_json = msgspec.json.Encoder(enc_hook=_to_builtin).encode
"""Return the JSON of a value that contains objects of ``unvalidated``."""


def to_builtins(value: object) -> Any:
    """Return the JSON value of a value that contains objects of ``unvalidated``: dictionaries and lists."""
    return msgspec.to_builtins(value, enc_hook=_to_builtin)
