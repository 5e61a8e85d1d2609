"""The cover elements of a covering's rules, as JSON."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag
from typing_extensions import TypeAliasType

from models.covering.evaluation import CompiledElement
from models.covering.schema_base import (
    LabelNames,
    LabelReference,
    Schema,
    Weight,
    discriminator_key,
    label_columns,
    list_references,
)


class _ElementSchema(Schema):
    weight: Weight = 1
    """How often the element is repeated."""

    @abstractmethod
    def compile(self, index: dict[str, int]) -> CompiledElement:
        """The elements in terms of label indices."""

    def label_references(self) -> Iterator[LabelReference]:
        """The labels in the element and their JSON pointers."""
        yield from ()


class EachOf(_ElementSchema):
    """One element for each of the labels."""

    each: LabelNames
    """The labels."""

    def compile(self, index: dict[str, int]) -> CompiledElement:
        """The elements in terms of label indices."""
        return CompiledElement(False, self.weight, label_columns(self.each, index))

    def label_references(self) -> Iterator[LabelReference]:
        """The labels in the elements and their JSON pointers."""
        yield from list_references("/each", self.each)


class AllOf(_ElementSchema):
    """One element that ties the labels."""

    all: LabelNames
    """The labels."""

    def compile(self, index: dict[str, int]) -> CompiledElement:
        """The element in terms of label indices."""
        return CompiledElement(True, self.weight, label_columns(self.all, index))

    def label_references(self) -> Iterator[LabelReference]:
        """The labels in the element and their JSON pointers."""
        yield from list_references("/all", self.all)


class Positives(_ElementSchema):
    """The example's relevant labels, tied into one element or as one element each."""

    positives: Literal["all", "each"]
    """`all` ties the labels into one element, `each` makes each label an element."""

    def compile(self, index: dict[str, int]) -> CompiledElement:  # noqa: ARG002 - the same for all labels
        """The elements in terms of label indices."""
        return CompiledElement(self.positives == "all", self.weight, negatives=False)


class Negatives(_ElementSchema):
    """The example's irrelevant labels, tied into one element or as one element each."""

    negatives: Literal["all", "each"]
    """`all` ties the labels into one element, `each` makes each label an element."""

    def compile(self, index: dict[str, int]) -> CompiledElement:  # noqa: ARG002 - the same for all labels
        """The elements in terms of label indices."""
        return CompiledElement(self.negatives == "all", self.weight, positives=False)


CoverElement = TypeAliasType(
    "CoverElement",
    Annotated[
        Annotated[
            Annotated[EachOf, Tag("each")]
            | Annotated[AllOf, Tag("all")]
            | Annotated[Positives, Tag("positives")]
            | Annotated[Negatives, Tag("negatives")],
            Discriminator(
                discriminator_key(["each", "all", "positives", "negatives"]),
                custom_error_type="cover_element",
                custom_error_message="must have one of the keys each, all, positives and negatives",
            ),
        ],
        Field(description="A part of a cover: labels by name, or an example's own labels."),
    ],
)
