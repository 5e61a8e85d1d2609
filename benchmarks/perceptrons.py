"""Measure the costs and the ranking quality of the perceptrons on Reuters-21578.

python benchmarks/perceptrons.py [--terms N] [--repeats N]
python benchmarks/perceptrons.py --large    # MMP on 800,000 generated documents, with peak memory

Both sides of each ratio run in this process with one thread. Times are the minimum of several runs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Perceptron
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from models.arrays import Labels, Matrix
from models.base.incremental import IncrementalLearner
from models.base.learning_curve import MEASURES, example_measures
from models.base.validation import as_feature_matrix, as_label_matrix
from models.baselines.naive_bayes import NaiveBayes
from models.perceptrons import MLPP, MMP, BinaryRelevancePerceptron

DATA = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))


def reuters(terms: int) -> tuple[Matrix, Labels, Matrix, Labels]:
    """Return both parts as tf-idf of the most frequent terms, with the labels of the training part."""
    with gzip.open(DATA / "reuters21578.jsonl.gz", "rt", encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    parts = [[d for d in documents if d["split"] == split] for split in ("train", "test")]
    vectorizer, binarizer = TfidfVectorizer(stop_words="english", max_features=terms), MultiLabelBinarizer()
    vectorizer.fit([d["text"] for d in parts[0]])
    binarizer.fit([d["labels"] for d in parts[0]])
    known = set(binarizer.classes_)
    matrices = [as_feature_matrix(vectorizer.transform([d["text"] for d in part])) for part in parts]
    labels = [as_label_matrix(binarizer.transform([known & {*d["labels"]} for d in part])) for part in parts]
    return matrices[0], labels[0], matrices[1], labels[1]


def best(run: Callable[[], object], repeats: int) -> float:
    """Return the minimum CPU time of several runs, in seconds."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return min(seconds)


def training(X: Matrix, Y: Labels, repeats: int) -> dict[str, float]:
    """Measure one epoch of each learner relative to scikit-learn, and the operations of table IV.

    Returns:
        The time of MMP relative to scikit-learn, the operations of MLPP relative to 2L times those of MMP,
        and the time of MLPP relative to MMP.
    """
    dense = Y.toarray()
    sklearn = best(lambda: OneVsRestClassifier(Perceptron(max_iter=1, tol=None)).fit(X, dense), repeats)
    print(f"{'one epoch':32} seconds   of scikit-learn's   operations")
    print(f"{'scikit-learn, one-vs-rest':32} {sklearn:7.3f}")
    operations: dict[str, int] = {}
    seconds: dict[str, float] = {}
    learners: list[IncrementalLearner] = [MMP(), BinaryRelevancePerceptron(), MLPP(), NaiveBayes()]
    for learner in learners:
        name = learner.algorithm
        seconds[name] = best(lambda learner=learner: learner.fit(X, Y), repeats)  # type: ignore[misc]
        operations[name] = int(learner.summary_.facts.get("perceptron_operations", 0))
        print(f"{name:32} {seconds[name]:7.3f}   {seconds[name] / sklearn:17.2f}   {operations[name]:10,}")
    mean_labels = Y.nnz / Y.shape[0]
    print(
        f"MLPP/MMP: {operations['mlpp'] / operations['mmp']:.3f} times the operations "
        f"(at most 2L = {2 * mean_labels:.3f}, eq. 9), "
        f"{seconds['mlpp'] / seconds['mmp']:.1f} times the seconds"
    )
    return {
        "mmp": seconds["mmp"] / sklearn,
        "operations": operations["mlpp"] / operations["mmp"] / (2 * mean_labels),
        "mlpp": seconds["mlpp"] / seconds["mmp"],
    }


def scoring(X: Matrix, Y: Labels, X_test: Matrix, repeats: int) -> None:
    """Measure the scoring of the test part relative to scikit-learn's one-vs-rest linear SVM."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        svm = OneVsRestClassifier(LinearSVC()).fit(X, Y.toarray())
    sklearn = best(lambda: svm.decision_function(X_test), repeats)
    print(f"\n{'scoring the test part':32} seconds   of scikit-learn's")
    print(f"{'scikit-learn, one-vs-rest SVM':32} {sklearn:7.3f}")
    learners: list[IncrementalLearner] = [MMP(), BinaryRelevancePerceptron(), NaiveBayes(), MLPP()]
    for learner in learners:
        learner.fit(X, Y)
        seconds = best(lambda learner=learner: learner.decision_function(X_test), repeats)  # type: ignore[misc]
        print(f"{learner.algorithm:32} {seconds:7.3f}   {seconds / sklearn:17.2f}")


def quick_voting(X: Matrix, Y: Labels, X_test: Matrix) -> None:
    """Compare quick voting with full voting, one message at a time as in a service."""
    messages = [X_test[i : i + 1] for i in range(200)]
    print(f"\n{'quick voting, 200 messages':32} products   ratio   ms per message   ratio")
    for voting in ("max_wins", "weighted"):
        learner = MLPP(voting=voting).fit(X, Y)
        every = learner.summary_.facts["operations_per_prediction"]
        learner.quick_top(messages[0], 1)  # computes the bounds
        full = best(lambda learner=learner: [learner.decision_function(x) for x in messages], 1)  # type: ignore[misc]
        print(f"{voting + ', full':32} {every:8,} {1:9.3f} {full / 200 * 1e3:14.2f} {1:9.2f}")
        for top in (1, 3, 10):
            products = learner.quick_top(X_test[:200], top).products.mean()
            quick = best(lambda learner=learner, top=top: [learner.quick_top(x, top) for x in messages], 1)  # type: ignore[misc]
            print(
                f"{f'{voting}, top {top}':32} {products:8,.0f} {products / every:9.3f} "
                f"{quick / 200 * 1e3:14.2f} {quick / full:9.2f}"
            )


def ranking(X: Matrix, Y: Labels, X_test: Matrix, Y_test: Labels) -> None:
    """Print the measures of tables II and III on the test part."""
    print(f"\n{'ranking of the test part':32} " + "  ".join(f"{name:>17}" for name in MEASURES))
    for epochs in (1, 10):
        learners: list[IncrementalLearner] = [
            MLPP(epochs=epochs),
            MLPP(epochs=epochs, voting="weighted"),
            MMP(epochs=epochs),
            BinaryRelevancePerceptron(epochs=epochs),
        ]
        for learner in [*learners, NaiveBayes()] if epochs == 1 else learners:
            means = example_measures(learner.fit(X, Y).decision_function(X_test), Y_test).mean(axis=0)
            weighted = ", weighted" if getattr(learner, "voting", "") == "weighted" else ""
            name = f"{learner.algorithm.replace('_perceptron', '')}{weighted}, {epochs} epoch" + "s" * (
                epochs > 1
            )
            print(f"{name:32} " + "  ".join(f"{mean:17.4f}" for mean in means))


def generated(g: int, r: int, k: int, words: int) -> tuple[Matrix, Labels]:
    """Generate documents in which low-numbered words are frequent and each label has its own words."""
    rng = np.random.default_rng(0)
    first = np.minimum(rng.geometric(0.05, size=g) - 1, k - 1)
    second = rng.integers(0, k, size=g)
    indices = (r * rng.random((g, words), dtype=np.float32) ** 2).astype(np.int32)
    indices[:, :8] = (first[:, np.newaxis] * 37 + rng.integers(0, 20, size=(g, 8))) % r
    indices[:, 8:12] = (second[:, np.newaxis] * 37 + rng.integers(0, 20, size=(g, 4))) % r
    X = csr_array(
        (np.full(indices.size, words**-0.5), indices.ravel(), np.arange(0, indices.size + 1, words)),
        shape=(g, r),
    )
    X.sum_duplicates()
    labels = np.sort(np.column_stack([first, second]), axis=1)
    Y = csr_array((np.ones(2 * g, dtype=np.int8), labels.ravel(), np.arange(0, 2 * g + 1, 2)), shape=(g, k))
    Y.sum_duplicates()
    Y.data[:] = 1
    return X, Y


def large() -> None:
    """Train MMP on as many documents as the paper's corpus has."""
    X, Y = generated(800_000, 25_000, 103, 75)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{X.shape[0]:,} documents, {X.shape[1]:,} terms, {X.nnz / X.shape[0]:.0f} per document, "
        f"{Y.shape[1]} labels"
    )
    learner = MMP()
    seconds = best(lambda: learner.fit(X, Y), 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"mmp: {seconds:.0f} s per epoch; peak {peak / 2**20:.1f} GiB "
        f"(generating the documents: {before / 2**20:.1f})"
    )
    for point in learner.learning_curve_[[0, 9, 99, -1]].tolist():
        print(
            f"  after {int(point[0]):7,}: "
            + ", ".join(f"{n} {v:.3f}" for n, v in zip(MEASURES, point[1:], strict=True))
        )


def main() -> None:
    """Run all measurements and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--terms", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    with threadpool_limits(1):
        if arguments.large:
            large()
            return
        X, Y, X_test, Y_test = reuters(arguments.terms)
        print(
            f"Reuters-21578: {X.shape[0]:,} + {X_test.shape[0]:,} documents, {X.shape[1]:,} terms, "
            f"{Y.shape[1]} labels\n"
        )
        training(X, Y, arguments.repeats)
        scoring(X, Y, X_test, arguments.repeats)
        quick_voting(X, Y, X_test)
        ranking(X, Y, X_test, Y_test)


if __name__ == "__main__":
    main()
