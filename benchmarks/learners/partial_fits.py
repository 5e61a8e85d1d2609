"""How long a partial fit takes, and how good the label sets of its version are."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import EXAMPLES
from benchmarks.learners.studies import PIVOTED
from benchmarks.recipes import pipeline, quality
from models import artifact, catalog
from models.arrays import Bools
from models.data.examples import Examples
from models.labels.indicator_matrix import indicator_matrix
from models.pipeline import Pipeline
from models.pipeline.partial_fit import partial_fit

LEARNERS = ("naive_bayes", "mmp", "binary_relevance_perceptron")
"""``mlpp`` has a perceptron for each pair of labels, which needs gigabytes at this size."""

N_DOCUMENTS, WORDS_EACH, LABELS_EACH = 2_000, 100, 3
N_WORDS, N_LABELS = 50_000, 100
REPEATS = 3


def random_examples(rng: np.random.Generator, n: int) -> Examples:
    """Return documents of random words. The first ones have every word."""
    words = rng.integers(0, N_WORDS, (n, WORDS_EACH))
    every = min(N_WORDS, words.size)
    words.reshape(-1)[:every] = np.arange(every)
    labels = rng.integers(0, N_LABELS, (n, LABELS_EACH))
    return Examples(
        "text",
        [" ".join(f"w{word}x" for word in row) for row in words],
        [tuple(sorted({f"l{label:03}" for label in row})) for row in labels],
    )


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU time of a call in milliseconds, over all threads, and its result."""
    start = time.process_time()
    result = work()
    return 1e3 * (time.process_time() - start), result


def print_times() -> None:
    """Print the CPU time of versions from batches of 1, 100 and 200 documents, as in the service."""
    rng = np.random.default_rng(0)
    training = random_examples(rng, N_DOCUMENTS)
    print(f"{N_WORDS:,} words, {N_LABELS} labels; CPU milliseconds, fastest of {REPEATS}")
    print(f"{'learner':<28} {'batch':>5} {'learn':>7} {'save':>7} {'load':>7} {'sum':>7}")
    with tempfile.TemporaryDirectory() as folder:
        path, child_path = Path(folder) / "parent.covey", Path(folder) / "child.covey"
        for algorithm in LEARNERS:
            artifact.save(pipeline({}, {"algorithm": algorithm}, {"kind": "auto"}).fit(training), path)
            parent = artifact.load(path)
            for n in (1, 100, 200):
                batch = random_examples(rng, n)
                best: list[float] = []
                for _ in range(REPEATS):
                    learn, child = cpu(partial(partial_fit, parent, batch.documents, batch.labels))
                    save, _ = cpu(partial(artifact.save, child, child_path))
                    load, _ = cpu(partial(artifact.load, child_path))
                    best = min(best or [np.inf], [learn + save + load, learn, save, load])
                total, learn, save, load = best
                print(
                    f"{algorithm:<28} {n:>5} {learn:>7.0f} {save:>7.0f} {load:>7.0f} {total:>7.0f}",
                    flush=True,
                )


def print_quality(corpus: str, size: int) -> None:
    """Print micro F1 and wrong label sets on test documents, means of two random samples.

    The columns are the first version, its thresholds with the scores of the updated learner, the version
    after the partial fit, and a training with all documents. The first version has 60 % of the documents; the
    batches are all others, or at most 50 on which it is wrong.
    """
    print(f"{corpus}, {size} documents; micro F1 and wrong label sets in %")
    columns = ("first", "kept", "partial fit", "complete")
    print(f"{'learner':<28} {'batch':>5} " + " ".join(f"{column:>11}" for column in columns))
    examples = EXAMPLES[corpus]()
    for algorithm in catalog.INCREMENTAL_LEARNERS:
        samples = [_quality(examples, size, seed, algorithm) for seed in range(2)]
        for batch in samples[0]:
            means = np.mean([sample[batch] for sample in samples], axis=0)
            cells = " ".join(f"{f1:>6.3f} {100 * wrong:>4.0f}" for f1, wrong in means)
            print(f"{algorithm:<28} {batch:>5} {cells}", flush=True)


def _quality(
    examples: Examples, size: int, seed: int, algorithm: str
) -> dict[str, list[tuple[float, float]]]:
    rows = np.random.default_rng(seed).permutation(examples.n_examples)
    first, more, test = np.split(rows[: size + 1_000], [size * 6 // 10, size])

    def part(chosen: Any) -> Examples:
        return examples.where(np.isin(np.arange(len(rows)), chosen))

    def fit(chosen: Any) -> Pipeline:
        return pipeline(PIVOTED, {"algorithm": algorithm}, seed=seed).fit(part(chosen))

    def relevant(of: Pipeline, chosen: Any) -> Bools:
        matrix: Bools = indicator_matrix(part(chosen).labels, of.labels_).toarray() != 0
        return matrix

    parent, complete = fit(first), fit(rows[:size])
    more = np.sort(more)
    predicted = parent.rule_.predicted(parent.scores(part(more)))
    wrong = more[(predicted != relevant(parent, more)).any(axis=1)][:50]
    documents, truth = part(test).documents, relevant(parent, test)

    def of_decision(rule: Any, scores: Any, truth: Bools) -> tuple[float, float]:
        return quality(rule.predicted(scores), truth)

    results = {}
    for name, batch in (("all", more), ("wrong", wrong)):
        sets = [sorted({*parent.labels_}.intersection(labels)) for labels in part(batch).labels]
        child = partial_fit(parent, part(batch).documents, sets)
        scores = child.scores(documents)
        results[name] = [
            of_decision(parent.rule_, parent.scores(documents), truth),
            of_decision(parent.rule_, scores, truth),
            of_decision(child.rule_, scores, truth),
            of_decision(complete.rule_, complete.scores(documents), relevant(complete, test)),
        ]
    return results
