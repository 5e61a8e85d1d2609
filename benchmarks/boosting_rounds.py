"""Compares boosting rounds with simple vectorised rounds, on Reuters-21578 with all its terms.

Both sides run in this process with one thread and are measured by CPU time. AdaBoost.MH and MP-Boost choose
their pivots. The simple round gets the same weights and must choose the same pivots. Then both learners score
a batch, as does scikit-learn's one-vs-rest linear SVM on the same matrix. With ``--scale``, MP-Boost instead
trains on 800,000 generated documents, and the script prints the peak memory of the process.

    COVEY_DATA=… python benchmarks/boosting_rounds.py [--scale]
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from models.arrays import Floats, Ints, Labels, Matrix
from models.base import Step
from models.base.validation import as_training_matrices
from models.boosting.adaboost_mh import AdaBoostMH
from models.boosting.adaboost_mh_rounds import AdaBoostMHRounds
from models.boosting.mp_boost import MPBoost
from models.boosting.mp_boost_rounds import MPBoostRounds
from models.boosting.stumps import presence_stumps
from models.features import TextFeatures, TextFeaturesParameters
from models.text import AnalyzerParameters

COVEY_DATA = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))


def main() -> None:
    """Run the comparison or, with ``--scale``, the large training."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", action="store_true", help="train on 800,000 generated documents instead")
    parser.add_argument(
        "--rounds", type=int, default=200, help="rounds (default: 200; at most 5 with --scale)"
    )
    arguments = parser.parse_args()
    with threadpool_limits(1):
        if arguments.scale:
            at_scale(min(arguments.rounds, 5))
        else:
            on_reuters(arguments.rounds)


def on_reuters(rounds: int) -> None:
    """Compare the rounds of both learners and the scoring of a batch."""
    train, labels, test = reuters()
    print(f"Reuters-21578: {train.shape[0]} documents, {train.shape[1]} terms, {labels.shape[1]} labels")
    for name, together in (("adaboost_mh", True), ("mp_boost", False)):
        compare_rounds(name, train, labels, rounds, together=together)
    svm = OneVsRestClassifier(LinearSVC(tol=0.1, max_iter=10_000)).fit(train, labels.toarray())
    coefficients = np.vstack([one.coef_ for one in svm.estimators_]).T.copy()
    intercepts = np.array([float(one.intercept_[0]) for one in svm.estimators_])
    svm_ms = timed(partial(svm.decision_function, test))
    product_ms = timed(lambda: np.asarray(test @ coefficients) + intercepts)
    print(f"scoring {test.shape[0]} documents: one-vs-rest linear SVM {svm_ms:.1f} ms,")
    print(f"  its weights in one product {product_ms:.1f} ms")
    for learner in (AdaBoostMH(rounds=rounds), MPBoost(rounds=rounds)):
        learner.fit(train, labels)
        learner_ms = timed(partial(learner.decision_function, test))
        print(
            f"  {learner.algorithm} {learner_ms:.1f} ms: {svm_ms / learner_ms:.1f} and "
            f"{product_ms / learner_ms:.1f} times as fast"
        )


def compare_rounds(name: str, X: Matrix, Y: Labels, rounds: int, *, together: bool) -> float:
    """Measures the fast rounds and, every few rounds, the simple round with the same weights.

    Returns:
        The simple round's time divided by the fast round's.
    """
    stumps = presence_stumps(X)
    smoothing = 1 / (Y.shape[0] * Y.shape[1])
    engine = AdaBoostMHRounds if together else MPBoostRounds
    fast = engine(stumps, Y, "real", smoothing)
    simple = SimpleRounds(X, Y, smoothing, together=together)
    quick: list[float] = []
    slow: list[float] = []
    same = tied = searches = 0
    for number in range(rounds):
        check = number % max(1, rounds // 25) == 0
        if check:
            simple.D = np.abs(fast.weights if together else fast.weights.T.copy())
            start = time.process_time()
            simple_pivots = simple.choose_pivots()
            choosing = time.process_time() - start
        start = time.process_time()
        pivots = fast.choose_pivots()
        assert pivots is not None
        fast.boost(pivots)
        quick.append(time.process_time() - start)
        if check:
            learning = pivots >= 0
            fast_pivots = stumps.features[pivots]
            equal = (fast_pivots == simple_pivots) & learning
            near = simple.Z[fast_pivots, np.arange(len(fast_pivots))] <= simple.Z.min(axis=0) + 1e-7
            searches += int(learning.sum())
            same += int(equal.sum())
            tied += int((near & ~equal & learning).sum())
            start = time.process_time()
            simple.boost(simple_pivots)
            slow.append(choosing + time.process_time() - start)
    fast_ms, simple_ms = 1000 * float(np.median(quick)), 1000 * float(np.median(slow))
    ratio = simple_ms / fast_ms
    print(f"{name}: simple round {simple_ms:.1f} ms, fast round {fast_ms:.1f} ms: {ratio:.1f} times as fast")
    print(
        f"  of {searches} pivots compared {same} equal, {tied} tied up to the simple round's rounding errors"
    )
    assert same + tied == searches
    return ratio


class SimpleRounds:
    """The simple vectorised round: two sparse-dense products, and Z for every term and label."""

    def __init__(self, X: Matrix, Y: Labels, smoothing: float, *, together: bool) -> None:
        """Count the documents on each side of each stump."""
        self.terms: Any = X.T.tocsr()
        self.relevant = Y.toarray().astype(bool)
        self.together = together
        self.smoothing = smoothing
        g, positives = Y.shape[0], self.relevant.sum(axis=0)
        frequency = np.diff(self.terms.indptr)[:, None]
        n_positive = np.asarray(self.terms @ self.relevant.astype(float))
        n_negative = frequency - n_positive
        counts = (positives - n_positive, g - positives - n_negative, n_positive, n_negative)
        self.empty = [count == 0 for count in counts]
        self.D: Floats = np.zeros(Y.shape)
        self.W: list[Floats] = []
        self.Z: Floats = np.zeros((X.shape[1], 1))

    def choose_pivots(self) -> Ints:
        """The pivot of each search."""
        positive = self.D * self.relevant
        negative = self.D - positive
        present_positive, present_negative = self.terms @ positive, self.terms @ negative
        absent_positive = positive.sum(axis=0) - present_positive
        absent_negative = negative.sum(axis=0) - present_negative
        self.W = [absent_positive, absent_negative, present_positive, present_negative]
        for side, empty in zip(self.W, self.empty, strict=True):
            side[empty] = 0
            np.maximum(side, 0, out=side)
        Z = 2 * (np.sqrt(absent_positive * absent_negative) + np.sqrt(present_positive * present_negative))
        self.Z = Z.sum(axis=1, keepdims=True) if self.together else Z
        return np.asarray((self.Z.min(axis=0) + 1e-12 >= self.Z).argmax(axis=0))

    def boost(self, pivots: Ints) -> None:
        """Multiplies the weights and divides them by their sums."""
        pivot = np.broadcast_to(pivots, self.D.shape[1])
        chosen = [side[pivot, np.arange(len(pivot))] + self.smoothing for side in self.W]
        absent, present = 0.5 * np.log(chosen[0] / chosen[1]), 0.5 * np.log(chosen[2] / chosen[3])
        present_documents = self.terms[pivot].toarray().T != 0
        self.D *= np.exp(np.where(self.relevant, -1, 1) * np.where(present_documents, present, absent))
        self.D /= self.D.sum() if self.together else self.D.sum(axis=0)


def at_scale(rounds: int) -> None:
    """MP-Boost on 800,000 documents of 25,000 terms, 75 draws each, with 103 labels as frequent as RCV1's."""
    rng = np.random.default_rng(0)
    g, r, k = 800_000, 25_000, 103
    frequency = 1 / np.arange(10, r + 10)
    cumulative = np.cumsum(frequency / frequency.sum())
    terms = np.searchsorted(cumulative, rng.random(g * 75)).astype(np.int32)
    X = csr_array((np.ones(g * 75), terms, np.arange(0, g * 75 + 1, 75, dtype=np.int32)), shape=(g, r))
    X.sum_duplicates()
    X.data[:] = 1
    share = np.geomspace(0.47, 1e-5, k)
    columns = []
    for j in range(k):
        signal = X @ np.where(rng.random(r) < 0.002, rng.normal(size=r), 0.0) + rng.normal(scale=0.1, size=g)
        columns.append(np.flatnonzero(signal > np.quantile(signal, 1 - share[j])))
    sizes = [len(column) for column in columns]
    labels = np.repeat(np.arange(k), sizes)
    Y = csr_array((np.ones(len(labels), dtype=np.int8), (np.concatenate(columns), labels)), shape=(g, k))
    del terms
    print(f"{g} documents, {r} terms, {X.nnz / g:.0f} per document, {k} labels, {Y.nnz / g:.2f} per document")
    print(f"peak memory before training: {peak():.2f} GiB")
    start = time.process_time()
    marks: list[float] = []

    def mark(step: Step) -> None:
        marks.append(time.process_time() - start)
        bound = step.measures["loss_bound"]
        print(
            f"round {step.completed}: {marks[-1]:.1f} s, bound {bound:.4f}, peak {peak():.2f} GiB", flush=True
        )

    MPBoost(rounds=rounds).fit(X, Y, monitor=mark)
    print(f"a round: {np.median(np.diff(marks)):.1f} s; peak memory: {peak():.2f} GiB")


def peak() -> float:
    """Peak memory of this process in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def timed(work: Callable[[], object], repeats: int = 7) -> float:
    """Median CPU time in milliseconds."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1000 * float(np.median(times))


def reuters() -> tuple[Matrix, Labels, Matrix]:
    """Training terms, training labels and test terms: lower case, no numbers or stop words, Porter stems."""
    with gzip.open(COVEY_DATA / "reuters21578.jsonl.gz", "rt", encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    train = [document for document in documents if document["split"] == "train"]
    test = [document["text"] for document in documents if document["split"] == "test"]
    names = {label: j for j, label in enumerate(sorted({label for d in train for label in d["labels"]}))}
    Y = np.zeros((len(train), len(names)), dtype=np.int8)
    for row, document in enumerate(train):
        Y[row, [names[label] for label in document["labels"]]] = 1
    analyzer = AnalyzerParameters(drop_numbers=True, stop_words="english", stemmer="porter")
    features = TextFeatures(TextFeaturesParameters(kind="text", weighting="binary", analyzer=analyzer))
    X, labels = as_training_matrices(features.fit_transform([[d["text"] for d in train]], csr_array(Y)), Y)
    return X, labels, features.transform(test)


if __name__ == "__main__":
    main()
