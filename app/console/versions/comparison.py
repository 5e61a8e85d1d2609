"""Compare versions of a model: measures, parameters, and data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.api.schemas import JsonObject
from app.evaluations.schemas import PartEvaluation
from app.registry.schemas import ModelVersion
from models.measures.directions import DIRECTIONS, is_better

MAX_VERSIONS = 4
"""Maximum number of versions side by side."""

MAX_LABELS = 30
"""Maximum number of labels in a list of changes."""


@dataclass(frozen=True)
class ComparedVersion:
    """A version with what is known about its training.

    Attributes:
        version: the version.
        request: the request of its training, with defaults; empty if the job is unknown.
        train: its evaluation on the training examples; None if it was not evaluated.
        test: its evaluation on held-out examples; None if there is none.
    """

    version: ModelVersion
    request: JsonObject = field(default_factory=dict)
    train: PartEvaluation | None = None
    test: PartEvaluation | None = None

    @property
    def measures(self) -> Mapping[str, float]:
        """The measures on held-out examples; those on training examples if none were held out.

        Numbers of examples, such as ``n_examples``, are not measures.
        """
        metrics = self.version.metrics
        if metrics is None:
            return {}
        measured = metrics.test if metrics.test is not None else metrics.train
        return {name: value for name, value in measured.items() if not name.startswith("n_")}

    @property
    def is_held_out(self) -> bool:
        """Whether the measures are of held-out examples."""
        return self.version.metrics is not None and self.version.metrics.test is not None


@dataclass(frozen=True)
class MeasureRow:
    """A measure of several versions.

    Attributes:
        name: the measure.
        values: its value for each version; None if the version does not have it.
        best: positions of the best values; empty if all are equal.
        difference: the first value minus the last one, for two versions.
    """

    name: str
    values: Sequence[float | None]
    best: Sequence[int]
    difference: float | None


def measure_rows(versions: Sequence[ComparedVersion]) -> list[MeasureRow]:
    """Return the measures that some version has."""
    names = dict.fromkeys(name for item in versions for name in item.measures)
    return [_measure_row(name, [item.measures.get(name) for item in versions]) for name in names]


def _measure_row(name: str, values: Sequence[float | None]) -> MeasureRow:
    known = [value for value in values if value is not None]
    best = [
        i
        for i, value in enumerate(values)
        if value is not None
        and name.partition(".")[0] in DIRECTIONS  # an imported version can have other measures
        and not any(is_better(name, other, value) for other in known)
    ]
    first, last = values[0], values[-1]
    both = len(values) == 2 and first is not None and last is not None
    return MeasureRow(
        name,
        values,
        best if len(set(known)) > 1 else [],
        first - last if both and first is not None and last is not None else None,
    )


@dataclass(frozen=True)
class Change:
    """A value that differs between versions.

    Attributes:
        name: its name, such as ``learner.rounds``.
        values: its value in each version as text; ``–`` if a version does not have it.
    """

    name: str
    values: Sequence[str]


def parameter_changes(versions: Sequence[ComparedVersion]) -> list[Change]:
    """Return the parameters of the trainings that differ."""
    return _changes([_parameters(item) for item in versions])


def _parameters(item: ComparedVersion) -> dict[str, str]:
    version = item.version
    values: dict[str, Any] = {
        "learner": version.learner,
        "features": version.features,
        "decision": version.decision,
        "seed": version.seed,
    }
    values |= {name: item.request[name] for name in ("split", "keep_labels") if name in item.request}
    return dict(_leaves(values))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from _leaves(part, f"{path}.{name}" if path else name)
    else:
        yield path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _changes(columns: Sequence[Mapping[str, str]]) -> list[Change]:
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [Change(name, [column.get(name, "–") for column in columns]) for name in names]
    return [row for row in rows if len(set(row.values)) > 1]


@dataclass(frozen=True)
class LabelChange:
    """A label whose number of training examples differs.

    Attributes:
        label: the label.
        counts: number of training examples in each version; None if a version does not have the label, and
            0 if the numbers are unknown.
    """

    label: str
    counts: Sequence[int | None]


@dataclass(frozen=True)
class DataComparison:
    """The differences between the data of versions.

    Attributes:
        same_content: whether all versions were trained on the same content of a data set; None if unknown.
        examples: number of training examples of each version; None if unknown.
        held_out: number of held-out examples of each version; None if unknown.
        labels: the labels that differ most, the largest differences first.
        more_labels: number of further labels that differ.
    """

    same_content: bool | None
    examples: Sequence[int | None]
    held_out: Sequence[int | None]
    labels: Sequence[LabelChange]
    more_labels: int


def data_comparison(versions: Sequence[ComparedVersion]) -> DataComparison:
    """Compare the data of versions."""
    digests = {item.version.dataset_sha256 for item in versions}
    columns = _label_counts(versions)
    changes = []
    for label in sorted({label for column in columns for label in column}):
        counts = [column.get(label) for column in columns]
        if len(set(counts)) > 1:
            changes.append(LabelChange(label, counts))
    changes.sort(key=lambda change: -_spread(change.counts))
    return DataComparison(
        same_content=None if None in digests else len(digests) == 1,
        examples=[_n_examples(item.train) for item in versions],
        held_out=[_n_examples(item.test) for item in versions],
        labels=changes[:MAX_LABELS],
        more_labels=max(0, len(changes) - MAX_LABELS),
    )


def _label_counts(versions: Sequence[ComparedVersion]) -> list[dict[str, int]]:
    """Return the number of training examples by label; 0 for all labels if some numbers are unknown."""
    trained = [item.train for item in versions if item.train is not None]
    if len(trained) < len(versions):
        return [dict.fromkeys(item.version.labels, 0) for item in versions]
    return [{row.label: row.tp + row.fn for row in part.labels} for part in trained]


def _spread(counts: Sequence[int | None]) -> int:
    known = [count or 0 for count in counts]
    return max(known) - min(known)


def _n_examples(part: PartEvaluation | None) -> int | None:
    if part is None or not part.labels:
        return None
    first = part.labels[0]
    return first.tp + first.fp + first.fn + first.tn
