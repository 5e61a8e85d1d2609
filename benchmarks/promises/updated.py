"""Promises about versions that follow another one: partial fits, comparisons, and training on predictions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.promises import library
from benchmarks.promises.decided import CERTAIN
from benchmarks.promises.library import Cell, Trained
from benchmarks.recipes import quality
from benchmarks.tables import Result
from models.data.examples import Examples
from models.measures.calibration import expected_calibration_error
from models.pipeline import Pipeline

N_TEST = 1_000
"""Number of test documents; these measurements train more often than the others."""

N_TRIES = 10
N_COMPARED = 300
"""Number of test documents on which versions are compared. The others tell whether one is better."""


def partial_fit(cell: Cell) -> Result | None:
    """Return what partial fits on half as many further examples change, compared with a new training."""
    last = cell.size + cell.size // 2
    if last > len(cell.parts.order):
        return None
    test = cell.parts.with_test(N_TEST).test
    first, second = cell.parts.training(0, cell.size), cell.parts.training(cell.size, last)
    labels = {label for label_set in first.labels for label in label_set}
    second = second.where(np.array([labels.issuperset(each) for each in second.labels]))
    test = test.where(np.array([labels.issuperset(each) for each in test.labels]))
    both = Examples.concatenate([first, second])

    def measured(pipeline: Pipeline) -> Result:
        f1, wrong = quality(*library.label_sets(pipeline, test))
        return {"f1": [f1], "wrong": [wrong]}

    found: Result = {}
    for learner in library.INCREMENTAL:
        if cell.measurements and learner == "naive_bayes":  # it counts words
            continue
        before = library.incremental(learner, first, seed=cell.seed)
        found[learner] = {
            "before": measured(before),
            "after": measured(library.partial_fit(before, second)),
            "again": measured(library.incremental(learner, both, seed=cell.seed)),
        }
    return found


def if_better(cell: Cell) -> Result:
    """Return how often a version is promoted that is only another sample of the same examples.

    Each version is trained on examples that are drawn with replacement. All are compared with the live
    version on the same test documents, one after the other; a promoted version is the next live one.
    """
    trained = cell.trained
    rng = np.random.default_rng(cell.seed)
    versions = [
        trained.resampled(rng.multinomial(cell.size, np.full(cell.size, 1 / cell.size)))
        for _ in range(1 + N_TRIES)
    ]
    relevant = trained.relevant()
    live, promoted, no_better = versions[0], 0, 0
    compared = relevant[:N_COMPARED]
    for attempt, version in enumerate(versions[1:], start=1):
        pair = version.first(N_COMPARED), live.first(N_COMPARED)
        if library.is_promoted(*pair, compared, attempt=attempt):
            f1 = [
                quality(each.predicted[N_COMPARED:].toarray() != 0, relevant[N_COMPARED:])[0]
                for each in (version, live)
            ]
            promoted, no_better, live = promoted + 1, no_better + (f1[0] <= f1[1]), version
    return {
        "tries": N_TRIES,
        "promoted": promoted,
        "no_better": no_better,
        "with_promotion": int(promoted > 0),
    }


def self_training(cell: Cell) -> Result | None:
    """Return what as many further documents with their predicted labels change, and with their true labels.

    "routed" adds only those whose label set is certain, as a router that keeps what it routed.
    """
    if 2 * cell.size > len(cell.parts.order):
        return None
    first, further = cell.parts.training(0, cell.size), cell.parts.training(cell.size, 2 * cell.size)
    label_sets, certain = library.predictions(cell.trained.pipeline, further, CERTAIN)
    predicted = replace(further, labels=label_sets)
    few = replace(cell, parts=cell.parts.with_test(N_TEST))
    additions = {"predicted": predicted, "routed": predicted.where(certain), "true": further}
    found: Result = {"before": _routing(cell.trained)}
    for name, added in additions.items():
        found[name] = _routing(few.train(Examples.concatenate([first, added])))
    return found


def _routing(trained: Trained) -> Result:
    outcome, known = trained.outcome(), trained.known()
    if outcome is None:
        return {}
    outcome = outcome.where(known & (np.arange(len(known)) < N_TEST))
    routed = outcome.of_sets >= CERTAIN
    return {
        "documents": len(routed),
        "wrong": int((~outcome.right).sum()),
        "routed": int(routed.sum()),
        "routed_wrong": int((routed & ~outcome.right).sum()),
        "sets": [expected_calibration_error(outcome.of_sets, outcome.right)],
    }
