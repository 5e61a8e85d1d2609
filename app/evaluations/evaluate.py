"""Evaluate a pipeline on a part of a data set; the result is one JSON value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from app.api.structs import to_builtins
from app.serving.explanations import label_explanations
from app.serving.instances import find_unknown_features
from models.arrays import Floats, Labels
from models.base.abilities import can_explain
from models.covering import Covering
from models.data.examples import Examples, is_fair_test
from models.data.record import quoted
from models.data.store import StoredExamples
from models.labels.indicator_matrix import indicator_matrix, unknown_matrix
from models.measures.confusion import co_errors
from models.measures.evaluation import Evaluation
from models.measures.histograms import score_histograms
from models.measures.unknown import without_unknown
from models.measures.worst import worst_examples
from models.pipeline import Pipeline, ScoredDocuments

N_WORST = 10
MAX_CO_ERRORS = 200
MAX_EXPLAINED = 5
"""Number of labels of a document that are explained, missed labels first."""


def evaluate_part(
    pipeline: Pipeline,
    part: StoredExamples,
    *,
    covering: Covering | None = None,
    on_batch: Callable[[int], None] = lambda _: None,
) -> tuple[Evaluation, dict[str, Any]]:
    """Evaluate a pipeline on a part of a data set.

    Args:
        pipeline: the fitted pipeline of a version.
        part: the examples.
        covering: the covering of ``covering_error`` and ``covering_loss``; None selects that of the learner,
            if it has one.
        on_batch: called before each batch of examples with the number of those that are scored; may raise an
            error to stop the evaluation.

    Returns:
        the measures, and the content of a ``PartEvaluation`` as JSON.
    """
    scored = _score(pipeline, part, on_batch)
    label_sets, unknown_sets = part.label_sets(), part.unknown_sets()
    evaluation = pipeline.evaluate_scores(label_sets, scored, unknown_sets=unknown_sets, covering=covering)
    labels = pipeline.labels_
    Y = indicator_matrix(label_sets, labels, pipeline.tree_)
    unknown = unknown_matrix(unknown_sets, Y, labels, pipeline.tree_)
    predicted, scores = pipeline.decide(scored), scored.scores
    histograms = score_histograms(Y, scores, labels, unknown)
    if unknown is not None:
        predicted, scores = without_unknown(predicted, scores, unknown)
    content: dict[str, Any] = {
        "measures": evaluation.measures,
        "labels": [asdict(row) for row in evaluation.labels],
        "histograms": [asdict(histogram) for histogram in histograms],
        "worst": _worst_documents(pipeline, part, Y, predicted, scores),
        "warnings": [*evaluation.warnings, *_unknown_features(pipeline, part), *_selected(part)],
    }
    if evaluation.reliability is not None:
        content["reliability"] = [asdict(bin_) for bin_ in evaluation.reliability]
    if evaluation.set_reliability is not None:
        content["label_set_reliability"] = [asdict(bin_) for bin_ in evaluation.set_reliability]
    if evaluation.coverage_curve is not None:
        content["coverage_curve"] = [asdict(point) for point in evaluation.coverage_curve]
    if evaluation.confusion is not None:
        true, predicted_first = np.nonzero(evaluation.confusion)
        counts = evaluation.confusion[true, predicted_first]
        content["confusion"] = _pairs(labels, true, predicted_first, counts)
    else:
        errors = co_errors(Y, predicted).tocoo()
        most = np.lexsort((errors.col, errors.row, -errors.data))[:MAX_CO_ERRORS]
        content["co_errors"] = _pairs(labels, errors.row[most], errors.col[most], errors.data[most])
    return evaluation, content


def _unknown_features(pipeline: Pipeline, part: StoredExamples) -> Iterator[str]:
    unknown = find_unknown_features(pipeline, part.feature_names)
    if unknown is not None:
        more = ", ..." if unknown.count > len(unknown.names) else ""
        yield (
            f"features that the model does not know: {unknown.count:,} "
            f"({', '.join(map(quoted, unknown.names))}{more}); they were ignored, so check that the training "
            "data has the same names"
        )


def _selected(part: StoredExamples) -> Iterator[str]:
    if n_selected := int((~is_fair_test(part.selections())).sum()):
        yield (
            f"examples that the doubt or a mistake of a version selected for a review: {n_selected:,} of "
            f"{part.n_examples:,}; that version seems worse on them than it is, so do not compare versions"
        )


def _score(pipeline: Pipeline, part: StoredExamples, on_batch: Callable[[int], None]) -> ScoredDocuments:
    parts = []
    n_scored = 0
    for batch in part.batches():
        on_batch(n_scored)
        parts.append(pipeline.scored(batch.documents))
        n_scored += batch.n_examples
    return ScoredDocuments.concatenate(parts, len(pipeline.labels_))


def _pairs(labels: list[str], true: Any, predicted: Any, counts: Any) -> list[dict[str, Any]]:
    return [
        {"label": labels[i], "predicted": labels[j], "count": count}
        for i, j, count in zip(true.tolist(), predicted.tolist(), counts.tolist(), strict=True)
    ]


def _worst_documents(
    pipeline: Pipeline, part: StoredExamples, Y: Labels, predicted: Labels, scores: Floats
) -> list[dict[str, Any]]:
    chosen = worst_examples(Y, predicted, scores, N_WORST)
    if not len(chosen):
        return []
    positions = part.positions()
    keep = np.zeros(part.n_examples, dtype=np.bool_)
    keep[chosen] = True
    documents = Examples.concatenate(list(part.where(keep).batches()))
    index = {example: i for i, example in enumerate(np.flatnonzero(keep).tolist())}
    worst = []
    for example in chosen.tolist():
        mask = np.zeros(documents.n_examples, dtype=np.bool_)
        mask[index[example]] = True
        document = documents.where(mask)
        true = set(Y.indices[Y.indptr[example] : Y.indptr[example + 1]].tolist())
        assigned = set(predicted.indices[predicted.indptr[example] : predicted.indptr[example + 1]].tolist())
        wrong = [*sorted(true - assigned), *sorted(assigned - true)]
        explained = wrong[:MAX_EXPLAINED] if can_explain(pipeline.learner_) else []
        names = pipeline.labels_
        worst.append(
            {
                "id": document.ids[0],
                "position": int(positions[example]),
                "labels": [names[j] for j in sorted(true)],
                "predicted": [names[j] for j in sorted(assigned)],
                "scores": [
                    {"label": names[j], "score": float(scores[example, j])} for j in sorted(true | assigned)
                ],
                "explanation": to_builtins(
                    label_explanations(pipeline.explain(document.documents, names[j])[0] for j in explained)
                ),
            }
        )
    return worst
