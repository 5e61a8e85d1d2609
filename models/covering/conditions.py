"""The conditions of a covering's rules, as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np
from pydantic import Discriminator, Field, NonNegativeInt, Tag, model_validator
from typing_extensions import TypeAliasType

from models.covering.compiled import CompiledCondition
from models.covering.schema_base import (
    LabelNames,
    LabelReference,
    Schema,
    discriminator_key,
    label_columns,
    list_references,
)


class WhenHas(Schema):
    """Matches examples that have a label."""

    has: str
    """The label."""

    def compile(self, index: dict[str, int]) -> CompiledCondition:
        """The condition in terms of label indices."""
        return CompiledCondition(label_columns([self.has], index), 1, 1)

    def label_references(self) -> Iterator[LabelReference]:
        """The labels in the condition and their JSON pointers."""
        yield "/has", self.has


class WhenHasNot(Schema):
    """Matches examples that do not have a label."""

    has_not: str
    """The label."""

    def compile(self, index: dict[str, int]) -> CompiledCondition:
        """The condition in terms of label indices."""
        return CompiledCondition(label_columns([self.has_not], index), 0, 0)

    def label_references(self) -> Iterator[LabelReference]:
        """The labels in the condition and their JSON pointers."""
        yield "/has_not", self.has_not


class WhenAny(Schema):
    """Matches examples that have at least one of the labels."""

    any: LabelNames
    """The labels."""

    def compile(self, index: dict[str, int]) -> CompiledCondition:
        """The condition in terms of label indices."""
        return CompiledCondition(label_columns(self.any, index), 1, len(self.any))

    def label_references(self) -> Iterator[LabelReference]:
        """The labels in the condition and their JSON pointers."""
        yield from list_references("/any", self.any)


class WhenEvery(Schema):
    """Matches examples that have all of the labels."""

    every: LabelNames
    """The labels."""

    def compile(self, index: dict[str, int]) -> CompiledCondition:
        """The condition in terms of label indices."""
        return CompiledCondition(label_columns(self.every, index), len(self.every), len(self.every))

    def label_references(self) -> Iterator[LabelReference]:
        """The labels in the condition and their JSON pointers."""
        yield from list_references("/every", self.every)


class LabelCount(Schema):
    """A range for the number of labels; give one bound or both."""

    at_least: NonNegativeInt = 0
    """The smallest number of labels."""
    at_most: NonNegativeInt | None = None
    """The largest number of labels; by default there is no upper bound."""

    @model_validator(mode="after")
    def _check_bounds(self) -> LabelCount:
        if not self.model_fields_set:
            raise ValueError("give at_least, at_most or both")
        if self.at_most is not None and self.at_most < self.at_least:
            raise ValueError("at_most is smaller than at_least, so no example can match")
        return self


class WhenCount(Schema):
    """Matches examples whose number of labels is in a range."""

    count: LabelCount
    """The range."""

    def compile(self, index: dict[str, int]) -> CompiledCondition:
        """The condition in terms of label indices."""
        most = len(index) if self.count.at_most is None else self.count.at_most
        return CompiledCondition(np.arange(len(index)), self.count.at_least, most)

    def label_references(self) -> Iterator[LabelReference]:
        """The condition names no labels."""
        yield from ()


CoverCondition = TypeAliasType(
    "CoverCondition",
    Annotated[
        Annotated[
            Annotated[WhenHas, Tag("has")]
            | Annotated[WhenHasNot, Tag("has_not")]
            | Annotated[WhenAny, Tag("any")]
            | Annotated[WhenEvery, Tag("every")]
            | Annotated[WhenCount, Tag("count")]
            | Annotated[Literal["otherwise"], Tag("otherwise")],
            Discriminator(
                discriminator_key(["has", "has_not", "any", "every", "count", "otherwise"]),
                custom_error_type="covering_condition",
                custom_error_message=(
                    'must be "otherwise" or have one of the keys has, has_not, any, every and count'
                ),
            ),
        ],
        Field(description='A condition on the label set of an example, or `"otherwise"`.'),
    ],
)
