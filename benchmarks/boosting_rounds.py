"""Boosting rounds against the straightforward vectorised round, on Reuters-21578 with all its terms.

Both sides run in this process, one thread each, and are timed by CPU time: AdaBoost.MH and MP-Boost choose
their pivots, and the plain round, given the same weights, must choose the same. Then a batch is scored,
against scikit-learn's one-vs-rest linear SVM on the same matrix. With ``--scale``, MP-Boost instead trains on
800,000 generated documents, and the process's peak memory is printed.

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
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", action="store_true", help="train on 800,000 generated documents instead")
    parser.add_argument("--rounds", type=int, default=200, help="rounds (default: 200; at scale 5 at most)")
    arguments = parser.parse_args()
    with threadpool_limits(1):
        if arguments.scale:
            at_scale(min(arguments.rounds, 5))
        else:
            on_reuters(arguments.rounds)


def on_reuters(rounds: int) -> None:
    """Both learners' rounds, and a batch scored."""
    train, labels, test = reuters()
    print(f"Reuters-21578: {train.shape[0]} documents, {train.shape[1]} terms, {labels.shape[1]} labels")
    for name, together in (("adaboost_mh", True), ("mp_boost", False)):
        compare_rounds(name, train, labels, rounds, together=together)
    svm = OneVsRestClassifier(LinearSVC(tol=0.1, max_iter=10_000)).fit(train, labels.toarray())
    coefficients = np.vstack([one.coef_ for one in svm.estimators_]).T.copy()
    intercepts = np.array([float(one.intercept_[0]) for one in svm.estimators_])
    theirs = timed(partial(svm.decision_function, test))
    product = timed(lambda: np.asarray(test @ coefficients) + intercepts)
    print(f"scoring {test.shape[0]} documents: one-vs-rest linear SVM {theirs:.1f} ms,")
    print(f"  its weights in one product {product:.1f} ms")
    for learner in (AdaBoostMH(rounds=rounds), MPBoost(rounds=rounds)):
        learner.fit(train, labels)
        mine = timed(partial(learner.decision_function, test))
        print(
            f"  {learner.algorithm} {mine:.1f} ms: {theirs / mine:.1f} and {product / mine:.1f} times as fast"
        )


def compare_rounds(name: str, X: Matrix, Y: Labels, rounds: int, *, together: bool) -> float:
    """Time our rounds, and the plain one on the same weights every few rounds; print their medians.

    Returns:
        how many times as fast ours are.
    """
    stumps = presence_stumps(X)
    smoothing = 1 / (Y.shape[0] * Y.shape[1])
    engine = AdaBoostMHRounds if together else MPBoostRounds
    ours = engine(stumps, Y, "real", smoothing)
    plain = PlainRounds(X, Y, smoothing, together=together)
    quick: list[float] = []
    slow: list[float] = []
    same = tied = searches = 0
    for number in range(rounds):
        check = number % max(1, rounds // 25) == 0
        if check:
            plain.D = np.abs(ours.weights if together else ours.weights.T.copy())
            begun = time.process_time()
            theirs = plain.choose()
            choosing = time.process_time() - begun
        begun = time.process_time()
        pivots = ours.choose_pivots()
        assert pivots is not None
        ours.boost(pivots)
        quick.append(time.process_time() - begun)
        if check:
            going = pivots >= 0
            mine = stumps.features[pivots]
            equal = (mine == theirs) & going
            near = plain.Z[mine, np.arange(len(mine))] <= plain.Z.min(axis=0) + 1e-7
            searches += int(going.sum())
            same += int(equal.sum())
            tied += int((near & ~equal & going).sum())
            begun = time.process_time()
            plain.take(theirs)
            slow.append(choosing + time.process_time() - begun)
    ours_ms, plain_ms = 1000 * float(np.median(quick)), 1000 * float(np.median(slow))
    ratio = plain_ms / ours_ms
    print(f"{name}: plain round {plain_ms:.1f} ms, ours {ours_ms:.1f} ms: {ratio:.1f} times as fast")
    print(f"  of {searches} pivots compared {same} equal, {tied} tied within the plain round's rounding")
    assert same + tied == searches
    return ratio


class PlainRounds:
    """The straightforward vectorised round: two sparse-dense products, and Z of every term and label."""

    def __init__(self, X: Matrix, Y: Labels, smoothing: float, *, together: bool) -> None:
        """Count what can be counted once."""
        self.terms: Any = X.T.tocsr()
        self.relevant = Y.toarray().astype(bool)
        self.together = together
        self.smoothing = smoothing
        g, positives = Y.shape[0], self.relevant.sum(axis=0)
        holding = np.diff(self.terms.indptr)[:, None]
        n_positive = np.asarray(self.terms @ self.relevant.astype(float))
        n_negative = holding - n_positive
        counts = (positives - n_positive, g - positives - n_negative, n_positive, n_negative)
        self.empty = [count == 0 for count in counts]
        self.D: Floats = np.zeros(Y.shape)
        self.W: list[Floats] = []
        self.Z: Floats = np.zeros((X.shape[1], 1))

    def choose(self) -> Ints:
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

    def take(self, pivots: Ints) -> None:
        """Multiply the weights, and divide them by their sums."""
        pivot = np.broadcast_to(pivots, self.D.shape[1])
        chosen = [side[pivot, np.arange(len(pivot))] + self.smoothing for side in self.W]
        absent, present = 0.5 * np.log(chosen[0] / chosen[1]), 0.5 * np.log(chosen[2] / chosen[3])
        holds = self.terms[pivot].toarray().T != 0
        self.D *= np.exp(np.where(self.relevant, -1, 1) * np.where(holds, present, absent))
        self.D /= self.D.sum() if self.together else self.D.sum(axis=0)


def at_scale(rounds: int) -> None:
    """MP-Boost on 800,000 documents of 75 among 25,000 terms, with 103 labels of RCV1's frequencies."""
    rng = np.random.default_rng(0)
    g, r, k = 800_000, 25_000, 103
    likely = 1 / np.arange(10, r + 10)
    cumulated = np.cumsum(likely / likely.sum())
    terms = np.searchsorted(cumulated, rng.random(g * 75)).astype(np.int32)
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
    print(f"{g} documents, {r} terms, {X.nnz / g:.0f} a document, {k} labels, {Y.nnz / g:.2f} a document")
    print(f"peak memory before training: {peak():.2f} GiB")
    begun = time.process_time()
    marks: list[float] = []

    def mark(step: Step) -> None:
        marks.append(time.process_time() - begun)
        bound = step.measures["loss_bound"]
        print(
            f"round {step.completed}: {marks[-1]:.1f} s, bound {bound:.4f}, peak {peak():.2f} GiB", flush=True
        )

    MPBoost(rounds=rounds).fit(X, Y, monitor=mark)
    print(f"a round: {np.median(np.diff(marks)):.1f} s; peak memory: {peak():.2f} GiB")


def peak() -> float:
    """Most memory that this process has held, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def timed(work: Callable[[], object], repeats: int = 7) -> float:
    """Median CPU time in milliseconds."""
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return 1000 * float(np.median(times))


def reuters() -> tuple[Matrix, Labels, Matrix]:
    """Training terms and labels, and test terms: lower case, no numbers, no stop words, Porter stems."""
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
