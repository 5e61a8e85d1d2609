"""Compares threshold stumps in bins with the exact search, and with boosted stumps of scikit-learn.

    python benchmarks/threshold_bins.py [--examples N] [--features N] [--labels N] [--rounds N] [--no-exact]

Prints the CPU time of one training and the Hamming loss on as many test examples. The exact search takes
minutes at the default size.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.multiclass import OneVsRestClassifier

from models.arrays import Floats
from models.boosting.adaboost_mh import AdaBoostMH
from models.boosting.mp_boost import MPBoost


def problem(g: int, r: int, k: int) -> tuple[Floats, Any]:
    """Normal features, and labels that depend on a fifth of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(g, r))
    rule = rng.normal(size=(r, k)) * (rng.random((r, k)) < 0.2)
    return X, (X @ rule + rng.normal(size=(g, k)) > 1).astype(int)


def main() -> None:
    """Print a line for each learner."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--examples", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--labels", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--no-exact", action="store_true")
    options = parser.parse_args()
    X, Y = problem(2 * options.examples, options.features, options.labels)
    half, rounds = options.examples, options.rounds
    stumps = HistGradientBoostingClassifier(max_iter=rounds, max_leaf_nodes=2, early_stopping=False)
    learners: list[tuple[str, Any]] = [("HistGradientBoosting, one per label", OneVsRestClassifier(stumps))]
    for name, learner in (("adaboost_mh", AdaBoostMH), ("mp_boost", MPBoost)):
        for bins in (16, 64, 256, *(() if options.no_exact else (None,))):
            label = f"{name}, {'exact' if bins is None else f'{bins} bins'}"
            learners.append((label, learner(rounds=rounds, stump="threshold", bins=bins)))
    for label, fitted in learners:
        started = time.process_time()
        fitted.fit(X[:half], Y[:half])
        seconds = time.process_time() - started
        loss = float((fitted.predict(X[half:]) != Y[half:]).mean())
        print(f"{label:40} {seconds:7.2f} s   Hamming loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
