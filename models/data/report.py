"""What a person should know of a data set before training from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from models.data.examples import Kind
from models.data.record import Record
from models.errors import BadRecord
from models.labels import LabelTree


@dataclass(frozen=True)
class Report:
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
    label_tree: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    n_bad_records: int = 0
    bad_records: list[BadRecord] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The report as JSON's own types."""
        return asdict(self)


class Tally:
    """Counts examples as they pass.

    Args:
        tree: the label tree, empty without one.
    """

    def __init__(self, tree: LabelTree) -> None:
        self.tree = tree
        self.n_examples = 0
        self.kind: Kind = "text"
        self.label_counts: Counter[str] = Counter(dict.fromkeys(tree.labels, 0))
        self.remarks: list[str] = []
        self._n_unlabelled = 0
        self._splits = Counter(train=0, test=0, none=0)
        self._outside: set[str] = set()

    def declare(self, labels: Iterable[str]) -> None:
        """Labels that exist even without an example."""
        for name in labels:
            self.label_counts[name] += 0

    def add(self, record: Record, labels: Sequence[str]) -> None:
        """Count one example and its label set."""
        self.n_examples += 1
        self.kind = record.kind
        self.label_counts.update(labels)
        self._n_unlabelled += not labels
        self._splits[record.split or "none"] += 1

    def report(self, *, n_features: int, n_bad_records: int, bad_records: list[BadRecord]) -> Report:
        """The counts so far."""
        counts = dict(sorted(self.label_counts.items()))
        cardinality = sum(counts.values()) / max(self.n_examples, 1)
        return Report(
            kind=self.kind,
            n_examples=self.n_examples,
            n_labels=len(counts),
            label_counts=counts,
            label_cardinality=cardinality,
            label_density=cardinality / max(len(counts), 1),
            n_unlabelled=self._n_unlabelled,
            splits=dict(self._splits),
            n_features=n_features,
            label_tree=dict(self.tree.parents),
            warnings=list(self.remarks),
            n_bad_records=n_bad_records,
            bad_records=bad_records,
        )
