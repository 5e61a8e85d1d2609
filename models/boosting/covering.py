"""Label coverings: how the mistakes of one prediction are counted.

A covering maps an example's label set to cover elements. Failing on one label of an element costs as much
as failing on all of them, so a covering says which mistakes count together (Amit, Dekel & Singer, "A
boosting algorithm for label covering in multilabel problems", section 2 and figure 1).

A basketball story judged label by label on sport and as one unit on economy, everything else with its
relevant labels tied twice over and its irrelevant labels one by one:

>>> from scipy.sparse import csr_array
>>> covering = parse_covering({"kind": "rules", "rules": [
...     {"when": {"has": "basketball"},
...      "cover": [{"each": ["basketball", "football"]}, {"all": ["currencies", "markets"]}]},
...     {"when": "otherwise", "cover": [{"positives": "all", "weight": 2}, {"negatives": "each"}]}]})
>>> cover = covering.compile(["basketball", "currencies", "football", "markets"])
>>> story = csr_array(np.array([[1, 0, 0, 0]], dtype=np.int8))
>>> cover.errors(story, np.array([[-1.0, 1.0, 1.0, 1.0]]))  # wrong on all four: two in sport, one in economy
array([3.])
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    NonNegativeInt,
    Tag,
    TypeAdapter,
    model_validator,
)

from models.arrays import Floats, Ints, Labels
from models.boosting.cover_elements import Element, Entries, Evaluation, evaluate
from models.errors import ParameterError

_BLOCK = 32_768
"""Scores in a block of examples: small enough for its few temporaries to stay in the processor's cache."""

Named: TypeAlias = tuple[str, str]
"""A JSON pointer relative to the covering, and the label named there."""


class _Spelling(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


def _distinct(labels: tuple[str, ...]) -> tuple[str, ...]:
    for label in labels:
        if labels.count(label) > 1:
            raise ValueError(f"names {label!r} twice; name it once (weight repeats an element)")
    return labels


LabelNames: TypeAlias = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_distinct)]
Weight: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]


# ---------------------------------------------------------------------------------------------- compiled


@dataclass(frozen=True)
class Condition:
    """Holds where the number of an example's labels among ``columns`` is from ``least`` to ``most``."""

    columns: frozenset[int]
    least: int
    most: int

    def holds(self, labels: Labels) -> Any:
        """(n,) true for the examples whose label sets meet it."""
        among = np.zeros(labels.shape[1], dtype=np.int64)
        among[sorted(self.columns)] = 1
        count = labels @ among
        return (count >= self.least) & (count <= self.most)

    def implied(self) -> tuple[frozenset[int], frozenset[int]]:
        """Labels that are certainly relevant, and certainly irrelevant, where it holds."""
        return (
            self.columns if self.least >= len(self.columns) else frozenset(),
            self.columns if self.most == 0 else frozenset(),
        )

    def implied_by_failure(self) -> tuple[frozenset[int], frozenset[int]]:
        """The same, where it does not hold."""
        size = len(self.columns)
        return (
            self.columns if self.least <= 0 and self.most == size - 1 else frozenset(),
            self.columns if self.least == 1 and self.most >= size else frozenset(),
        )


@dataclass(frozen=True)
class CompiledRule:
    """A cover and the examples that it is for.

    Attributes:
        condition: what their label sets meet; None for all that no earlier rule took.
        elements: the cover.
    """

    condition: Condition | None
    elements: tuple[Element, ...]


@dataclass(frozen=True)
class Piece:
    """Some examples that share a cover, few enough to be evaluated at once.

    Attributes:
        rows: the examples, as a slice or as indices.
        elements: their cover.
        entries: their relevant labels.
        positions: where these stand among the entries of the whole label matrix, as a slice or as indices.
    """

    rows: slice | Ints
    elements: tuple[Element, ...]
    entries: Entries
    positions: slice | Ints

    def evaluate(self, scores: Floats) -> Evaluation:
        """Weights, loss and error of the piece, whose (b, k) scores are used up."""
        return evaluate(self.elements, scores, self.entries)


@dataclass(frozen=True)
class CompiledCovering:
    """A covering for labels in a fixed order.

    Attributes:
        n_labels: k.
        rules: the first whose condition holds gives an example's cover.
    """

    n_labels: int
    rules: tuple[CompiledRule, ...]

    def assign(self, labels: Labels) -> Ints:
        """(n,) the index of the rule that gives each example's cover."""
        assigned = np.full(labels.shape[0], -1, dtype=np.int64)
        for index, rule in enumerate(self.rules):
            open_ = assigned == -1
            assigned[open_ if rule.condition is None else open_ & rule.condition.holds(labels)] = index
        return assigned

    def pieces(self, labels: Labels) -> list[Piece]:
        """The examples grouped by cover and cut into pieces, each example in one of them.

        Args:
            labels: (n, k) label sets.
        """
        size = max(1, _BLOCK // max(1, self.n_labels))
        if len(self.rules) == 1:
            starts = labels.indptr
            return [
                Piece(
                    slice(a, min(a + size, labels.shape[0])),
                    self.rules[0].elements,
                    Entries.of(labels[a : a + size]),
                    slice(int(starts[a]), int(starts[min(a + size, labels.shape[0])])),
                )
                for a in range(0, labels.shape[0], size)
            ]
        assigned = self.assign(labels)
        found = []
        for index, rule in enumerate(self.rules):
            members = np.flatnonzero(assigned == index)
            for a in range(0, len(members), size):
                rows = members[a : a + size]
                counts = np.diff(labels.indptr)[rows]
                before = np.cumsum(counts) - counts
                positions = np.arange(counts.sum()) + np.repeat(labels.indptr[rows] - before, counts)
                found.append(Piece(rows, rule.elements, Entries.of(labels[rows]), positions))
        return found

    def losses(self, labels: Labels, scores: Floats) -> Floats:
        """The covering loss of each example: sum over its elements of log(1 + sum of exp(-y f)).

        Args:
            labels: (n, k) label sets.
            scores: (n, k) f(x).

        Returns:
            (n,) losses.
        """
        result = np.empty(labels.shape[0])
        for piece in self.pieces(labels):
            result[piece.rows] = piece.evaluate(np.array(scores[piece.rows])).loss
        return result

    def errors(self, labels: Labels, scores: Floats) -> Floats:
        """The covering error of each example: its elements with a label on the wrong side of 0.

        Args:
            labels: (n, k) label sets.
            scores: (n, k) f(x); a label is predicted where its score is above 0.

        Returns:
            (n,) errors.
        """
        result = np.empty(labels.shape[0])
        for piece in self.pieces(labels):
            result[piece.rows] = piece.evaluate(np.array(scores[piece.rows])).error
        return result


# -------------------------------------------------------------------------------------------- conditions


class WhenHas(_Spelling):
    """Holds for examples with a label."""

    has: str
    """The label."""

    def compile(self, index: dict[str, int]) -> Condition:
        """The condition in terms of label indices."""
        return Condition(frozenset({index[self.has]}), 1, 1)

    def named(self) -> Iterator[Named]:
        """The labels it names and where."""
        yield "/has", self.has


class WhenHasNot(_Spelling):
    """Holds for examples without a label."""

    has_not: str
    """The label."""

    def compile(self, index: dict[str, int]) -> Condition:
        """The condition in terms of label indices."""
        return Condition(frozenset({index[self.has_not]}), 0, 0)

    def named(self) -> Iterator[Named]:
        """The labels it names and where."""
        yield "/has_not", self.has_not


class WhenAny(_Spelling):
    """Holds for examples with at least one of the labels."""

    any: LabelNames
    """The labels."""

    def compile(self, index: dict[str, int]) -> Condition:
        """The condition in terms of label indices."""
        return Condition(frozenset(index[label] for label in self.any), 1, len(self.any))

    def named(self) -> Iterator[Named]:
        """The labels it names and where."""
        yield from _listed("/any", self.any)


class WhenEvery(_Spelling):
    """Holds for examples with all of the labels."""

    every: LabelNames
    """The labels."""

    def compile(self, index: dict[str, int]) -> Condition:
        """The condition in terms of label indices."""
        return Condition(frozenset(index[label] for label in self.every), len(self.every), len(self.every))

    def named(self) -> Iterator[Named]:
        """The labels it names and where."""
        yield from _listed("/every", self.every)


class LabelCount(_Spelling):
    """A number of labels, bounded on one side or on both."""

    at_least: NonNegativeInt = 0
    """The fewest labels."""
    at_most: NonNegativeInt | None = None
    """The most labels; no bound if left out."""

    @model_validator(mode="after")
    def _bounded(self) -> LabelCount:
        if not self.model_fields_set:
            raise ValueError("give at_least, at_most or both")
        if self.at_most is not None and self.at_most < self.at_least:
            raise ValueError("at_most is smaller than at_least, so that no example can match")
        return self


class WhenCount(_Spelling):
    """Holds for examples with so many labels."""

    count: LabelCount
    """How many."""

    def compile(self, index: dict[str, int]) -> Condition:
        """The condition in terms of label indices."""
        most = len(index) if self.count.at_most is None else self.count.at_most
        return Condition(frozenset(index.values()), self.count.at_least, most)

    def named(self) -> Iterator[Named]:
        """It names no labels."""
        yield from ()


# ---------------------------------------------------------------------------------------------- elements


class _ElementSpelling(_Spelling):
    weight: Weight = 1
    """How often the element is repeated."""

    @abstractmethod
    def compile(self, index: dict[str, int]) -> Element:
        """The element in terms of label indices."""

    def named(self) -> Iterator[Named]:
        """The labels it names and where."""
        yield from ()


class EachOf(_ElementSpelling):
    """One element for each of the labels."""

    each: LabelNames
    """The labels."""

    def compile(self, index: dict[str, int]) -> Element:
        """The elements in terms of label indices."""
        return Element(False, self.weight, _columns(self.each, index))

    def named(self) -> Iterator[Named]:
        """The labels it names and where."""
        yield from _listed("/each", self.each)


class AllOf(_ElementSpelling):
    """One element that ties the labels."""

    all: LabelNames
    """The labels."""

    def compile(self, index: dict[str, int]) -> Element:
        """The element in terms of label indices."""
        return Element(True, self.weight, _columns(self.all, index))

    def named(self) -> Iterator[Named]:
        """The labels it names and where."""
        yield from _listed("/all", self.all)


class Positives(_ElementSpelling):
    """The example's relevant labels: one element that ties them, or one each."""

    positives: Literal["all", "each"]
    """`all` ties them into one element, `each` makes one of each."""

    def compile(self, index: dict[str, int]) -> Element:  # noqa: ARG002 - holds whatever labels there are
        """The elements in terms of label indices."""
        return Element(self.positives == "all", self.weight, negatives=False)


class Negatives(_ElementSpelling):
    """The example's irrelevant labels: one element that ties them, or one each."""

    negatives: Literal["all", "each"]
    """`all` ties them into one element, `each` makes one of each."""

    def compile(self, index: dict[str, int]) -> Element:  # noqa: ARG002 - holds whatever labels there are
        """The elements in terms of label indices."""
        return Element(self.negatives == "all", self.weight, positives=False)


def _columns(labels: Sequence[str], index: dict[str, int]) -> Ints:
    return np.array(sorted(index[label] for label in labels), dtype=np.int64)


def _listed(pointer: str, labels: Sequence[str]) -> Iterator[Named]:
    for position, label in enumerate(labels):
        yield f"{pointer}/{position}", label


def _key_among(keys: Sequence[str]) -> Any:
    """Tells spellings apart by the one key that only they have."""

    def tell(value: Any) -> str | None:
        if isinstance(value, str):
            return value if value in keys else None
        given = (
            value
            if isinstance(value, dict)
            else type(value).model_fields
            if isinstance(value, BaseModel)
            else {}
        )
        return next((key for key in keys if key in given), None)

    return tell


When: TypeAlias = Annotated[
    Annotated[WhenHas, Tag("has")]
    | Annotated[WhenHasNot, Tag("has_not")]
    | Annotated[WhenAny, Tag("any")]
    | Annotated[WhenEvery, Tag("every")]
    | Annotated[WhenCount, Tag("count")]
    | Annotated[Literal["otherwise"], Tag("otherwise")],
    Discriminator(
        _key_among(["has", "has_not", "any", "every", "count", "otherwise"]),
        custom_error_type="covering_condition",
        custom_error_message='must be "otherwise" or have one of the keys has, has_not, any, every and count',
    ),
]

CoverElement: TypeAlias = Annotated[
    Annotated[EachOf, Tag("each")]
    | Annotated[AllOf, Tag("all")]
    | Annotated[Positives, Tag("positives")]
    | Annotated[Negatives, Tag("negatives")],
    Discriminator(
        _key_among(["each", "all", "positives", "negatives"]),
        custom_error_type="cover_element",
        custom_error_message="must have one of the keys each, all, positives and negatives",
    ),
]


# --------------------------------------------------------------------------------------------- coverings


class _Covering(_Spelling):
    def compile(self, labels: Sequence[str], *, pointer: str = "/learner/covering") -> CompiledCovering:
        """The covering for labels in a given order.

        Args:
            labels: the k label names, in label order.
            pointer: JSON pointer of the covering in the request, for errors.

        Raises:
            ParameterError: it names a label that is not among ``labels``, or leaves labels uncovered.
        """
        self._refuse_unknown(labels, "the training examples", pointer)
        index = {label: column for column, label in enumerate(labels)}
        return CompiledCovering(len(index), tuple(self.rules_for(index, labels, pointer)))

    def check(
        self, certain: Sequence[str], possible: Sequence[str], *, pointer: str = "/learner/covering"
    ) -> None:
        """Refuse a covering that will not compile, before it is known for which labels.

        What depends on labels that may be there or not is left for ``compile`` to say.

        Args:
            certain: labels that are sure to have a training example.
            possible: all labels that may have one.
            pointer: JSON pointer of the covering in the request, for errors.

        Raises:
            ParameterError: it names a label that is not among ``possible``, or leaves labels uncovered that
                it names or that are ``certain``.
        """
        self._refuse_unknown(possible, "the data set", pointer)
        labels = sorted({*certain, *(label for _, label in self.named())})
        # A number of labels says less of each label, the more labels there are.
        if len(labels) == len(possible) or not self.counts_labels:
            index = {label: column for column, label in enumerate(labels)}
            for _ in self.rules_for(index, labels, pointer):
                pass

    def _refuse_unknown(self, labels: Collection[str], whose: str, pointer: str) -> None:
        known = frozenset(labels)
        for where, label in self.named():
            if label not in known:
                raise ParameterError(
                    f"the covering names {label!r}, which is not a label of {whose}; "
                    "remove it or correct its spelling",
                    pointer + where,
                )

    @property
    def counts_labels(self) -> bool:
        """Whether a condition asks for a number of labels."""
        return False

    def named(self) -> Iterator[Named]:
        """The labels that the covering names and where."""
        yield from ()

    @abstractmethod
    def rules_for(self, index: dict[str, int], labels: Sequence[str], pointer: str) -> Iterator[CompiledRule]:
        """The rules in terms of label indices; refuses labels left uncovered."""


class _FixedCovering(_Covering):
    """A covering that is spelled without labels and holds all of them."""

    @abstractmethod
    def elements(self) -> tuple[Element, ...]:
        """Its cover."""

    def rules_for(
        self,
        index: dict[str, int],  # noqa: ARG002
        labels: Sequence[str],  # noqa: ARG002
        pointer: str,  # noqa: ARG002
    ) -> Iterator[CompiledRule]:
        """One rule for all examples."""
        yield CompiledRule(None, self.elements())


class HammingCovering(_FixedCovering):
    """Each label is an element of its own: mistakes are counted label by label (figure 1 a)."""

    kind: Literal["hamming"]

    def elements(self) -> tuple[Element, ...]:
        """Its cover."""
        return (Element(tied=False),)


class ZeroOneCovering(_FixedCovering):
    """One element ties all labels: a prediction is right or wrong as a whole (figure 1 b)."""

    kind: Literal["zero_one"]

    def elements(self) -> tuple[Element, ...]:
        """Its cover."""
        return (Element(tied=True),)


class TwoSetsCovering(_FixedCovering):
    """One element ties the relevant labels, another the irrelevant ones (figure 1 c)."""

    kind: Literal["two_sets"]

    def elements(self) -> tuple[Element, ...]:
        """Its cover."""
        return Element(tied=True, negatives=False), Element(tied=True, positives=False)


class WeightedPositiveCovering(_FixedCovering):
    """One repeated element ties the relevant labels; each irrelevant label is an element of its own."""

    kind: Literal["weighted_positive"]
    weight: Weight = 6
    """How often the element of the relevant labels is repeated."""

    def elements(self) -> tuple[Element, ...]:
        """Its cover."""
        return Element(True, self.weight, negatives=False), Element(False, positives=False)


class WeightedNegativeCovering(_FixedCovering):
    """One repeated element ties the irrelevant labels; each relevant label is an element of its own."""

    kind: Literal["weighted_negative"]
    weight: Weight = 4
    """How often the element of the irrelevant labels is repeated."""

    def elements(self) -> tuple[Element, ...]:
        """Its cover."""
        return Element(True, self.weight, positives=False), Element(False, negatives=False)


class LabelGroup(_Spelling):
    """Labels tied into one element."""

    labels: LabelNames
    """The labels."""
    weight: Weight = 1
    """How often the element is repeated."""


class GroupsCovering(_Covering):
    """Each group of labels is an element; groups may overlap, and together they hold every label."""

    kind: Literal["groups"]
    groups: Annotated[tuple[LabelGroup, ...], Field(min_length=1)]
    """The groups; together they hold every label."""

    def named(self) -> Iterator[Named]:
        """The labels that the covering names and where."""
        for position, group in enumerate(self.groups):
            yield from _listed(f"/groups/{position}/labels", group.labels)

    def rules_for(self, index: dict[str, int], labels: Sequence[str], pointer: str) -> Iterator[CompiledRule]:
        """One rule for all examples."""
        held = {label for group in self.groups for label in group.labels}
        left = [label for label in labels if label not in held]
        if left:
            raise ParameterError(
                f"the groups leave labels uncovered: {_some(left)}; add them to a group", f"{pointer}/groups"
            )
        yield CompiledRule(
            None, tuple(Element(True, group.weight, _columns(group.labels, index)) for group in self.groups)
        )


class CoverRule(_Spelling):
    """A cover for the examples that meet a condition."""

    when: When
    """The condition."""
    cover: Annotated[tuple[CoverElement, ...], Field(min_length=1)]
    """The elements; together they hold every label of every such example."""


class RulesCovering(_Covering):
    """The cover depends on the example's label set: the first rule that matches holds."""

    kind: Literal["rules"]
    rules: Annotated[tuple[CoverRule, ...], Field(min_length=1)]
    """The last, and only the last, is for ``"otherwise"``."""

    @model_validator(mode="after")
    def _otherwise_last(self) -> RulesCovering:
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
        """Whether a condition asks for a number of labels."""
        return any(isinstance(rule.when, WhenCount) for rule in self.rules)

    def named(self) -> Iterator[Named]:
        """The labels that the covering names and where."""
        for position, rule in enumerate(self.rules):
            if rule.when != "otherwise":
                for where, label in rule.when.named():
                    yield f"/rules/{position}/when{where}", label
            for place, element in enumerate(rule.cover):
                for where, label in element.named():
                    yield f"/rules/{position}/cover/{place}{where}", label

    def rules_for(self, index: dict[str, int], labels: Sequence[str], pointer: str) -> Iterator[CompiledRule]:
        """The rules in terms of label indices.

        A cover of relevant labels only (or irrelevant labels only) holds a label beyond those it names where
        the conditions settle that the label is relevant (or irrelevant): its own, and the earlier rules' that
        did not match.
        """
        on: frozenset[int] = frozenset()
        off: frozenset[int] = frozenset()
        for position, rule in enumerate(self.rules):
            elements = tuple(element.compile(index) for element in rule.cover)
            condition = None if rule.when == "otherwise" else rule.when.compile(index)
            own_on, own_off = condition.implied() if condition else (frozenset(), frozenset())
            left = _uncovered(elements, len(index), on | own_on, off | own_off)
            if left:
                raise ParameterError(
                    f"rule {position} ({_told(rule.when)}) leaves labels uncovered: "
                    f"{_some([labels[column] for column in left])}; add them to its cover",
                    f"{pointer}/rules/{position}/cover",
                )
            yield CompiledRule(condition, elements)
            if condition:
                failed_on, failed_off = condition.implied_by_failure()
                on, off = on | failed_on, off | failed_off


def _uncovered(elements: Sequence[Element], k: int, on: frozenset[int], off: frozenset[int]) -> list[int]:
    """Labels that some label set leaves out of the cover, given those known to be relevant or irrelevant."""
    relevant: set[int] = set()
    irrelevant: set[int] = set()
    for element in elements:
        held = set(range(k)) if element.columns is None else set(element.columns.tolist())
        relevant |= held if element.positives else set()
        irrelevant |= held if element.negatives else set()
    return [
        label
        for label in range(k)
        if not ((label in relevant or label in off) and (label in irrelevant or label in on))
    ]


def _told(when: Any) -> str:
    return "otherwise" if isinstance(when, str) else str(when.model_dump_json(exclude_unset=True))


def _some(labels: Sequence[str], *, at_most: int = 20) -> str:
    shown = ", ".join(labels[:at_most])
    return shown if len(labels) <= at_most else f"{shown} and {len(labels) - at_most} more"


Covering: TypeAlias = Annotated[
    HammingCovering
    | ZeroOneCovering
    | TwoSetsCovering
    | WeightedPositiveCovering
    | WeightedNegativeCovering
    | GroupsCovering
    | RulesCovering,
    Field(discriminator="kind"),
]
"""Every covering, told apart by ``kind``."""

_COVERING: TypeAdapter[Any] = TypeAdapter(Covering)


def parse_covering(spelled: Any) -> Any:
    """The covering that a JSON value (or a covering already parsed) spells.

    Raises:
        pydantic.ValidationError: it spells none.
    """
    return _COVERING.validate_python(spelled)
