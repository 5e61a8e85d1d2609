"""Coverings, as JSON: fixed coverings, groups of labels, and rules."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, TypeAdapter, model_validator
from typing_extensions import TypeAliasType

from models.arrays import Bools
from models.covering.compiled import CompiledCovering, CompiledRule
from models.covering.conditions import CoverCondition, WhenCount
from models.covering.elements import CoverElement
from models.covering.evaluation import CompiledElement
from models.covering.schema_base import (
    LabelNames,
    LabelReference,
    Schema,
    Weight,
    label_columns,
    list_references,
)
from models.errors import ParameterError

MAX_RULES = 1_000
"""Maximum number of rules of a covering. Each rule is checked for all labels, and for all examples."""


class _Covering(Schema):
    def compile(self, labels: Sequence[str], *, pointer: str = "/learner/covering") -> CompiledCovering:
        """The covering for labels in a fixed order.

        Args:
            labels: the k label names, in label order.
            pointer: JSON pointer of the covering in the request, for errors.

        Raises:
            ParameterError: the covering names a label that is not in ``labels``, or leaves labels uncovered.
        """
        self._check_references(frozenset(labels), "the training examples", pointer)
        index = {label: column for column, label in enumerate(labels)}
        return CompiledCovering(len(index), tuple(self.compile_rules(index, labels, pointer)))

    def check(
        self, certain: Sequence[str], possible: AbstractSet[str], *, pointer: str = "/learner/covering"
    ) -> None:
        """Raise the errors that ``compile`` is certain to raise, before the training labels are known.

        Errors that depend on labels that may have no training example are left to ``compile``.

        Args:
            certain: labels that certainly have a training example.
            possible: all labels that may have one.
            pointer: JSON pointer of the covering in the request, for errors.

        Raises:
            ParameterError: the covering names a label that is not in ``possible``, or leaves a label
                uncovered that it names or that is ``certain``.
        """
        self._check_references(possible, "the data set", pointer)
        labels = sorted({*certain, *(label for _, label in self.label_references())})
        # With more labels, a condition on their number implies less about each of them.
        if len(labels) == len(possible) or not self.counts_labels:
            index = {label: column for column, label in enumerate(labels)}
            for _ in self.compile_rules(index, labels, pointer):
                pass

    def _check_references(self, labels: AbstractSet[str], source: str, pointer: str) -> None:
        for place, label in self.label_references():
            if label not in labels:
                raise ParameterError(
                    f"the covering names {label!r}, which is not a label of {source}; "
                    "remove it or correct its spelling",
                    pointer + place,
                )

    @property
    def counts_labels(self) -> bool:
        """Whether a condition depends on the number of labels."""
        return False

    def label_references(self) -> Iterator[LabelReference]:
        """The labels in the covering and their JSON pointers."""
        yield from ()

    @abstractmethod
    def compile_rules(
        self, index: dict[str, int], labels: Sequence[str], pointer: str
    ) -> Iterator[CompiledRule]:
        """The rules in terms of label indices.

        Args:
            index: the index of each label.
            labels: the labels.
            pointer: JSON pointer of the covering in the request, for errors.

        Raises:
            ParameterError: the covering leaves labels uncovered.
        """


class _FixedCovering(_Covering):
    """A covering that names no labels and covers all of them."""

    @abstractmethod
    def elements(self) -> tuple[CompiledElement, ...]:
        """The cover of every example."""

    def compile_rules(
        self,
        index: dict[str, int],  # noqa: ARG002
        labels: Sequence[str],  # noqa: ARG002
        pointer: str,  # noqa: ARG002
    ) -> Iterator[CompiledRule]:
        """One rule for all examples."""
        yield CompiledRule(None, self.elements())


class HammingCovering(_FixedCovering):
    """Each label is an element: mistakes count label by label (figure 1 a)."""

    kind: Literal["hamming"]

    def elements(self) -> tuple[CompiledElement, ...]:
        """The cover of every example."""
        return (CompiledElement(tied=False),)


class ZeroOneCovering(_FixedCovering):
    """One element ties all labels: a prediction is right or wrong as a whole (figure 1 b)."""

    kind: Literal["zero_one"]

    def elements(self) -> tuple[CompiledElement, ...]:
        """The cover of every example."""
        return (CompiledElement(tied=True),)


class TwoSetsCovering(_FixedCovering):
    """One element ties the relevant labels, another one the irrelevant labels (figure 1 c)."""

    kind: Literal["two_sets"]

    def elements(self) -> tuple[CompiledElement, ...]:
        """The cover of every example."""
        return CompiledElement(tied=True, negatives=False), CompiledElement(tied=True, positives=False)


class WeightedPositiveCovering(_FixedCovering):
    """One repeated element ties the relevant labels; each irrelevant label is an element."""

    kind: Literal["weighted_positive"]
    weight: Weight = 6
    """How often the element of the relevant labels is repeated."""

    def elements(self) -> tuple[CompiledElement, ...]:
        """The cover of every example."""
        return CompiledElement(True, self.weight, negatives=False), CompiledElement(False, positives=False)


class WeightedNegativeCovering(_FixedCovering):
    """One repeated element ties the irrelevant labels; each relevant label is an element."""

    kind: Literal["weighted_negative"]
    weight: Weight = 4
    """How often the element of the irrelevant labels is repeated."""

    def elements(self) -> tuple[CompiledElement, ...]:
        """The cover of every example."""
        return CompiledElement(True, self.weight, positives=False), CompiledElement(False, negatives=False)


class LabelGroup(Schema):
    """Labels that are tied into one element."""

    labels: LabelNames
    """The labels."""
    weight: Weight = 1
    """How often the element is repeated."""


class GroupsCovering(_Covering):
    """Each group of labels is an element; groups may overlap."""

    kind: Literal["groups"]
    groups: Annotated[tuple[LabelGroup, ...], Field(min_length=1)]
    """The groups; every label must be in at least one of them."""

    def label_references(self) -> Iterator[LabelReference]:
        """The labels in the covering and their JSON pointers."""
        for position, group in enumerate(self.groups):
            yield from list_references(f"/groups/{position}/labels", group.labels)

    def compile_rules(
        self, index: dict[str, int], labels: Sequence[str], pointer: str
    ) -> Iterator[CompiledRule]:
        """One rule for all examples."""
        covered = {label for group in self.groups for label in group.labels}
        uncovered = [label for label in labels if label not in covered]
        if uncovered:
            raise ParameterError(
                f"the groups leave labels uncovered: {_shortened(uncovered)}; add them to a group",
                f"{pointer}/groups",
            )
        yield CompiledRule(
            None,
            tuple(
                CompiledElement(True, group.weight, label_columns(group.labels, index))
                for group in self.groups
            ),
        )


class CoverRule(Schema):
    """A cover for the examples that match a condition."""

    when: CoverCondition
    """The condition."""
    cover: Annotated[tuple[CoverElement, ...], Field(min_length=1)]
    """The elements; for every matching example, every label must be in at least one of them."""


class RulesCovering(_Covering):
    """The cover depends on the example's label set: the first rule that matches applies."""

    kind: Literal["rules"]
    rules: Annotated[tuple[CoverRule, ...], Field(min_length=1, max_length=MAX_RULES)]
    """The rules; the last one, and only that one, must have the condition ``"otherwise"``."""

    @model_validator(mode="after")
    def _check_otherwise_is_last(self) -> RulesCovering:
        if self.rules[-1].when != "otherwise":
            raise ValueError('the last rule must be for "otherwise", so that every example has a cover')
        for position, rule in enumerate(self.rules[:-1]):
            if rule.when == "otherwise":
                raise ValueError(
                    f'rule {position} is for "otherwise", so that no later rule can match; put it last'
                )
        return self

    @property
    def counts_labels(self) -> bool:
        """Whether a condition depends on the number of labels."""
        return any(isinstance(rule.when, WhenCount) for rule in self.rules)

    def label_references(self) -> Iterator[LabelReference]:
        """The labels in the covering and their JSON pointers."""
        for position, rule in enumerate(self.rules):
            if rule.when != "otherwise":
                for place, label in rule.when.label_references():
                    yield f"/rules/{position}/when{place}", label
            for number, element in enumerate(rule.cover):
                for place, label in element.label_references():
                    yield f"/rules/{position}/cover/{number}{place}", label

    def compile_rules(
        self, index: dict[str, int], labels: Sequence[str], pointer: str
    ) -> Iterator[CompiledRule]:
        """The rules in terms of label indices.

        A cover that contains a label only if it is relevant (or only if it is irrelevant) is complete if the
        conditions imply that the label is relevant (or irrelevant). These are the rule's own condition and
        the conditions of the earlier rules, which did not match.
        """
        on, off = np.zeros(len(index), dtype=np.bool_), np.zeros(len(index), dtype=np.bool_)
        for position, rule in enumerate(self.rules):
            elements = tuple(element.compile(index) for element in rule.cover)
            condition = None if rule.when == "otherwise" else rule.when.compile(index)
            relevant_only, irrelevant_only = on.copy(), off.copy()
            if condition:
                own_on, own_off = condition.implied_by_match()
                relevant_only[own_on], irrelevant_only[own_off] = True, True
            uncovered = _uncovered(elements, relevant_only, irrelevant_only)
            if uncovered:
                raise ParameterError(
                    f"rule {position} ({_condition_text(rule.when)}) leaves labels uncovered: "
                    f"{_shortened([labels[column] for column in uncovered])}; add them to its cover",
                    f"{pointer}/rules/{position}/cover",
                )
            yield CompiledRule(condition, elements)
            if condition:
                failed_on, failed_off = condition.implied_by_mismatch()
                on[failed_on], off[failed_off] = True, True


def _uncovered(elements: Sequence[CompiledElement], on: Bools, off: Bools) -> list[int]:
    """The labels that the cover of some label set does not contain.

    Args:
        elements: the cover.
        on: (k,) whether each label is certainly relevant.
        off: (k,) whether each label is certainly irrelevant.
    """
    of_all = [element for element in elements if element.columns is None]
    relevant = off | any(element.positives for element in of_all)
    irrelevant = on | any(element.negatives for element in of_all)
    for element in elements:
        if element.columns is not None:
            relevant[element.columns] |= element.positives
            irrelevant[element.columns] |= element.negatives
    return np.flatnonzero(~(relevant & irrelevant)).tolist()


def _condition_text(when: Any, *, at_most: int = 200) -> str:
    text = "otherwise" if isinstance(when, str) else str(when.model_dump_json(exclude_unset=True))
    return text if len(text) <= at_most else f"{text[:at_most]}…"


def _shortened(labels: Sequence[str], *, at_most: int = 20) -> str:
    shown = ", ".join(labels[:at_most])
    return shown if len(labels) <= at_most else f"{shown} and {len(labels) - at_most} more"


Covering = TypeAliasType(
    "Covering",
    Annotated[
        HammingCovering
        | ZeroOneCovering
        | TwoSetsCovering
        | WeightedPositiveCovering
        | WeightedNegativeCovering
        | GroupsCovering
        | RulesCovering,
        Field(discriminator="kind", description="Which labels are judged together, discriminated by `kind`."),
    ],
)
"""Every covering; ``kind`` is the discriminator."""

_COVERING: TypeAdapter[Any] = TypeAdapter(Covering)


def parse_covering(covering: Any) -> Any:
    """Validate a covering.

    Args:
        covering: a JSON value, or a covering that is already validated.

    Raises:
        pydantic.ValidationError: it is not a covering.
    """
    return _COVERING.validate_python(covering)
