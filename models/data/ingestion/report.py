"""What a person should know of a data set before training from it."""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from models.data.examples import Kind
from models.data.ingestion.duplicates import DuplicateFinder, Duplicates
from models.data.record import Record, quoted
from models.errors import BadRecord
from models.labels import LabelTree

FEW_EXAMPLES = 5
"""A label with fewer examples than this is warned of."""

_SHOWN = 5
_NEARLY_ALL = 0.9
_IMBALANCE = 100
# The replacement character, C1 controls, and UTF-8 that was once read as Latin-1 or Windows-1252.
_MISREAD = re.compile("[\ufffd\x80-\x9f]|Ã[\xa0-\xbf‚ƒ„…†‡ˆ‰Š‹Œ‘’“”•–—˜™š›œŸ]|â€")


@dataclass(frozen=True)
class DatasetReport:
    """Counts of a data set, and what looks wrong with it.

    Attributes:
        kind: what its documents are.
        n_examples: examples kept.
        n_labels: distinct labels, those that the file or the tree declares without an example included.
        label_counts: examples of each label, in label order.
        label_cardinality: labels of an example, on average.
        label_density: the same divided by the number of labels.
        n_unlabelled: examples without a label.
        splits: examples of the ``train`` and ``test`` parts and of ``none``.
        n_features: distinct features of numeric data; 0 for others.
        n_empty: documents without any content.
        n_duplicates: documents that are the same as an earlier one.
        n_conflicting: those of them whose labels are not the earlier one's.
        label_tree: child to parent; empty without a tree.
        warnings: sentences that name what to look at.
        n_bad_records: records that were refused.
        bad_records: the first 20 of them.
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
    n_empty: int = 0
    n_duplicates: int = 0
    n_conflicting: int = 0
    label_tree: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    n_bad_records: int = 0
    bad_records: list[BadRecord] = field(default_factory=list)

    def by_frequency(self) -> list[tuple[str, int]]:
        """Labels and their examples, the most frequent first; ties in label order."""
        return sorted(self.label_counts.items(), key=lambda item: -item[1])

    def to_json(self) -> dict[str, Any]:
        """The report as JSON's own types."""
        return asdict(self)


class ReportBuilder:
    """Counts examples as they pass.

    Args:
        tree: the label tree, empty without one.

    Attributes:
        tree: the same; may be replaced before the first example.
        n_examples: examples counted so far.
        kind: of the last example.
        label_counts: examples of each label.
        remarks: what the reader has to say.
    """

    def __init__(self, tree: LabelTree) -> None:
        self.tree = tree
        self.n_examples = 0
        self.kind: Kind = "text"
        self.label_counts: Counter[str] = Counter(dict.fromkeys(tree.labels, 0))
        self.remarks: list[str] = []
        self._train_counts: Counter[str] = Counter()
        self._declared: set[str] = set()
        self._n_unlabelled = 0
        self._splits = Counter(train=0, test=0, none=0)
        self._empty = array("Q")
        self._misread = array("Q")
        self._duplicates = DuplicateFinder()

    def declare(self, labels: Iterable[str]) -> None:
        """Labels that exist even without an example."""
        for name in labels:
            self.label_counts[name] += 0
            self._declared.add(name)

    def add(self, record: Record, labels: Sequence[str]) -> None:
        """Count one example and its label set."""
        self.n_examples += 1
        self.kind = record.kind
        self.label_counts.update(labels)
        if record.split == "train":
            self._train_counts.update(labels)
        self._n_unlabelled += not labels
        self._splits[record.split or "none"] += 1
        if _is_empty(record):
            self._empty.append(record.line)
        if any(map(_is_misread, _texts(record))):
            self._misread.append(record.line)
        self._duplicates.add(record, labels)

    def report(self, *, n_features: int, n_bad_records: int, bad_records: list[BadRecord]) -> DatasetReport:
        """The counts so far, and the warnings that follow from them."""
        counts = dict(sorted(self.label_counts.items()))
        cardinality = sum(counts.values()) / max(self.n_examples, 1)
        duplicates = self._duplicates.found()
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
            n_empty=len(self._empty),
            n_duplicates=duplicates.n_duplicates,
            n_conflicting=duplicates.n_conflicting,
            label_tree=dict(self.tree.parents),
            warnings=[
                *self.remarks,
                *_about_documents(self.n_examples, self._n_unlabelled, self._empty, self._misread),
                *_about_duplicates(duplicates),
                *self._about_parts(),
                *_about_names(list(counts)),
                *_about_counts(counts, self.n_examples),
                *self._about_tree(),
                *([f"{n_bad_records:,} records were refused and left out"] if n_bad_records else []),
            ],
            n_bad_records=n_bad_records,
            bad_records=bad_records,
        )

    def _about_parts(self) -> Iterable[str]:
        n_train, n_test = self._splits["train"], self._splits["test"]
        if not n_train and not n_test:
            return
        if n_test and not n_train:
            yield "every example with a split is in the test part; there is nothing to train from"
            return
        if self._splits["none"]:
            yield f"{self._splits['none']:,} examples are in neither part, the others in train or test"
        unseen = [name for name, count in self.label_counts.items() if count and not self._train_counts[name]]
        if unseen:
            yield (
                f"labels without an example in the training part, which no model can learn: {_some(unseen)}"
            )

    def _about_tree(self) -> Iterable[str]:
        if self.tree.labels:
            outside = self.label_counts.keys() - set(self.tree.labels) - self._declared
            if outside:
                yield f"labels that are not in the label tree: {_some(outside)}"


def _is_misread(text: str) -> bool:
    if text.isascii():
        return False
    # A substring is found many times sooner than a pattern, and hardly any text has one of these.
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
    return _MISREAD.search(text) is not None


def _is_empty(record: Record) -> bool:
    if record.features is not None:
        return not any(record.features.values())
    if record.email is not None and record.email.raw is not None:
        return not record.email.raw.strip()
    return all(not part or part.isspace() for part in _texts(record))


def _texts(record: Record) -> tuple[str, ...]:
    """The text of a document as far as it is decoded."""
    if record.text is not None:
        return (record.text,)
    if record.email is not None and record.email.raw is None:
        return (record.email.subject, record.email.text, record.email.html)
    return ()


def _about_documents(
    n_examples: int, n_unlabelled: int, empty: Sequence[int], misread: Sequence[int]
) -> Iterable[str]:
    if n_unlabelled:
        yield f"{n_unlabelled:,} of {n_examples:,} examples have no label; they count against every label"
    if empty:
        yield f"{len(empty):,} documents are empty: {_lines(empty)}"
    if misread:
        yield (
            f"{len(misread):,} documents look as if they were decoded wrongly once (such as Ã¼ for ü): "
            f"{_lines(misread)}"
        )


def _about_duplicates(duplicates: Duplicates) -> Iterable[str]:
    if duplicates.n_duplicates:
        yield f"{duplicates.n_duplicates:,} documents are the same as an earlier one"
    if duplicates.n_conflicting:
        pairs = ", ".join(f"lines {first} and {other}" for first, other in duplicates.conflicts)
        yield f"{duplicates.n_conflicting:,} of those have other labels than the earlier one: {pairs}"
    if duplicates.n_in_both_splits:
        yield (
            f"{duplicates.n_in_both_splits:,} documents of the test part are also in the training part; "
            "measures will be too good"
        )


def _about_names(labels: Sequence[str]) -> Iterable[str]:
    alike: dict[str, list[str]] = defaultdict(list)
    for name in labels:
        folded = unicodedata.normalize("NFKC", name).casefold()
        alike["".join(folded.split())].append(name)
    groups = [" and ".join(map(repr, names)) for names in alike.values() if len(names) > 1]
    if groups:
        more = f", and {len(groups) - _SHOWN:,} more" if len(groups) > _SHOWN else ""
        yield f"labels that differ only by case or spaces: {'; '.join(groups[:_SHOWN])}{more}"


def _about_counts(counts: dict[str, int], n_examples: int) -> Iterable[str]:
    unused = [name for name, count in counts.items() if not count]
    few = [name for name, count in counts.items() if 0 < count < FEW_EXAMPLES]
    everywhere = [name for name, count in counts.items() if count == n_examples]
    if unused:
        yield f"labels without an example: {_some(unused)}"
    if few:
        yield f"labels with fewer than {FEW_EXAMPLES} examples, too few to learn or to measure: {_some(few)}"
    if everywhere:
        yield f"labels that every example has, which tell nothing: {_some(everywhere)}"
    used = {name: count for name, count in counts.items() if count}
    if len(used) < 2:
        return
    most, least = max(used, key=used.__getitem__), min(used, key=used.__getitem__)
    if _NEARLY_ALL * n_examples < used[most] < n_examples:
        yield f"the label {quoted(most)} stands on {used[most] / n_examples:.0%} of all examples"
    if used[most] >= _IMBALANCE * used[least]:
        yield (
            f"labels are far from balanced: {quoted(most)} has {used[most]:,} examples, "
            f"{quoted(least)} {used[least]:,}; look at macro measures"
        )


def _some(names: Iterable[str]) -> str:
    """The first few names and how many there are."""
    ordered = sorted(names)
    more = f", and {len(ordered) - _SHOWN:,} more" if len(ordered) > _SHOWN else ""
    return ", ".join(map(quoted, ordered[:_SHOWN])) + more


def _lines(lines: Sequence[int]) -> str:
    shown = ", ".join(map(str, lines[:_SHOWN]))
    return f"line {shown}" if len(lines) == 1 else f"lines {shown}{', ...' if len(lines) > _SHOWN else ''}"
