"""Measure whether the probabilities of versions are true, on every corpus.

    python -m benchmarks.calibration [--corpus NAME ...] [--learner NAME ...] [--split given|stratified ...]
        [--seeds N] [--scores FOLDER]

Each learner is trained on the training part with the decision ``auto``, and its probabilities are compared
with the label sets of the test part. The goals are an expected calibration error of at most .035 for pairs of
a document and a label with p > .1, and of at most .05 for label sets.

Values are means over seeds, which draw the folds and the random numbers of the learner. The split "given" is
the corpus' own; "stratified" is one with a test part of the same size, in which every label is about as
frequent as in the training part. Stores the results after each
learner and split, and writes the tables and which goals are met into ``docs/learners.md``. ``--scores`` is a
folder that keeps scores, so that another run needs no training. ``COVEY_DATA`` is the folder of the corpora
(default: ``../shared/data``).
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # must be set before NumPy starts its threads

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from benchmarks import tables
from benchmarks.calibration_scores import LEARNERS, Scored, scored
from benchmarks.multilabel_corpora import CORPORA
from benchmarks.papers import intervals
from benchmarks.tables import Result, figure
from models.arrays import Bools, Floats, Labels
from models.calibration import fit_calibration, fit_label_calibration
from models.catalog import DECISION_PARAMETERS
from models.decisions import N_FOLDS, HeldOut
from models.decisions.auto import LabelSetSizes
from models.decisions.tune import fit_decision
from models.measures.calibration import LEAST_PROBABILITY, N_BINS, expected_calibration_error, probable
from models.measures.probabilities import evaluate_label_probabilities, evaluate_set_probabilities
from models.splits import stratified_folds

NAME = "calibration"
PAGE = tables.DOCS / "learners.md"
GOALS = {"pairs": 0.035, "sets": 0.05}
SPLITS = ("given", "stratified")
RECOMMENDED = ("svm", "mp_boost")
"""The learners that are measured on every corpus."""

DETAILS = {
    "pairs": "pairs",
    "pairs_chance": "by chance",
    "refitted": "refitted",
    "sigmoid": "sigmoid",
    "sets": "sets",
    "sets_chance": "by chance",
    "smallest": "smallest p",
    "brier_score": "Brier",
    "log_loss": "log loss",
    "coverage_at_precision_95": "95 %",
    "coverage_at_precision_99": "99 %",
}
"""The values of a result, with the headings of the last table."""


def measure(corpus: str, learner: str, how: str, seeds: range, folder: Path | None) -> Result:
    """Return the means over seeds, and the intervals of the calibration errors."""
    values: list[dict[str, float]] = []
    errors: dict[str, list[Floats]] = {goal: [] for goal in GOALS}
    for seed, found in zip(seeds, scored(corpus, learner, how, seeds, folder), strict=True):
        predicted, p, of_sets = probabilities(found)
        right = (predicted == found.relevant).all(axis=1)
        values.append(measure_probabilities(found, predicted, p, of_sets, seed))
        counts = intervals.resamples(len(right), seed=0)
        errors["pairs"].append(resampled_errors(p, found.relevant, counts, least=LEAST_PROBABILITY))
        errors["sets"].append(resampled_errors(of_sets[:, np.newaxis], right[:, np.newaxis], counts))
    means = {name: round(float(np.mean([each[name] for each in values])), 4) for name in values[0]}
    found_intervals = {goal: interval(np.mean(each, axis=0)) for goal, each in errors.items()}
    head = {"corpus": corpus, "split": how, "learner": learner, "seeds": len(seeds)}
    return {**head, **found_intervals, **means}


def probabilities(found: Scored) -> tuple[Bools, Floats, Floats]:
    """Return the predicted label sets of the test part, and the probabilities of labels and label sets."""
    held_out, k = found.held_out, found.test.shape[1]
    decision = fit_decision(
        DECISION_PARAMETERS.validate_python({"kind": "auto"}),
        held_out,
        found.learner,
        [str(j) for j in range(k)],
        LabelSetSizes.of(held_out.Y),
        calibrate=fit_label_calibration,
    )
    calibration = fit_calibration(held_out, decision.rule)
    assert calibration is not None, "all labels are known"
    predicted = decision.rule.predicted(found.test)
    return predicted, *calibration.probabilities(found.test, predicted)


def measure_probabilities(
    found: Scored, predicted: Bools, p: Floats, of_sets: Floats, seed: int
) -> dict[str, float]:
    """Return the values of ``DETAILS`` that have no interval."""
    relevant, sets = (csr_array(each.astype(np.int8)) for each in (found.relevant, predicted))
    sigmoid = 1.0 / (1.0 + np.exp(-np.clip(found.test, -500, 500)))
    smallest = np.where(predicted, p, 1.0 - p).min(axis=1)
    again = refit(found.test, relevant, seed)
    values = {
        **evaluate_label_probabilities(relevant, p).measures,
        **evaluate_set_probabilities(relevant, sets, of_sets).measures,
        "pairs_chance": error_by_chance(p[p > LEAST_PROBABILITY], seed),
        "sets_chance": error_by_chance(of_sets, seed),
        "refitted": expected_calibration_error(*probable(again.ravel(), found.relevant.ravel())),
        "sigmoid": expected_calibration_error(*probable(sigmoid.ravel(), found.relevant.ravel())),
        "smallest": expected_calibration_error(smallest, (predicted == found.relevant).all(axis=1)),
    }
    return {name: values[name] for name in DETAILS if name not in GOALS}


def refit(scores: Floats, Y: Labels, seed: int) -> Floats:
    """Return the probabilities of labels if they are fitted on the other folds of the test part itself."""
    folds = stratified_folds(Y, N_FOLDS, seed=seed)
    test = HeldOut(scores, Y, None, folds, tunable=Y.sum(axis=0) >= N_FOLDS)
    p = np.empty(scores.shape)
    for fold in range(N_FOLDS):
        calibration = fit_label_calibration(test.where(folds != fold))
        assert calibration is not None, "all labels are known"
        p[folds == fold] = calibration.label_probabilities(scores[folds == fold])
    return p


def error_by_chance(p: Floats, seed: int, n_draws: int = 20) -> float:
    """Return the mean calibration error of outcomes that are drawn with the probabilities themselves."""
    rng = np.random.default_rng(seed)
    draws = [rng.random(len(p)) < p for _ in range(n_draws)]
    return float(np.mean([expected_calibration_error(p, outcomes) for outcomes in draws]))


def resampled_errors(p: Floats, outcomes: Bools, counts: Floats, *, least: float = 0.0) -> Floats:
    """Return the expected calibration error for each row of ``counts``.

    Args:
        p: (n, k) probabilities of n documents.
        outcomes: (n, k) whether each came true.
        counts: (b, n) how often each document counts.
        least: probabilities up to this one are left out.

    >>> p, outcomes = np.array([[0.55, 0.65], [0.65, 0.05]]), np.array([[True, True], [False, False]])
    >>> counts = np.array([[1.0, 1.0], [2.0, 0.0]])
    >>> resampled_errors(p, outcomes, counts, least=0.1).round(3).tolist()
    [0.25, 0.4]
    """
    documents, labels = np.nonzero(p > least)
    probable_p, came_true = p[documents, labels], outcomes[documents, labels]
    bins = np.searchsorted(np.arange(1, N_BINS) / N_BINS, probable_p, side="left")
    gaps = np.bincount(
        documents * N_BINS + bins, weights=probable_p - came_true, minlength=len(p) * N_BINS
    ).reshape(len(p), N_BINS)
    sizes = np.bincount(documents, minlength=len(p))
    errors: Floats = np.abs(counts @ gaps).sum(axis=1) / np.maximum(counts @ sizes, 1.0)
    return errors


def interval(errors: Floats) -> dict[str, float]:
    """Return the first error, and the interval of the others around it.

    Resampling adds an error by chance to each resampled one, so that their mean is above the first error.
    The interval is moved down by this difference.
    """
    value, resampled = float(errors[0]), errors[1:]
    tail = (1 - intervals.LEVEL) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail]) - (resampled.mean() - value)
    return {"value": round(value, 4), "low": round(max(float(low), 0.0), 4), "high": round(float(high), 4)}


def rendered() -> dict[str, str]:
    """Return the tables of the page."""
    found = tables.stored(NAME)
    return {
        "calibration_goals": goals(found),
        "calibration_pairs": errors_by_corpus(found, "pairs"),
        "calibration_sets": errors_by_corpus(found, "sets"),
        "calibration_details": details(found),
    }


def goals(found: Sequence[Result]) -> str:
    """Return a table of how many corpora meet the goals."""
    rows = []
    for how in SPLITS:
        for learner in RECOMMENDED:
            results = _select(found, how, learner)
            met = {goal: sum(_met(result, goal) for result in results) for goal in GOALS}
            both = sum(all(_met(result, goal) for goal in GOALS) for result in results)
            missed = [
                f"{result['corpus']}{'' if _certain(result) else ' (?)'}"
                for result in results
                if not all(_met(result, goal) for goal in GOALS)
            ]
            counts = [f"{count} of {len(results)}" for count in (met["pairs"], met["sets"], both)]
            rows.append([f"`{learner}`", how, *counts, ", ".join(missed)])
    head = [f"{name} at most {figure(goal)}" for name, goal in GOALS.items()]
    return tables.markdown(["learner", "split", *head, "both", "missed"], rows)


def errors_by_corpus(found: Sequence[Result], goal: str) -> str:
    """Return a table of one of the calibration errors; those above the goal have an asterisk."""
    columns = [(learner, how) for learner in RECOMMENDED for how in SPLITS]
    cells = {
        (result["corpus"], learner, how): _cell(result, goal)
        for learner, how in columns
        for result in _select(found, how, learner)
    }
    rows = [
        [corpus, *(cells.get((corpus, *column), "") for column in columns)]
        for corpus in CORPORA
        if any((corpus, *column) in cells for column in columns)
    ]
    return tables.markdown([goal, *(f"`{learner}`, {how}" for learner, how in columns)], rows)


def details(found: Sequence[Result]) -> str:
    """Return a table of all values with the corpora's own splits."""
    rows = []
    for learner in LEARNERS:
        for result in _select(found, "given", learner):
            values = [result[name]["value"] if name in GOALS else result[name] for name in DETAILS]
            stars = ["*" * (name in GOALS and not _met(result, name)) for name in DETAILS]
            shown = [figure(value) + star for value, star in zip(values, stars, strict=True)]
            rows.append([f"`{learner}`", result["corpus"], *shown])
    return tables.markdown(["learner", "corpus", *DETAILS.values()], rows)


def _select(found: Sequence[Result], how: str, learner: str) -> list[Result]:
    """Return the results of a split and a learner in the order of the corpora."""
    results = {
        result["corpus"]: result
        for result in found
        if result["split"] == how and result["learner"] == learner
    }
    return [results[corpus] for corpus in CORPORA if corpus in results]


def _cell(result: Result, goal: str) -> str:
    error = result[goal]
    star = "" if _met(result, goal) else "*"
    return f"{figure(error['value'])}{star} [{figure(error['low'])}, {figure(error['high'])}]"


def _met(result: Result, goal: str) -> bool:
    return bool(result[goal]["value"] <= GOALS[goal])


def _certain(result: Mapping[str, Result]) -> bool:
    """Return whether the interval of an error is above its goal."""
    return any(result[goal]["low"] > GOALS[goal] for goal in GOALS)


def main() -> None:
    """Measure, store and show."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", nargs="*", default=list(CORPORA), choices=CORPORA)
    parser.add_argument("--learner", nargs="*", default=RECOMMENDED, choices=LEARNERS)
    parser.add_argument("--split", nargs="*", default=SPLITS, choices=SPLITS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--scores", type=Path)
    arguments = parser.parse_args()
    for corpus in arguments.corpus:
        for how in arguments.split:
            for learner in arguments.learner:
                result = measure(corpus, learner, how, range(arguments.seeds), arguments.scores)
                cells = ", ".join(f"{goal} {_cell(result, goal)}" for goal in GOALS)
                print(f"{corpus}, {how}, {learner}: {cells}", flush=True)
                tables.store(NAME, [result], ("corpus", "split", "learner"))
                tables.show(PAGE, rendered())
    print(rendered()["calibration_goals"])


if __name__ == "__main__":
    main()
