"""The report on a data set: its counts, and warnings about its documents and labels."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from models.data.advice import Suggestion, suggestions_in
from models.data.duplicates import Duplicates
from models.data.examples import Kind
from models.data.ingestion.duplicates import DuplicateFinder
from models.data.ingestion.label_names import label_name_warnings
from models.data.record import Record, join_first, quoted
from models.errors import BadRecord
from models.labels import LabelTree

FEW_EXAMPLES = 5
"""Labels with fewer examples get a warning."""

_MAX_LISTED = 5
_FREQUENT_FRACTION = 0.9
_IMBALANCE_RATIO = 100
# The replacement character, C1 controls, and UTF-8 that was decoded as Latin-1 or Windows-1252.
_WRONGLY_DECODED = re.compile("[\ufffd\x80-\x9f]|Ã[\xa0-\xbf‚ƒ„…†‡ˆ‰Š‹Œ‘’“”•–—˜™š›œŸ]|â€")


@dataclass(frozen=True)
class DatasetReport:
    """Counts of a data set, and warnings about probable mistakes.

    Attributes:
        kind: kind of the documents.
        n_examples: number of accepted examples.
        n_labels: number of distinct labels, including labels that only the file or the tree declares.
        label_counts: number of examples of each label, in label order.
        label_cardinality: average number of labels of an example.
        label_density: label cardinality divided by the number of labels.
        n_unlabelled: number of examples without a label.
        splits: number of examples in each split: ``train``, ``validation``, ``test`` and ``none``.
        n_features: number of distinct features of numeric data; 0 for other kinds.
        folds: number of examples of each fold, by ascending number; empty if no example has a fold.
        n_empty: number of documents without content.
        n_duplicates: number of documents that are equal to an earlier one.
        n_conflicting: number of duplicates whose labels differ from the labels of the first occurrence.
        n_with_unknown: number of examples with unknown labels.
        n_training_with_unknown: number of examples with unknown labels in the training split.
        unknown_counts: number of examples of which each label is unknown, in label order; only labels that
            are unknown for at least one example.
        n_weighted: number of examples with a weight other than 1.
        n_training_weighted: number of such examples in the training split.
        label_tree: the label tree as child to parent; empty if there is none.
        warnings: one sentence for each warning.
        n_bad_records: number of rejected records.
        bad_records: the first 20 rejected records.
        suggestions: other ways to read the file, by the warnings that name them.
        format: the format of the file; None if the examples do not come from a file.
    """

    kind: Kind
    n_examples: int
    n_labels: int
    label_counts: dict[str, int]
    label_cardinality: float
    label_density: float
    n_unlabelled: int
    splits: dict[str, int]
    n_features: int = 0
    folds: dict[int, int] = field(default_factory=dict)
    n_empty: int = 0
    n_duplicates: int = 0
    n_conflicting: int = 0
    n_with_unknown: int = 0
    n_training_with_unknown: int = 0
    unknown_counts: dict[str, int] = field(default_factory=dict)
    n_weighted: int = 0
    n_training_weighted: int = 0
    label_tree: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    n_bad_records: int = 0
    bad_records: list[BadRecord] = field(default_factory=list)
    suggestions: dict[str, Suggestion] = field(default_factory=dict)
    format: str | None = None

    def by_frequency(self) -> list[tuple[str, int]]:
        """Return the labels with their counts, the most frequent first; ties are in label order."""
        return sorted(self.label_counts.items(), key=lambda item: -item[1])

    def to_json(self) -> dict[str, Any]:
        """Return the report as values that can be serialized to JSON."""
        return asdict(self)


class ReportBuilder:
    """Counts examples one by one and builds the report.

    Args:
        tree: the label tree; empty if there is none.

    Attributes:
        tree: the label tree; the caller may replace it before the first example.
        n_examples: number of examples so far.
        kind: kind of the last example.
        label_counts: number of examples of each label so far.
        warnings: warnings of the reader.
    """

    def __init__(self, tree: LabelTree) -> None:
        self.tree = tree
        self.n_examples = 0
        self.kind: Kind = "text"
        self.label_counts: Counter[str] = Counter(dict.fromkeys(tree.labels, 0))
        self.warnings: list[str] = []
        self._train_counts: Counter[str] = Counter()
        self._declared: set[str] = set()
        self._n_unlabelled = 0
        self._splits = Counter(train=0, validation=0, test=0, none=0)
        self._folds: Counter[int] = Counter()
        self._n_with_unknown = self._n_training_with_unknown = 0
        self._unknown_counts: Counter[str] = Counter()
        self._n_weighted = self._n_training_weighted = 0
        self._smallest_weight = self._largest_weight = 1.0
        self._empty_lines = array("Q")
        self._wrongly_decoded_lines = array("Q")
        self._duplicates = DuplicateFinder()

    def declare(self, labels: Iterable[str]) -> None:
        """Add labels that exist even if no example has them."""
        for name in labels:
            self.label_counts[name] += 0
            self._declared.add(name)

    def rename(self, names: Mapping[str, str]) -> None:
        """Replace the names of labels by new ones, of which none is a label yet."""
        if names:
            for counts in (self.label_counts, self._train_counts, self._unknown_counts):
                renamed = {names.get(name, name): count for name, count in counts.items()}
                counts.clear()
                counts.update(renamed)
            self._declared = {names.get(name, name) for name in self._declared}

    def add(self, record: Record, labels: Sequence[str]) -> None:
        """Count one example with its label set."""
        self.n_examples += 1
        self.kind = record.kind
        self.label_counts.update(labels)
        if record.split == "train":
            self._train_counts.update(labels)
        if record.unknown:
            self._n_with_unknown += 1
            self._n_training_with_unknown += record.split == "train"
            self._unknown_counts.update(record.unknown)
            self.label_counts.update(dict.fromkeys(record.unknown, 0))
        if record.weight is not None:
            self._n_weighted += 1
            self._n_training_weighted += record.split == "train"
            self._smallest_weight = min(self._smallest_weight, record.weight)
            self._largest_weight = max(self._largest_weight, record.weight)
        self._n_unlabelled += not labels
        self._splits[record.split or "none"] += 1
        if record.fold is not None:
            self._folds[record.fold] += 1
        if _is_empty(record):
            self._empty_lines.append(record.line)
        if any(map(_is_wrongly_decoded, _texts(record))):
            self._wrongly_decoded_lines.append(record.line)
        self._duplicates.add(record, labels)

    def report(self, *, n_features: int, n_bad_records: int, bad_records: list[BadRecord]) -> DatasetReport:
        """Return the counts of the examples so far, with the warnings."""
        counts = dict(sorted(self.label_counts.items()))
        cardinality = sum(counts.values()) / max(self.n_examples, 1)
        duplicates = self._duplicates.summary()
        warnings = [*self._warnings(counts, duplicates, n_bad_records)]
        return DatasetReport(
            kind=self.kind,
            n_examples=self.n_examples,
            n_labels=len(counts),
            label_counts=counts,
            label_cardinality=cardinality,
            label_density=cardinality / max(len(counts), 1),
            n_unlabelled=self._n_unlabelled,
            splits=dict(self._splits),
            n_features=n_features,
            folds=dict(sorted(self._folds.items())),
            n_empty=len(self._empty_lines),
            n_duplicates=duplicates.n_duplicates,
            n_conflicting=duplicates.n_conflicting,
            n_with_unknown=self._n_with_unknown,
            n_training_with_unknown=self._n_training_with_unknown,
            unknown_counts=dict(sorted(self._unknown_counts.items())),
            n_weighted=self._n_weighted,
            n_training_weighted=self._n_training_weighted,
            label_tree=dict(self.tree.parents),
            warnings=warnings,
            n_bad_records=n_bad_records,
            bad_records=bad_records,
            suggestions=suggestions_in([*warnings, *(record.reason for record in bad_records)]),
        )

    def _warnings(self, counts: dict[str, int], duplicates: Duplicates, n_bad_records: int) -> Iterable[str]:
        yield from self.warnings
        yield from _document_warnings(
            self.n_examples,
            self._n_unlabelled,
            self._empty_lines,
            self._wrongly_decoded_lines,
            any_unknown=bool(self._n_with_unknown),
        )
        yield from _duplicate_warnings(duplicates)
        yield from self._split_warnings()
        yield from self._fold_warnings()
        yield from label_name_warnings(list(counts), self.tree.parents)
        yield from _label_count_warnings(counts, self.n_examples)
        yield from self._unknown_warnings()
        yield from self._weight_warnings()
        yield from self._tree_warnings()
        if n_bad_records:
            yield f"rejected records: {n_bad_records:,}; they are not in the data set"

    def _split_warnings(self) -> Iterable[str]:
        used = [name for name in ("train", "validation", "test") if self._splits[name]]
        if not used:
            return
        if "train" not in used:
            yield (
                f"every example with a split is in the {' or '.join(used)} split; "
                "there are no training examples"
            )
            return
        if self._splits["none"]:
            others = ", validation" if "validation" in used else ""
            yield (
                f"examples without a split: {self._splits['none']:,}; the others are in train{others} or test"
            )
        unseen = [name for name, count in self.label_counts.items() if count and not self._train_counts[name]]
        if unseen:
            yield (
                "labels without an example in the training split, which no model can learn: "
                f"{join_first(sorted(unseen))}"
            )

    def _fold_warnings(self) -> Iterable[str]:
        if missing := self.n_examples - self._folds.total() if self._folds else 0:
            yield f"examples without a fold: {missing:,}; the others have one, so the folds cannot be used"

    def _unknown_warnings(self) -> Iterable[str]:
        if not self._n_with_unknown:
            return
        yield (
            f"examples with unknown labels: {self._n_with_unknown:,} of {self.n_examples:,} "
            f"({join_first(sorted(self._unknown_counts))}); only learners that train one label at a time "
            "can use the data set"
        )
        without_negative = [
            name
            for name, unknown in self._unknown_counts.items()
            if self.label_counts[name] and self.label_counts[name] + unknown == self.n_examples
        ]
        if without_negative:
            yield (
                "labels without a negative example, because they are unknown for every other example: "
                f"{join_first(sorted(without_negative))}"
            )

    def _weight_warnings(self) -> Iterable[str]:
        if self._n_weighted:
            yield (
                f"examples with a weight: {self._n_weighted:,} of {self.n_examples:,} "
                f"(from {self._smallest_weight:g} to {self._largest_weight:g}); only learners with "
                "a meaning for weights can use the data set, and measures count every example once"
            )

    def _tree_warnings(self) -> Iterable[str]:
        if self.tree.labels:
            outside = self.label_counts.keys() - set(self.tree.labels) - self._declared
            if outside:
                yield f"labels that are not in the label tree: {join_first(sorted(outside))}"


def _is_wrongly_decoded(text: str) -> bool:
    if text.isascii():
        return False
    # Substring searches are many times faster than the pattern, and few texts contain one of these.
    if not (
        "Ã" in text
        or "â€" in text
        or "\ufffd" in text
        or "\x92" in text
        or "\x93" in text
        or "\x94" in text
        or "\x96" in text
        or "\x85" in text
    ):
        return False
    return _WRONGLY_DECODED.search(text) is not None


def _is_empty(record: Record) -> bool:
    if record.features is not None:
        return not any(record.features.values())
    if record.email is not None and record.email.raw is not None:
        return not record.email.raw or record.email.raw.isspace()
    return all(not part or part.isspace() for part in _texts(record))


def _texts(record: Record) -> tuple[str, ...]:
    """Return the decoded texts of a document; none for raw messages and numeric documents."""
    if record.text is not None:
        return (record.text,)
    if record.email is not None and record.email.raw is None:
        return (record.email.subject, record.email.text, record.email.html)
    return ()


def _document_warnings(
    n_examples: int,
    n_unlabelled: int,
    empty: Sequence[int],
    wrongly_decoded: Sequence[int],
    *,
    any_unknown: bool,
) -> Iterable[str]:
    if n_unlabelled == n_examples:
        yield "no example has a label; the data set is only suitable for batch predictions"
    elif n_unlabelled:
        yield (
            f"examples without a label: {n_unlabelled:,} of {n_examples:,}; "
            f"they are negative examples of every label{' that is not unknown' if any_unknown else ''}"
        )
    if empty:
        yield f"empty documents: {len(empty):,} ({_join_lines(empty)})"
    if wrongly_decoded:
        yield (
            "documents with signs of a wrong character encoding, such as Ã¼ instead of ü: "
            f"{len(wrongly_decoded):,} ({_join_lines(wrongly_decoded)})"
        )


def _duplicate_warnings(duplicates: Duplicates) -> Iterable[str]:
    if duplicates.n_duplicates:
        yield f"documents that are equal to an earlier document: {duplicates.n_duplicates:,}"
    if duplicates.n_conflicting:
        pairs = ", ".join(f"lines {first} and {other}" for first, other in duplicates.conflicting_lines)
        yield f"equal documents with different labels: {duplicates.n_conflicting:,} ({pairs})"
    yield from duplicates.leaks()


def _label_count_warnings(counts: dict[str, int], n_examples: int) -> Iterable[str]:
    unused = [name for name, count in counts.items() if not count]
    few = [name for name, count in counts.items() if 0 < count < FEW_EXAMPLES]
    everywhere = [name for name, count in counts.items() if count == n_examples]
    if unused:
        yield f"labels without an example: {join_first(sorted(unused))}"
    if few:
        yield (
            f"labels with fewer than {FEW_EXAMPLES} examples, too few for training and evaluation: "
            f"{join_first(sorted(few))}"
        )
    if everywhere:
        yield f"labels that every example has, which carry no information: {join_first(sorted(everywhere))}"
    used = {name: count for name, count in counts.items() if count}
    if len(used) < 2:
        return
    most, least = max(used, key=used.__getitem__), min(used, key=used.__getitem__)
    if _FREQUENT_FRACTION * n_examples < used[most] < n_examples:
        yield f"the label {quoted(most)} applies to {used[most] / n_examples:.0%} of all examples"
    if used[most] >= _IMBALANCE_RATIO * used[least]:
        yield (
            f"the labels are imbalanced: {quoted(most)} has {used[most]:,} examples, "
            f"{quoted(least)} has {used[least]:,}; use macro-averaged measures"
        )


def _join_lines(lines: Sequence[int]) -> str:
    shown = ", ".join(map(str, lines[:_MAX_LISTED]))
    return (
        f"line {shown}" if len(lines) == 1 else f"lines {shown}{', ...' if len(lines) > _MAX_LISTED else ''}"
    )
