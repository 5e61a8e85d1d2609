"""Write the model card of a version as Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from app.console.versions.comparison import ComparedVersion
from app.console.versions.decision import chosen
from app.console.versions.evaluation import label_table
from app.datasets.schemas import Dataset
from app.evaluations.schemas import PartEvaluation
from app.pages.markdown import escape
from app.pages.measures import measure_title
from app.registry.schemas import AliasChange


def render(item: ComparedVersion, dataset: Dataset | None, history: Sequence[AliasChange]) -> str:
    """Return the card.

    Args:
        item: the version with its training and its evaluation.
        dataset: the data set that it was trained on; None if it is unknown.
        history: the last changes of the alias ``live``, newest first.
    """
    version = item.version
    algorithm = version.learner.get("algorithm", "unknown")
    lines = [
        f"# Model card: {escape(version.model)}, version {version.version}",
        "",
        f"A multilabel classifier of the learner `{algorithm}` with {len(version.labels):,} labels.",
        "It predicts a set of labels for a document, for example the departments of a message.",
        "",
        *_list(_facts(item)),
        "",
        "## Training data",
        "",
        *_list(_data(item, dataset)),
        "",
        "## Measures",
        "",
        *_measures(item),
        "",
        "## Labels",
        "",
        *_labels(item),
        "",
        "## Parameters",
        "",
        *_json("Learner", version.learner),
        *_json("Features", version.features),
        *_json("Decision", version.decision),
        "## Limitations",
        "",
        *_list(_limitations(item)),
        "",
        "## History of `live`",
        "",
        *(_list(_changes(history)) if history else ["The alias has not changed."]),
        "",
        "## Software",
        "",
        *_list(f"{escape(name)} {escape(number)}" for name, number in version.software.items()),
        "",
    ]
    return "\n".join(lines)


def _list(items: Any) -> list[str]:
    return [f"- {item}" for item in items]


def _facts(item: ComparedVersion) -> Iterator[str]:
    version = item.version
    yield f"Created: {version.created_at:%Y-%m-%d %H:%M} UTC"
    yield f"Aliases: {', '.join(map(escape, version.aliases)) or 'none'}"
    if version.decision_report is not None and (label_sets := chosen(version.decision_report)):
        yield f"Label sets: {label_sets}"
    yield f"Probabilities: {'calibrated' if version.calibrated else 'none'}"
    if version.training_job_id is not None:
        yield f"Training job: `{version.training_job_id}`, seed {version.seed}"
    elif version.lineage is not None:
        lineage = version.lineage
        yield f"Partial fit of version {lineage.parent_version} with {lineage.examples:,} examples"
    else:
        yield "Imported"
    yield f"Artifact: {version.artifact.size_bytes:,} bytes, SHA-256 `{version.artifact.sha256}`"


def _data(item: ComparedVersion, dataset: Dataset | None) -> Iterator[str]:
    version = item.version
    if dataset is not None:
        yield f"Data set: {escape(dataset.name)} (`{dataset.id}`)"
        if dataset.n_examples is not None:
            yield f"Examples: {dataset.n_examples:,}, of the kind {dataset.kind}"
        if dataset.label_cardinality is not None:
            yield f"Labels per example: {dataset.label_cardinality:.2f} on average"
    elif version.dataset_id is None:
        yield "Data set: unknown, deleted or imported"
    if version.dataset_sha256 is not None:
        yield f"Content: SHA-256 `{version.dataset_sha256}`"
    if "split" in item.request:
        yield f"Split: `{json.dumps(item.request['split'])}`"


def _measures(item: ComparedVersion) -> list[str]:
    metrics = item.version.metrics
    if metrics is None or not (metrics.train or metrics.test):
        return ["This version was not measured."]
    test = metrics.test or {}
    lines = ["| measure | held-out examples | training examples |", "|---|---:|---:|"]
    for name in dict.fromkeys([*test, *metrics.train]):
        values = (f"{column[name]:.4f}" if name in column else "" for column in (test, metrics.train))
        lines.append(f"| {escape(measure_title(name))} | {' | '.join(values)} |")
    return lines


def _labels(item: ComparedVersion) -> list[str]:
    part: PartEvaluation | None = item.test or item.train
    if part is None:
        return _list(map(escape, item.version.labels))
    lines = [
        f"Measured on {'held-out' if item.test is not None else 'training'} examples.",
        "",
        "| label | examples | precision | recall | F1 | threshold |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    thresholds = item.version.thresholds
    for row in label_table(part, thresholds, max_rows=None).rows:
        threshold = "" if thresholds is None else "never" if row.threshold is None else f"{row.threshold:.4g}"
        lines.append(
            f"| {escape(row.label)} | {row.examples:,} | {row.precision:.3f} | {row.recall:.3f} "
            f"| {row.f1:.3f} | {threshold} |"
        )
    return lines


def _json(title: str, value: Any) -> list[str]:
    return [f"{title}:", "", "```json", json.dumps(value, indent=2, ensure_ascii=False), "```", ""]


def _limitations(item: ComparedVersion) -> Iterator[str]:
    version = item.version
    yield "Measures hold for documents like those of the data set. Watch the drift of the router's report."
    if not item.is_held_out:
        yield "No examples were held out, so the measures are too optimistic."
    if version.thresholds is not None and len(version.thresholds) < len(version.labels):
        missing = len(version.labels) - len(version.thresholds)
        yield f"{missing:,} labels are never predicted, because they have no threshold."
    if not version.calibrated:
        yield "There are no probabilities, so routers cannot send doubtful messages to a review."
    yield from map(escape, version.warnings)


def _changes(history: Sequence[AliasChange]) -> Iterator[str]:
    for change in history:
        before = "none" if change.from_version is None else change.from_version
        after = "none" if change.to_version is None else change.to_version
        yield f"{change.changed_at:%Y-%m-%d %H:%M} UTC: {before} → {after} ({change.reason})"
