"""Promises about one trained pipeline: its label sets, targets and probabilities."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from benchmarks.promises.library import Trained
from benchmarks.recipes import quality
from benchmarks.tables import Result
from models.arrays import Bools
from models.measures.calibration import expected_calibration_error, probable

TARGETS = (0.9, 0.95, 0.99)
LEVEL = 0.05
"""Level of the one-sided exact binomial tests."""

BINS = {"≥ .99": (0.99, 1.0), ".95–.99": (0.95, 0.99), ".9–.95": (0.9, 0.95), ".5–.9": (0.5, 0.9)}
"""Probabilities of labels that are compared with what is true."""

REVIEW_BELOW = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
CERTAIN = 0.9
"""Set probability from which a message of an unseen label counts as routed without a person."""

N_SEEDS = 3
"""Number of seeds of the folds for the same training examples."""


def is_below(successes: int, n: int, share: float) -> bool:
    """Whether a share of successes is significantly below another one.

    >>> is_below(85, 100, 0.95), is_below(94, 100, 0.95), is_below(0, 0, 0.95)
    (True, False, False)
    """
    return bool(n and binom.cdf(successes, n, share) <= LEVEL)


def precision(trained: Trained) -> Result:
    """Return how decisions and policies with a precision keep it."""
    relevant = trained.relevant()
    found: Result = {}
    for target in TARGETS:
        decision = {"kind": "target", "measure": "precision", "value": target}
        predictions = {
            "per_label": trained.with_decision({**decision, "scope": "per_label"}),
            "pooled": trained.with_decision({**decision, "scope": "pooled"}),
            "router": trained.with_policy(target),
        }
        for how, predicted in predictions.items():
            found.setdefault(how, {})[f"{target}"] = _precision(relevant, predicted, target)
    return found


def _precision(relevant: Bools, predicted: Bools, target: float) -> Result:
    right, n = (relevant & predicted).sum(axis=0), predicted.sum(axis=0)
    labels = np.flatnonzero(n)
    return {
        "labels": len(labels),
        "below": sum(is_below(int(right[j]), int(n[j]), target) for j in labels),
        "runs_below": int(is_below(int(right.sum()), int(n.sum()), target)),
        "right": int(right.sum()),
        "predicted": int(n.sum()),
        "positives": int(relevant.sum()),
    }


def probabilities(trained: Trained) -> Result:
    """Return how true the probabilities of labels and of label sets are."""
    outcome = trained.outcome()
    if outcome is None:
        return {}
    outcome = outcome.where(trained.known())
    p, relevant = outcome.p.ravel(), outcome.relevant.ravel()
    found: Result = {"bins": {}}
    for name, (low, high) in BINS.items():
        in_bin = (p >= low) & ((p < high) | (high == 1.0))
        found["bins"][name] = {
            "pairs": int(in_bin.sum()),
            "true": int(relevant[in_bin].sum()),
            "expected": round(float(p[in_bin].sum()), 2),
        }
    found["pairs"] = [expected_calibration_error(*probable(p, relevant))]
    found["sets"] = [expected_calibration_error(outcome.of_sets, outcome.right)]
    return found


def agreement(trained: Trained) -> Result:
    """Return how often a label set is more probable than its least probable decision on a label."""
    outcome = trained.outcome()
    if outcome is None:
        return {}
    smallest = np.where(outcome.predicted, outcome.p, 1.0 - outcome.p).min(axis=1)
    return {
        "documents": len(smallest),
        "above": int((outcome.of_sets > smallest + 1e-9).sum()),
        "largest": [float((outcome.of_sets - smallest).max())],
    }


def review(trained: Trained) -> Result:
    """Return how many of the label sets that need no review are right."""
    outcome = trained.outcome()
    if outcome is None:
        return {}
    outcome = outcome.where(trained.known())
    found: Result = {}
    for bound in REVIEW_BELOW:
        accepted = outcome.of_sets >= bound
        n, n_right = int(accepted.sum()), int(outcome.right[accepted].sum())
        found[f"{bound}"] = {
            "checks": int(n > 0),
            "broken": int(is_below(n_right, n, bound)),
            "accepted": n,
            "right": n_right,
            "documents": len(accepted),
        }
    return found


def unseen(trained: Trained) -> Result:
    """Return how certain label sets are for documents that have none of the labels of the training."""
    outcome = trained.outcome()
    if outcome is None:
        return {}
    certain, labelled = outcome.of_sets >= CERTAIN, outcome.predicted.any(axis=1)
    return {
        "documents": len(certain),
        "certain": int(certain.sum()),
        "routed": int((certain & labelled).sum()),
        "labelled": int(labelled.sum()),
    }


def single(trained: Trained) -> Result:
    """Return how the default decision does if each training document has one label.

    The folds are drawn with several seeds. The one label with the highest score is what users would expect.
    """
    relevant, known = trained.relevant(), trained.known()
    sets = [
        trained.with_decision(None, seed=trained.seed + 1000 * number)[known] for number in range(N_SEEDS)
    ]
    best = trained.with_decision({"kind": "single_label"})[known]
    relevant = relevant[known]
    right = [_share_right(relevant, each) for each in sets]
    return {
        "right": [float(np.mean(right))],
        "spread": [max(right) - min(right)],
        "f1": [float(np.mean([quality(each, relevant)[0] for each in sets]))],
        "best": [_share_right(relevant, best)],
        "empty": [float(np.mean([1.0 - each.any(axis=1).mean() for each in sets]))],
    }


def _share_right(relevant: Bools, predicted: Bools) -> float:
    return float((relevant == predicted).all(axis=1).mean())
