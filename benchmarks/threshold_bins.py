"""Compare threshold stumps in bins with the exact search, and with boosted stumps of scikit-learn.

    python -m benchmarks.threshold_bins [--only NAME ...]

20,000 training examples with 50 normal features, 10 labels that depend on a fifth of the features each, as
many test examples, and 60 rounds. Stores the CPU time of each training and the Hamming loss on the test
examples, and writes the table into ``docs/learners.md``. The exact search takes minutes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.multiclass import OneVsRestClassifier

from benchmarks import tables
from models.arrays import Floats
from models.boosting.adaboost_mh import AdaBoostMH
from models.boosting.mp_boost import MPBoost

NAME = "threshold_bins"
PAGE = tables.DOCS / "learners.md"
EXAMPLES, FEATURES, LABELS, ROUNDS = 20_000, 50, 10, 60
BINS = (16, 64, 256, None)


def problem() -> tuple[Floats, Any]:
    """Return normal features, and labels that depend on a fifth of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * EXAMPLES, FEATURES))
    rule = rng.normal(size=(FEATURES, LABELS)) * (rng.random((FEATURES, LABELS)) < 0.2)
    return X, (X @ rule + rng.normal(size=(2 * EXAMPLES, LABELS)) > 1).astype(int)


def of_scikit_learn() -> Any:
    """Return the boosted stumps of scikit-learn, one classifier per label."""
    stumps = HistGradientBoostingClassifier(max_iter=ROUNDS, max_leaf_nodes=2, early_stopping=False)
    return OneVsRestClassifier(stumps)


def learners() -> dict[str, Callable[[], Any]]:
    """Return what creates each learner, by its name in the table."""
    created: dict[str, Callable[[], Any]] = {
        "scikit-learn, `HistGradientBoostingClassifier`": of_scikit_learn
    }
    for name, learner in (("adaboost_mh", AdaBoostMH), ("mp_boost", MPBoost)):
        for bins in BINS:
            how = "exact" if bins is None else f"{bins} bins"
            created[f"`{name}`, {how}"] = lambda learner=learner, bins=bins: learner(  # type: ignore[misc]
                rounds=ROUNDS, stump="threshold", bins=bins
            )
    return created


def rendered() -> dict[str, str]:
    """Return the table of the page."""
    rows = [
        [result["learner"], f"{result['seconds']:.1f} s", tables.figure(result["hamming_loss"], 4)]
        for result in tables.stored(NAME)
    ]
    return {"threshold_bins": tables.markdown(["learner", "CPU time", "Hamming loss"], rows)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[*learners()], choices=[*learners()])
    data, targets = problem()
    for learner_name in parser.parse_args().only:
        fitted = learners()[learner_name]()
        started = time.process_time()
        fitted.fit(data[:EXAMPLES], targets[:EXAMPLES])
        seconds = time.process_time() - started
        loss = float((fitted.predict(data[EXAMPLES:]) != targets[EXAMPLES:]).mean())
        result = {"learner": learner_name, "seconds": round(seconds, 2), "hamming_loss": round(loss, 5)}
        print(result, flush=True)
        tables.store(NAME, [result], ("learner",))
    tables.show(PAGE, rendered())
