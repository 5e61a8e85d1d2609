"""Measures the cost of a parallel round of AdaBoost.LC in sparse-dense products of the same size.

    python benchmarks/adaboost_lc_round.py [--examples N] [--repeat N] [--no-reuters]

A product is the mean of SciPy's X A and Xᵀ Q, for the g x r matrix X of the features and dense A (r x k) and
Q (g x k). A round is everything between two calls of the monitor, including the training loss and error. Both
are CPU times of one thread: the minimum over the repeats, which alternate between products and rounds. The
generated data has 25,000 features with Zipf frequencies, 75 draws per row, and 103 labels, 3.2 per row; with
800,000 examples it has the size of RCV1. The script prints the peak memory at the end.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import MultiLabelBinarizer

from models.boosting.templates import Templates
from models.boosting.weight_sums import CoveringTrainingSet
from models.covering import parse_covering

DATA = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))
KINDS = ("hamming", "zero_one", "two_sets", "weighted_positive", "weighted_negative")


def generated(n: int, r: int = 25_000, k: int = 103, draws: int = 75) -> tuple[Any, Any]:
    """Random (n, r) features and (n, k) label sets with the shape of RCV1."""
    rng = np.random.default_rng(0)
    frequency = 1 / np.arange(10, r + 10)
    bounds = np.cumsum(frequency / frequency.sum())
    names = rng.permutation(r).astype(np.int32)
    X = csr_array(
        (
            rng.random(n * draws),
            names[np.minimum(np.searchsorted(bounds, rng.random(n * draws)), r - 1)],
            np.arange(0, n * draws + 1, draws, dtype=np.int32),
        ),
        shape=(n, r),
    )
    X.sum_duplicates()
    density = 1 / np.arange(1, k + 1)
    density *= 3.2 / density.sum()
    columns = [np.flatnonzero(rng.random(n) < share) for share in density]
    rows = np.concatenate(columns)
    labels = np.repeat(np.arange(k), [len(column) for column in columns])
    return X, csr_array((np.ones(len(rows), dtype=np.int8), (rows, labels)), shape=(n, k))


def reuters() -> tuple[Any, Any]:
    """The training part of Reuters-21578 as tf-idf of all terms except stop words."""
    with gzip.open(DATA / "reuters21578.jsonl.gz", "rt") as file:
        documents = [d for d in map(json.loads, file) if d["split"] == "train"]
    X = TfidfVectorizer(stop_words="english").fit_transform([d["text"] for d in documents])
    Y = MultiLabelBinarizer().fit_transform([d["labels"] for d in documents])
    return csr_array(X), csr_array(Y.astype(np.int8))


def seconds(work: Callable[[], object]) -> float:
    """CPU time of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


class Round:
    """A training with one covering, one round per call."""

    def __init__(self, X: Any, Y: Any, kind: str) -> None:
        labels = [str(label) for label in range(Y.shape[1])]
        covering = parse_covering({"kind": kind}).compile(labels)
        self.training_set = CoveringTrainingSet(X, Y, covering, merge_equal=True)
        self.templates = Templates.of("parallel", X, [], self.training_set.columns, self.training_set.scale)
        self.weights = np.zeros((len(self.training_set.columns.first_feature), Y.shape[1]))
        self.sums = self.training_set.sums(self.weights)

    def __call__(self) -> None:
        """Take a round."""
        self.templates.update(self.weights, self.sums, None)
        self.sums = self.training_set.sums(self.weights)


def compare(name: str, X: Any, Y: Any, repeat: int) -> float:
    """Print the cost with every covering.

    Returns:
        The largest cost, in products.
    """
    (n, r), k = X.shape, Y.shape[1]
    print(f"{name}: {n:,} x {r:,}, {X.nnz / n:.1f} values and {Y.nnz / n:.2f} of {k} labels per row")
    A = np.random.default_rng(1).normal(size=(r, k))
    Q = X @ A
    ratios = []
    for kind in KINDS:
        work = (lambda: X @ A, lambda: X.T @ Q, Round(X, Y, kind))
        forward, backward, whole = np.min([[seconds(call) for call in work] for _ in range(repeat)], axis=0)
        del work  # one training in memory at a time
        product = (forward + backward) / 2
        print(
            f"  {kind:18s} X A {forward:8.4f} s   XT Q {backward:8.4f} s   round {whole:8.4f} s"
            f"   = {whole / product:.2f} products",
            flush=True,
        )
        ratios.append(float(whole / product))
    return max(ratios)


def main() -> None:
    """Measures on both corpora."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=50_000, help="generated examples")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--no-reuters", action="store_true")
    arguments = parser.parse_args()
    if not arguments.no_reuters and (DATA / "reuters21578.jsonl.gz").exists():
        compare("Reuters-21578", *reuters(), arguments.repeat)
    compare("generated", *generated(arguments.examples), arguments.repeat)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
