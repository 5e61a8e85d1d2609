"""What the schemas of coverings, conditions and cover elements have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from models.arrays import Ints

LabelReference: TypeAlias = tuple[str, str]
"""A JSON pointer relative to the covering, and the label that stands there."""


class Schema(BaseModel):
    """Base of the schemas: immutable, and without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


def _check_distinct(labels: tuple[str, ...]) -> tuple[str, ...]:
    seen: set[str] = set()
    for label in labels:
        if label in seen:
            raise ValueError(f"names {label!r} twice; name it once (weight repeats an element)")
        seen.add(label)
    return labels


LabelNames: TypeAlias = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_check_distinct)]
Weight: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]


def list_references(pointer: str, labels: Sequence[str]) -> Iterator[LabelReference]:
    """The labels of a list and their JSON pointers.

    >>> list(list_references("/any", ["a", "b"]))
    [('/any/0', 'a'), ('/any/1', 'b')]
    """
    for position, label in enumerate(labels):
        yield f"{pointer}/{position}", label


def label_columns(labels: Sequence[str], index: dict[str, int]) -> Ints:
    """The indices of labels, in ascending order."""
    return np.array(sorted(index[label] for label in labels), dtype=np.int64)


def discriminator_key(keys: Sequence[str]) -> Callable[[Any], str | None]:
    """A discriminator for a union of schemas, each of which is the only one with a certain key.

    Args:
        keys: these keys; also strings that are values themselves.
    """

    def find(value: Any) -> str | None:
        if isinstance(value, str):
            return value if value in keys else None
        present = (
            value
            if isinstance(value, dict)
            else type(value).model_fields
            if isinstance(value, BaseModel)
            else {}
        )
        return next((key for key in keys if key in present), None)

    return find
