"""Measure how long a partial fit takes, and how good the label sets of its version are.

    python benchmarks/partial_fit.py [--words 50000] [--labels 100] [--repeats 3]
    python benchmarks/partial_fit.py --quality lists --size 600

Trains each learner on documents of random words, and makes versions from batches of 1, 100 and 200 documents
as ``app/registry/partial_fits.py`` does. Prints the CPU time of each step in milliseconds, over all threads,
of the fastest repetition.

With ``--quality``, trains on 60 % of the documents of a corpus and continues with the rest, all at once or
only with those on which the version is wrong (at most 50). Prints micro F1 and the share of wrong label sets
on test documents, means of two random samples: of the first version, with its thresholds for the scores of
the updated learner, after the partial fit, and of a training with all documents.
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

from benchmarks.multilabel_corpora import CORPORA
from models import artifact, catalog
from models.arrays import Bools, Floats
from models.data.examples import Examples
from models.features import TextFeaturesParameters
from models.labels.indicator_matrix import indicator_matrix
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


def f1_and_wrong(pipeline: Pipeline, scores: Floats, relevant: Bools) -> tuple[float, float]:
    """Return micro F1, and the share of wrong label sets, of the decision of a pipeline."""
    predicted = pipeline.rule_.predicted(scores)
    f1 = 2 * (predicted & relevant).sum() / max(1, predicted.sum() + relevant.sum())
    return float(f1), float((predicted != relevant).any(axis=1).mean())


def measure_quality(
    corpus: str, size: int, seed: int, algorithm: str
) -> dict[str, list[tuple[float, float]]]:
    """Return F1 and the share of wrong label sets, in the order of the columns, for each batch."""
    examples = CORPORA[corpus]()
    rows = np.random.default_rng(seed).permutation(examples.n_examples)
    first, more, test = np.split(rows[: size + 1_000], [size * 6 // 10, size])

    def part(chosen: Any) -> Examples:
        return examples.where(np.isin(np.arange(len(rows)), chosen))

    def fit(chosen: Any) -> Pipeline:
        return Pipeline.from_parameters(
            TextFeaturesParameters(kind="text", weighting="pivoted", scaling="unit"),
            catalog.LEARNER_PARAMETERS.validate_python({"algorithm": algorithm}),
            seed=seed,
        ).fit(part(chosen))

    def relevant(pipeline: Pipeline, chosen: Any) -> Bools:
        known = set(pipeline.labels_)
        sets = [known.intersection(labels) for labels in part(chosen).labels]
        matrix: Bools = indicator_matrix([sorted(labels) for labels in sets], pipeline.labels_).toarray() != 0
        return matrix

    parent, complete = fit(first), fit(rows[:size])
    more = np.sort(more)
    predicted = parent.rule_.predicted(parent.scores(part(more)))
    wrong = more[(predicted != relevant(parent, more)).any(axis=1)][:50]
    documents, truth = part(test).documents, relevant(parent, test)
    results = {}
    for name, batch in (("all", more), ("wrong", wrong)):
        known = set(parent.labels_)
        sets = [sorted(known.intersection(labels)) for labels in part(batch).labels]
        child = partial_fit(parent, part(batch).documents, sets)
        scores = child.scores(documents)
        results[name] = [
            f1_and_wrong(parent, parent.scores(documents), truth),
            f1_and_wrong(parent, scores, truth),
            f1_and_wrong(child, scores, truth),
            f1_and_wrong(complete, complete.scores(documents), relevant(complete, test)),
        ]
    return results


def print_quality(corpus: str, size: int) -> None:
    """Print one line for each learner and batch."""
    print(f"{corpus}, {size} documents; micro F1 and wrong label sets in %")
    columns = ("first", "kept", "partial fit", "complete")
    print(f"{'learner':<28} {'batch':>5} " + " ".join(f"{column:>11}" for column in columns))
    for algorithm in catalog.INCREMENTAL_LEARNERS:
        samples = [measure_quality(corpus, size, seed, algorithm) for seed in range(2)]
        for batch in samples[0]:
            means = np.mean([sample[batch] for sample in samples], axis=0)
            cells = " ".join(f"{f1:>6.3f} {100 * wrong:>4.0f}" for f1, wrong in means)
            print(f"{algorithm:<28} {batch:>5} {cells}", flush=True)


def main() -> None:
    """Print one line for each learner and batch."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--words", type=int, default=50_000)
    parser.add_argument("--labels", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quality", choices=sorted(CORPORA), help="a corpus of texts")
    parser.add_argument("--size", type=int, default=600)
    options = parser.parse_args()
    if options.quality:
        print_quality(options.quality, options.size)
        return
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
                catalog.DECISION_PARAMETERS.validate_python({"kind": "auto"}),
            ).fit(training)
            path = Path(folder) / f"{algorithm}.covey"
            artifact.save(pipeline, path)
            parent = artifact.load(path)
            for n in (1, 100, 200):
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
