"""Costs that are stored and shown in tables: threads, weights, bins of thresholds, single documents."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.multiclass import OneVsRestClassifier

from benchmarks.corpora import EXAMPLES, Json, reuters, split
from benchmarks.recipes import pipeline
from benchmarks.tables import Result, figure, markdown
from models import catalog
from models.arrays import Vector
from models.baselines.coefficients import CoefficientColumns, Compression, coefficients_state
from models.boosting.adaboost_mh import AdaBoostMH
from models.boosting.mp_boost import MPBoost
from models.data.examples import Examples
from models.features import TextFeatures
from models.pipeline import Pipeline, read_documents

PIVOTED = {"weighting": "pivoted", "scaling": "unit"}


@dataclass(frozen=True)
class Study:
    """A table of costs.

    Attributes:
        measure: yields the results, each with its ``case``; the argument is the number of repeats.
        head: heads of the columns.
        row: returns the cells of a result.
        repeats: number of repeats; the fastest counts.
        page: the page of the table.
    """

    measure: Callable[[int], Iterator[Result]]
    head: Sequence[str]
    row: Callable[[Result], Sequence[str]]
    repeats: int

    def table(self, found: Sequence[Result]) -> str:
        """Return the table of results."""
        return markdown(self.head, map(self.row, found))


def threads(repeats: int) -> Iterator[Result]:
    """Yield the elapsed time of ``svm`` with one thread and with two, and whether the weights are equal.

    The corpora have more examples than features; others are trained by one thread. Needs two idle cores.
    """
    for corpus in ("ohsumed", "bibtex", "tmc2007-500"):
        training, _ = split(EXAMPLES[corpus]())
        seconds: dict[int, list[float]] = {1: [], 2: []}
        states = {}
        for _ in range(repeats):
            for n_jobs, times in seconds.items():
                created = pipeline(
                    {"kind": "numeric", "scaling": "max_abs"}, {"algorithm": "svm"}, {"kind": "sign"}
                )
                start = time.perf_counter()
                fitted = created.fit(training, n_jobs=n_jobs)
                times.append(time.perf_counter() - start)
                states[n_jobs] = fitted.get_state()
        yield {
            "case": corpus,
            "examples": training.n_examples,
            "features": fitted.learner_.n_features_in_,
            "labels": len(fitted.labels_),
            **{f"seconds_{n_jobs}": round(min(times), 2) for n_jobs, times in seconds.items()},
            "same_bits": all(np.array_equal(states[1][name], states[2][name]) for name in states[1]),
        }


def _threads_row(result: Result) -> list[str]:
    size = f"{result['examples']:,} × {result['features']:,}, {result['labels']} labels"
    times = [f"{result[name]:.1f} s" for name in ("seconds_1", "seconds_2")]
    return [result["case"], size, *times, "yes" if result["same_bits"] else "no"]


COMPRESSIONS: dict[str, dict[str, Any]] = {
    "float64": {},
    "`float32`": {"precision": "float32"},
    "`prune` .01": {"prune": 0.01},
    "`prune` .01, `float32`": {"prune": 0.01, "precision": "float32"},
    "`prune` .05": {"prune": 0.05},
}
TITLES = {"reuters": "Reuters-21578", "lists": "mailing lists"}
N_SCORED = 400


def stored_weights(repeats: int) -> Iterator[Result]:
    """Yield for each way to store the weights of one trained ``svm``: bytes, changed decisions, and time."""
    for corpus in TITLES:
        training, test = split(EXAMPLES[corpus]())
        fitted = pipeline(PIVOTED, {"algorithm": "svm"}, {"kind": "sign"}).fit(training)
        X = fitted.features_.transform(read_documents(test.documents))
        state = fitted.learner_.get_state()
        reference = fitted.learner_.decision_function(X) > 0
        ends = X.indptr.tolist()
        rows = [slice(ends[i], ends[i + 1]) for i in range(min(N_SCORED, X.shape[0]))]
        vectors = [Vector(X.indices[row].astype(np.int64), X.data[row]) for row in rows]
        learners = {}
        for name, stored_as in COMPRESSIONS.items():
            r, k = state["coef"].shape
            columns = CoefficientColumns(r, k, Compression(**stored_as))
            for j in range(k):
                columns.append(j, state["coef"][:, j])
            parameters = catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "svm", **stored_as})
            learners[name] = catalog.create_learner(parameters)
            learners[name].set_state(
                {**coefficients_state(columns.finish()), "intercept": state["intercept"]}
            )
        seconds = dict.fromkeys(learners, 0.0)
        for _ in range(repeats):  # in turns, so that other work on the machine slows all of them
            for name, learner in learners.items():
                start = time.process_time()
                for vector in vectors:
                    learner.score_one(vector)
                seconds[name] += time.process_time() - start
        for name, learner in learners.items():
            yield {
                "case": f"{corpus}, {name}",
                "corpus": corpus,
                "features": X.shape[1],
                "labels": reference.shape[1],
                "bytes": sum(array.nbytes for array in learner.get_state().values()),
                "decisions": reference.size,
                "changed": int(((learner.decision_function(X) > 0) != reference).sum()),
                "time_of_a_document": round(seconds[name] / seconds["float64"], 2),
            }


def _stored_weights_row(result: Result) -> list[str]:
    return [
        TITLES[result["corpus"]],
        result["case"].removeprefix(f"{result['corpus']}, "),
        f"{result['bytes'] / 1e6:.1f} MB",
        f"{result['changed']} of {result['decisions']:,}",
        f"{result['time_of_a_document']:.2f}",
    ]


N_EXAMPLES, N_FEATURES, N_LABELS, ROUNDS = 20_000, 50, 10, 60


def threshold_bins(_: int) -> Iterator[Result]:
    """Yield CPU time and Hamming loss of stumps in bins, of the exact search, and of scikit-learn's stumps.

    20,000 examples with 50 normal features and 10 labels that depend on a fifth of the features each. The
    exact search takes minutes.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * N_EXAMPLES, N_FEATURES))
    rule = rng.normal(size=(N_FEATURES, N_LABELS)) * (rng.random((N_FEATURES, N_LABELS)) < 0.2)
    Y = (X @ rule + rng.normal(size=(2 * N_EXAMPLES, N_LABELS)) > 1).astype(int)
    stumps = HistGradientBoostingClassifier(max_iter=ROUNDS, max_leaf_nodes=2, early_stopping=False)
    learners: dict[str, Any] = {"scikit-learn, `HistGradientBoostingClassifier`": OneVsRestClassifier(stumps)}
    for name, learner in (("adaboost_mh", AdaBoostMH), ("mp_boost", MPBoost)):
        for bins in (16, 64, 256, None):
            how = "exact" if bins is None else f"{bins} bins"
            learners[f"`{name}`, {how}"] = learner(rounds=ROUNDS, stump="threshold", bins=bins)
    for name, learner in learners.items():
        start = time.process_time()
        learner.fit(X[:N_EXAMPLES], Y[:N_EXAMPLES])
        seconds = time.process_time() - start
        loss = float((learner.predict(X[N_EXAMPLES:]) != Y[N_EXAMPLES:]).mean())
        yield {"case": name, "seconds": round(seconds, 2), "hamming_loss": round(loss, 5)}


def _threshold_bins_row(result: Result) -> list[str]:
    return [result["case"], f"{result['seconds']:.1f} s", figure(result["hamming_loss"], 4)]


SELECTED = {"weighting": "binary", "selection": {"kind": "information_gain"}}
MODELS: dict[str, tuple[Json, Json]] = {
    "mp_boost": (SELECTED, {"algorithm": "mp_boost", "rounds": 200}),
    "svm": (PIVOTED, {"algorithm": "svm"}),
    "svm, hashing": ({**PIVOTED, "hashing": {}}, {"algorithm": "svm"}),
}
TEXT_CHARACTERS = range(700, 901)
N_TEXTS, BATCH = 100, 500


def single_document(repeats: int) -> Iterator[Result]:
    """Yield the CPU microseconds of each layer of a prediction for one text of Reuters-21578, by model.

    The layers take turns, so that other work on the machine slows all of them. "Batch" is the same work for
    500 texts at once, for each of them.
    """
    rows = reuters("train")
    training = Examples("text", [row["text"] for row in rows], [tuple(row["labels"]) for row in rows])
    texts = [row["text"] for row in reuters("test") if len(row["text"]) in TEXT_CHARACTERS][:N_TEXTS]
    layers: dict[str, dict[str, float]] = {}
    for name, (features, learner) in MODELS.items():
        for layer, micros in _layers(pipeline(features, learner).fit(training), texts, repeats).items():
            layers.setdefault(layer, {})[name] = micros
    for layer, by_model in layers.items():
        yield {"case": layer, **by_model}


def _layers(fitted: Pipeline, texts: list[str], repeats: int) -> dict[str, float]:
    n, features, calibration = len(texts), fitted.features_, fitted.calibration_
    assert isinstance(features, TextFeatures)
    batch = (texts * (BATCH // n + 1))[:BATCH]
    vectors = [vector for text in texts if (vector := features.vector(text)) is not None]

    def without_probabilities() -> None:
        fitted.calibration_ = None
        for text in texts:
            fitted.rank([text])
        fitted.calibration_ = calibration

    work: dict[str, tuple[Callable[[], object], int]] = {
        "features, `vector`": (lambda: [features.vector(t) for t in texts], n),
        "scores, `score_one`": (lambda: [fitted.learner_.score_one(x) for x in vectors], n),
        "`rank` without probabilities": (without_probabilities, n),
        "`rank`": (lambda: [fitted.rank([t]) for t in texts], n),
        "`predict`, five labels": (lambda: [fitted.predictions([t], top=5) for t in texts], n),
        "the same with explanations": (
            lambda: [fitted.predictions([t], top=5, explain=True) for t in texts],
            n,
        ),
        "`rank`, batch": (lambda: fitted.rank(batch), len(batch)),
    }
    times = dict.fromkeys(work, math.inf)
    for call, _ in work.values():
        call()  # caches the analysis of words
    for _ in range(repeats):
        for layer, (call, per) in work.items():
            start = time.process_time()
            call()
            times[layer] = min(times[layer], (time.process_time() - start) * 1e6 / per)
    return {layer: round(micros, 1) for layer, micros in times.items()}


def _single_document_row(result: Result) -> list[str]:
    return [result["case"], *(f"{result[name]:.0f}" for name in MODELS)]


STUDIES = {
    "threads": Study(threads, ("corpus", "size", "one thread", "two threads", "same bits"), _threads_row, 3),
    "stored_weights": Study(
        stored_weights,
        ("corpus", "weights", "size", "changed decisions", "time for a document"),
        _stored_weights_row,
        5,
    ),
    "threshold_bins": Study(threshold_bins, ("learner", "CPU time", "Hamming loss"), _threshold_bins_row, 1),
    "single_document": Study(
        single_document,
        ("layer", *(f"`{name}`" for name in MODELS)),
        _single_document_row,
        20,
    ),
}
