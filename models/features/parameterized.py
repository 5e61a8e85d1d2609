"""The constructor of features, which accepts single parameters, and the interface of scikit-learn to them."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Self, TypeVar

from pydantic import BaseModel, ValidationError

from models.errors import ParameterError

P = TypeVar("P", bound=BaseModel)


class ParameterizedFeatures(Generic[P]):
    """Base class of features.

    Args:
        parameters: the parameters; None means the defaults.
        **changes: parameters that differ from them, by name.

    Raises:
        ParameterError: a parameter is unknown or out of range.
    """

    parameters_type: ClassVar[type[BaseModel]]
    parameters: P

    def __init__(self, parameters: P | None = None, **changes: Any) -> None:
        if changes or parameters is None:
            parameters = self._validated({} if parameters is None else dict(parameters), changes)
        self._configure(parameters)

    def _configure(self, parameters: P) -> None:
        self.parameters = parameters

    def _validated(self, values: dict[str, Any], changes: dict[str, Any]) -> P:
        kind = self.parameters_type.model_fields["kind"].annotation.__args__[0]  # type: ignore[union-attr]
        try:
            validated: Any = self.parameters_type.model_validate({"kind": kind, **values, **changes})
        except ValidationError as error:
            first = error.errors()[0]
            pointer = "".join(f"/{part}" for part in ("features", *first["loc"]))
            raise ParameterError(f"{pointer}: {first['msg']}", pointer) from error
        else:
            return validated  # type: ignore[no-any-return]

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's interface
        """Return the parameters by name."""
        return {name: value for name, value in self.parameters if name != "kind"}

    def set_params(self, **changes: Any) -> Self:
        """Change parameters. ``analyzer__stop_words`` changes one value of the parameter ``analyzer``.

        Raises:
            ParameterError: a parameter is unknown or out of range.
        """
        values: dict[str, Any] = {}
        for name, value in changes.items():
            outer, _, inner = name.partition("__")
            if inner:
                current = values.get(outer, getattr(self.parameters, outer, None))
                values[outer] = {**dict(current or {}), inner: value}
            else:
                values[name] = value
        self._configure(self._validated(dict(self.parameters), values))
        return self

    def __sklearn_clone__(self) -> Self:
        return type(self)(self.parameters)

    def __repr__(self) -> str:
        changed = ", ".join(
            f"{name}={value!r}"
            for name, value in self.parameters
            if name != "kind" and value != self.parameters_type.model_fields[name].default
        )
        return f"{type(self).__name__}({changed})"
