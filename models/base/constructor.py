"""The constructor of a learner, which follows from the declaration of its parameters."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

_PLAIN = (str, int, float, bool, type(None))


def parameter_names(parameters: type[BaseModel]) -> list[str]:
    """Return the names of the parameters that a constructor takes from a declaration."""
    return [name for name in parameters.model_fields if name != "algorithm"]


def make_constructor(parameters: type[BaseModel], *, randomized: bool) -> Callable[..., None]:
    """Return a constructor that only stores its arguments, as scikit-learn requires.

    Args:
        parameters: declares the names, types and defaults. The constructor's default of a parameter with an
            object as default is None, which stands for this object.
        randomized: whether there is also a ``random_state``.
    """
    described = {name: parameters.model_fields[name] for name in parameter_names(parameters)}
    arguments = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)]
    arguments += [_argument(name, _default(field)) for name, field in described.items()]
    if randomized:
        arguments.append(_argument("random_state", 0))
    signature = Signature(arguments)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it becomes the constructor
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}{inspect.signature(type(self))}: {error}") from None
        bound.apply_defaults()
        del bound.arguments["self"]
        vars(self).update(bound.arguments)

    __init__.__signature__ = signature  # type: ignore[attr-defined]  # which scikit-learn reads
    return __init__


def document(description: str, parameters: type[BaseModel], *, randomized: bool) -> str:
    """Return the docstring of a learner with the parameters of its declaration."""
    meanings = {name: parameters.model_fields[name].description or "" for name in parameter_names(parameters)}
    if randomized:
        meanings["random_state"] = "Seed of everything that is random."
    lines = [
        textwrap.fill(
            f"{name}: {' '.join(text.split())}", 100, initial_indent=" " * 4, subsequent_indent=" " * 8
        )
        for name, text in meanings.items()
    ]
    text, attributes, more = inspect.cleandoc(description).partition("\n\nAttributes:")
    return "\n".join([text, "", "Args:", *lines]) + attributes + more + "\n"


def _argument(name: str, default: Any) -> Parameter:
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default)


def _default(field: FieldInfo) -> Any:
    value = field.get_default(call_default_factory=True, validated_data={})
    return value if isinstance(value, _PLAIN) else None
