"""Measure how long a partial fit takes: learning from a batch, saving the version, and loading it again.

    python benchmarks/partial_fit.py [--words 50000] [--labels 100] [--repeats 3]

Trains each learner on documents of random words, and makes versions from batches of one and of 100 documents
as ``app/registry/partial_fits.py`` does. Prints the CPU time of each step in milliseconds, over all threads,
of the fastest repetition.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from models import artifact, catalog
from models.data.examples import Examples
from models.features import TextFeaturesParameters
from models.pipeline import Pipeline
from models.pipeline.partial_fit import partial_fit

LEARNERS = ("naive_bayes", "mmp", "binary_relevance_perceptron")
"""`mlpp` has a perceptron for each pair of labels, which needs gigabytes at this size."""

N_DOCUMENTS, WORDS_EACH, LABELS_EACH = 2_000, 100, 3


def random_examples(rng: np.random.Generator, n: int, n_words: int, n_labels: int) -> Examples:
    """Return documents of random words. The first ones have every word."""
    words = rng.integers(0, n_words, (n, WORDS_EACH))
    every = min(n_words, words.size)
    words.reshape(-1)[:every] = np.arange(every)
    labels = rng.integers(0, n_labels, (n, LABELS_EACH))
    return Examples(
        "text",
        [" ".join(f"w{word}x" for word in row) for row in words],
        [tuple(sorted({f"l{label:03}" for label in row})) for row in labels],
    )


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU time of a call in milliseconds, and its result."""
    start = time.process_time()
    result = work()
    return 1e3 * (time.process_time() - start), result


def main() -> None:
    """Print one line for each learner and batch."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--words", type=int, default=50_000)
    parser.add_argument("--labels", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    training = random_examples(rng, N_DOCUMENTS, options.words, options.labels)
    print(f"{options.words:,} words, {options.labels} labels; CPU milliseconds, fastest of {options.repeats}")
    print(f"{'learner':<28} {'batch':>5} {'learn':>7} {'save':>7} {'load':>7} {'sum':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for algorithm in LEARNERS:
            parameters = catalog.LEARNER_PARAMETERS.validate_python({"algorithm": algorithm})
            pipeline = Pipeline.from_parameters(
                TextFeaturesParameters(kind="text"),
                parameters,
                catalog.DECISION_PARAMETERS.validate_python({"kind": "single_label"}),
            ).fit(training)
            path = Path(folder) / f"{algorithm}.covey"
            artifact.save(pipeline, path)
            parent = artifact.load(path)
            for n in (1, 100):
                batch = random_examples(rng, n, options.words, options.labels)
                best: list[float] = []
                for _ in range(options.repeats):
                    learn, child = cpu(lambda: partial_fit(parent, batch.documents, batch.labels))  # noqa: B023
                    save, _ = cpu(lambda: artifact.save(child, Path(folder) / "child.covey"))  # noqa: B023
                    load, _ = cpu(lambda: artifact.load(Path(folder) / "child.covey"))
                    best = min(best or [np.inf], [learn + save + load, learn, save, load])
                total, learn, save, load = best
                print(f"{algorithm:<28} {n:>5} {learn:>7.0f} {save:>7.0f} {load:>7.0f} {total:>7.0f}")


if __name__ == "__main__":
    main()
