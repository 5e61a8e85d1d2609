"""The calibration errors of each learner's probabilities with ``auto``.

The goals are an expected calibration error of at most .035 for pairs of a document and a label with p > .1,
and of at most .05 for label sets. Values are means over seeds, which draw the folds and the random numbers of
the learner. The split "given" is the corpus' own; "stratified" has a test part of the same size, in which
every label is about as frequent as in the training part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.sparse import csr_array

from benchmarks import intervals
from benchmarks.compare.frame import Comparison, Stored
from benchmarks.corpora import EXAMPLES, MEASUREMENTS, split
from benchmarks.recipes import LEARNERS, Task, Trained, decide, parameters_of, train
from benchmarks.tables import Result, figure, markdown
from models.arrays import Bools, Floats, Labels
from models.calibration import fit_calibration, fit_label_calibration
from models.decisions import N_FOLDS, HeldOut
from models.decisions.auto import LabelSetSizes
from models.measures.calibration import LEAST_PROBABILITY, N_BINS, expected_calibration_error, probable
from models.measures.probabilities import evaluate_label_probabilities, evaluate_set_probabilities
from models.splits import stratified_folds

GOALS = {"pairs": 0.035, "sets": 0.05}
SPLITS = ("given", "stratified")
RECOMMENDED = ("svm", "mp_boost")
"""The learners that are measured on every corpus."""

SEEDS = range(3)

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


def measure(corpus: str, variant: str, seeds: Sequence[int] = SEEDS) -> Result:
    """Return the means over seeds, and the intervals of the calibration errors.

    Args:
        corpus: one of ``EXAMPLES``.
        variant: a learner and a split, such as "svm, given".
        seeds: the seeds.
    """
    learner, how = variant.split(", ")
    training, test = split(EXAMPLES[corpus](), how)
    values: list[dict[str, float]] = []
    errors: dict[str, list[Floats]] = {goal: [] for goal in GOALS}
    counts = intervals.resamples(test.n_examples, seed=0)
    for seed in seeds:
        task = Task.of(training, test, units=corpus in MEASUREMENTS, seed=seed)
        trained, relevant = train(task, *parameters_of(corpus, learner, training.kind)), task.relevant()
        predicted, p, of_sets = probabilities(trained)
        right = (predicted == relevant).all(axis=1)
        values.append(measure_probabilities(trained.test, relevant, predicted, p, of_sets, seed))
        errors["pairs"].append(resampled_errors(p, relevant, counts, least=LEAST_PROBABILITY))
        errors["sets"].append(resampled_errors(of_sets[:, np.newaxis], right[:, np.newaxis], counts))
    means = {name: round(float(np.mean([each[name] for each in values])), 4) for name in values[0]}
    of_errors = {goal: corrected_interval(np.mean(each, axis=0)) for goal, each in errors.items()}
    return {"seeds": len(seeds), **of_errors, **means}


def probabilities(trained: Trained) -> tuple[Bools, Floats, Floats]:
    """Return the predicted label sets of the test part, and the probabilities of labels and label sets."""
    labels = [str(j) for j in range(trained.test.shape[1])]
    decision = decide(trained, {"kind": "auto"}, LabelSetSizes.of(trained.held_out.Y), labels)
    calibration = fit_calibration(trained.held_out, decision.rule)
    assert calibration is not None, "all labels are known"
    predicted = decision.rule.predicted(trained.test)
    return predicted, *calibration.probabilities(trained.test, predicted)


def measure_probabilities(
    scores: Floats, relevant: Bools, predicted: Bools, p: Floats, of_sets: Floats, seed: int
) -> dict[str, float]:
    """Return the values of ``DETAILS`` that have no interval."""
    Y, sets = (csr_array(each.astype(np.int8)) for each in (relevant, predicted))
    sigmoid = 1.0 / (1.0 + np.exp(-np.clip(scores, -500, 500)))
    smallest = np.where(predicted, p, 1.0 - p).min(axis=1)
    values = {
        **evaluate_label_probabilities(Y, p).measures,
        **evaluate_set_probabilities(Y, sets, of_sets).measures,
        "pairs_chance": error_by_chance(p[p > LEAST_PROBABILITY], seed),
        "sets_chance": error_by_chance(of_sets, seed),
        "refitted": expected_calibration_error(*probable(refit(scores, Y, seed).ravel(), relevant.ravel())),
        "sigmoid": expected_calibration_error(*probable(sigmoid.ravel(), relevant.ravel())),
        "smallest": expected_calibration_error(smallest, (predicted == relevant).all(axis=1)),
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


def corrected_interval(errors: Floats) -> dict[str, float]:
    """Return the first error, and the interval of the others around it.

    Resampling adds an error by chance to each resampled one, so that their mean is above the first error.
    The interval is moved down by this difference.
    """
    value, resampled = float(errors[0]), errors[1:]
    tail = (1 - intervals.LEVEL) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail]) - (resampled.mean() - value)
    return {"value": round(value, 4), "low": round(max(float(low), 0.0), 4), "high": round(float(high), 4)}


def tables(stored: Stored) -> Mapping[str, str]:
    """Return the tables of the page."""
    return {
        "calibration_goals": goals(stored),
        **{f"calibration_{goal}": errors_by_corpus(stored, goal) for goal in GOALS},
        "calibration_details": details(stored),
    }


def goals(stored: Stored) -> str:
    """Return a table of how many corpora meet the goals."""
    rows = []
    for how in SPLITS:
        for learner in RECOMMENDED:
            results = _select(stored, f"{learner}, {how}")
            met = [[_met(result, goal) for goal in GOALS] for result in results.values()]
            columns = [*zip(*met, strict=True), [*map(all, met)]]
            counts = [f"{sum(column)} of {len(met)}" for column in columns]
            missed = [
                f"{corpus}{'' if any(result[goal]['low'] > GOALS[goal] for goal in GOALS) else ' (?)'}"
                for corpus, result in results.items()
                if not all(_met(result, goal) for goal in GOALS)
            ]
            rows.append([f"`{learner}`", how, *counts, ", ".join(missed)])
    head = [f"{name} at most {figure(goal)}" for name, goal in GOALS.items()]
    return markdown(["learner", "split", *head, "both", "missed"], rows)


def errors_by_corpus(stored: Stored, goal: str) -> str:
    """Return a table of one of the calibration errors; those above the goal have an asterisk."""
    columns = [f"{learner}, {how}" for learner in RECOMMENDED for how in SPLITS]

    def cell(corpus: str, column: str) -> str:
        if (corpus, column) not in stored:
            return ""
        error = stored[corpus, column][goal]
        star = "" if _met(stored[corpus, column], goal) else "*"
        return f"{figure(error['value'])}{star} [{figure(error['low'])}, {figure(error['high'])}]"

    rows = [
        [corpus, *(cell(corpus, column) for column in columns)]
        for corpus in EXAMPLES
        if any((corpus, column) in stored for column in columns)
    ]
    return markdown([goal, *(f"`{c.partition(', ')[0]}`, {c.partition(', ')[2]}" for c in columns)], rows)


def details(stored: Stored) -> str:
    """Return a table of all values with the corpora's own splits."""
    rows = []
    for learner in LEARNERS:
        for corpus, result in _select(stored, f"{learner}, given").items():
            values = [result[name]["value"] if name in GOALS else result[name] for name in DETAILS]
            stars = ["*" * (name in GOALS and not _met(result, name)) for name in DETAILS]
            shown = [figure(value) + star for value, star in zip(values, stars, strict=True)]
            rows.append([f"`{learner}`", corpus, *shown])
    return markdown(["learner", "corpus", *DETAILS.values()], rows)


def _select(stored: Stored, variant: str) -> dict[str, Result]:
    """Return the results of a variant in the order of the corpora."""
    return {corpus: stored[corpus, variant] for corpus in EXAMPLES if (corpus, variant) in stored}


def _met(result: Result, goal: str) -> bool:
    return bool(result[goal]["value"] <= GOALS[goal])


def _only_recommended(_: str, variant: str) -> bool:
    return variant.partition(", ")[0] not in RECOMMENDED


CALIBRATION = Comparison(
    {corpus: corpus for corpus in EXAMPLES},
    [f"{learner}, {how}" for how in SPLITS for learner in LEARNERS],
    measure,
    tables,
    left_out=_only_recommended,
)
