"""Everything there is to tell about a version's predictions for some examples, as one JSON value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from models.arrays import Floats, Labels
from models.data.examples import Examples
from models.data.store import StoredExamples
from models.labels.indicator_matrix import indicator_matrix
from models.measures.confusion import co_errors
from models.measures.evaluation import Evaluation
from models.measures.histograms import score_histograms
from models.measures.worst import worst_examples
from models.pipeline import Explanation, Pipeline

N_WORST = 10
MOST_CO_ERRORS = 200
MOST_EXPLAINED = 5
"""Labels of one document that are explained: the missed ones first."""


def measure_part(
    pipeline: Pipeline, part: StoredExamples, *, told: Callable[[], None] = lambda: None
) -> tuple[Evaluation, dict[str, Any]]:
    """Measure a version on a part of a data set.

    Args:
        pipeline: the version's.
        part: the examples.
        told: called now and then; may raise to end it.

    Returns:
        the measures, and all that is shown of them.
    """
    scores = _scores(pipeline, part, told)
    label_sets = part.label_sets()
    evaluation = pipeline.evaluate_scores(label_sets, scores)
    Y = indicator_matrix(label_sets, pipeline.labels_, pipeline.tree_)
    predicted = pipeline.decide(scores)
    labels = pipeline.labels_
    content: dict[str, Any] = {
        "measures": evaluation.measures,
        "labels": [asdict(row) for row in evaluation.labels],
        "histograms": [asdict(histogram) for histogram in score_histograms(Y, scores, labels)],
        "worst": _worst(pipeline, part, Y, predicted, scores),
        "warnings": evaluation.warnings,
    }
    if evaluation.confusion is not None:
        true, guessed = np.nonzero(evaluation.confusion)
        counts = evaluation.confusion[true, guessed]
        content["confusion"] = _pairs(labels, true, guessed, counts)
    else:
        errors = co_errors(Y, predicted).tocoo()
        most = np.lexsort((errors.col, errors.row, -errors.data))[:MOST_CO_ERRORS]
        content["co_errors"] = _pairs(labels, errors.row[most], errors.col[most], errors.data[most])
    return evaluation, content


def _scores(pipeline: Pipeline, part: StoredExamples, told: Callable[[], None]) -> Floats:
    scores = [np.empty((0, len(pipeline.labels_)))]
    for batch in part.batches():
        told()
        scores.append(pipeline.scores(batch.documents))
    return np.concatenate(scores)


def _pairs(labels: list[str], true: Any, given: Any, counts: Any) -> list[dict[str, Any]]:
    return [
        {"label": labels[i], "predicted": labels[j], "count": count}
        for i, j, count in zip(true.tolist(), given.tolist(), counts.tolist(), strict=True)
    ]


def _worst(
    pipeline: Pipeline, part: StoredExamples, Y: Labels, predicted: Labels, scores: Floats
) -> list[dict[str, Any]]:
    chosen = worst_examples(Y, predicted, scores, N_WORST)
    if not len(chosen):
        return []
    positions = part.positions()
    keep = np.zeros(part.n_examples, dtype=np.bool_)
    keep[chosen] = True
    documents = Examples.concatenate(list(part.where(keep).batches()))
    place = {example: i for i, example in enumerate(np.flatnonzero(keep).tolist())}
    told = []
    for example in chosen.tolist():
        one = np.zeros(documents.n_examples, dtype=np.bool_)
        one[place[example]] = True
        document = documents.where(one)
        true = set(Y.indices[Y.indptr[example] : Y.indptr[example + 1]].tolist())
        given = set(predicted.indices[predicted.indptr[example] : predicted.indptr[example + 1]].tolist())
        wrong = [*sorted(true - given), *sorted(given - true)]
        explained = wrong[:MOST_EXPLAINED] if pipeline.learner.can_explain else []
        names = pipeline.labels_
        told.append(
            {
                "id": document.ids[0],
                "position": int(positions[example]),
                "labels": [names[j] for j in sorted(true)],
                "predicted": [names[j] for j in sorted(given)],
                "scores": [
                    {"label": names[j], "score": float(scores[example, j])} for j in sorted(true | given)
                ],
                "explanation": [
                    _explained(pipeline.explain(document.documents, names[j])[0]) for j in explained
                ],
            }
        )
    return told


def _explained(explanation: Explanation) -> dict[str, Any]:
    terms = [{"term": term, "weight": weight} for term, weight in explanation.terms]
    return {"label": explanation.label, "terms": terms}
