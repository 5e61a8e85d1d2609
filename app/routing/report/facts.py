"""The facts from which a report is built: counts of decisions, and the decisions with feedback."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from models.pipeline.reference import Reference

VersionKey: TypeAlias = tuple[str | None, int | None]
"""Model and number of a version; None and None if no version decided."""


@dataclass(frozen=True, slots=True)
class DecisionCount:
    """Decisions that are equal in all that a report distinguishes.

    Attributes:
        week: number of the week in the window, from 0.
        version: the version that decided.
        disposition: outcome of the messages.
        right: whether the feedback has exactly the predicted labels; None without feedback.
        probability_bin: bin of ``set_probability``, from 0 to 99; None without one.
        probability_sum: sum of ``set_probability``.
        shadow: number of the shadow version; None without a shadow.
        shadow_agrees: whether the shadow version predicted the same labels; None without a shadow.
        count: number of decisions.
    """

    week: int
    version: VersionKey
    disposition: str
    right: bool | None
    probability_bin: int | None
    probability_sum: float
    shadow: int | None
    shadow_agrees: bool | None
    count: int


@dataclass(frozen=True, slots=True)
class LabelCount:
    """Decisions with a predicted label that are equal otherwise; see ``DecisionCount``."""

    label: str
    week: int
    version: VersionKey
    disposition: str
    right: bool | None
    shadow: int | None
    shadow_agrees: bool | None
    count: int


@dataclass(frozen=True, slots=True)
class UnknownWordCount:
    """Decisions with about the same share of unknown words.

    Attributes:
        week: number of the week in the window, from 0.
        version: the version that decided.
        bin: bin of the share, from 0 to 99.
        share_sum: sum of the shares.
        count: number of decisions.
    """

    week: int
    version: VersionKey
    bin: int
    share_sum: float
    count: int


@dataclass(frozen=True, slots=True)
class FeedbackFact:
    """A decision with feedback.

    Attributes:
        week: number of the week in the window, from 0.
        version: the version that decided.
        disposition: outcome of the message.
        predicted: the predicted labels, each with its probability if the version is calibrated.
        correct: the correct labels.
    """

    week: int
    version: VersionKey
    disposition: str
    predicted: dict[str, float | None]
    correct: frozenset[str]


@dataclass(frozen=True)
class VersionReference:
    """The reference of a version.

    Attributes:
        labels: the labels of the version, in label order.
        reference: what it predicts for held-out documents.
    """

    labels: Sequence[str]
    reference: Reference | None


@dataclass(frozen=True)
class Facts:
    """Everything that a report is built from. The iterables are read once.

    Attributes:
        decisions: counts of decisions.
        labels: counts of decisions with each predicted label.
        unknown_words: counts of decisions by their share of unknown words.
        feedback: decisions with feedback.
        references: the references of the versions that decided.
    """

    decisions: Iterable[DecisionCount]
    labels: Iterable[LabelCount]
    unknown_words: Iterable[UnknownWordCount]
    feedback: Iterable[FeedbackFact]
    references: dict[VersionKey, VersionReference]
