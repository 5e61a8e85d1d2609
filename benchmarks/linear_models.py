"""Measure class weights and stored weights of ``svm`` and ``naive_bayes``.

    python -m benchmarks.linear_models [--corpus NAME ...]

Stores the results and writes two tables into ``docs/learners.md``. The first shows F1 on the test part with
and without ``class_weight: balanced``. Macro F1 counts 0 for a label that is never predicted correctly. The
second shows the bytes of the weights of ``svm``, the decisions of the test part that differ from float64
without pruning, and the CPU time to score one document relative to float64. ``COVEY_DATA`` is the folder of
the corpora (default: ``../shared/data``).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import tables
from benchmarks.calibration_scores import split
from benchmarks.multilabel_corpora import CORPORA
from benchmarks.tables import Result
from models import catalog
from models.arrays import Vector
from models.baselines.coefficients import CoefficientColumns, Compression, coefficients_state
from models.data.examples import Examples
from models.pipeline import Pipeline, read_documents

RECIPE = {"kind": "text", "weighting": "pivoted", "scaling": "unit"}
LEARNERS = {"svm": RECIPE, "naive_bayes": {"kind": "text", "weighting": "tf"}}
DECISIONS = ("sign", "tuned_threshold", "auto")
TITLES = {"reuters": "Reuters-21578", "lists": "mailing lists"}
COMPRESSIONS: dict[str, dict[str, Any]] = {
    "float64": {},
    "`float32`": {"precision": "float32"},
    "`prune` .01": {"prune": 0.01},
    "`prune` .01, `float32`": {"prune": 0.01, "precision": "float32"},
    "`prune` .05": {"prune": 0.05},
}
SCORED = 400
REPEATS = 5
NAME = "linear_models"
PAGE = tables.DOCS / "learners.md"


def pipeline(learner: dict[str, Any], features: dict[str, Any], decision: str) -> Pipeline:
    """Create an unfitted pipeline."""
    return Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python(features),
        catalog.LEARNER_PARAMETERS.validate_python(learner),
        catalog.DECISION_PARAMETERS.validate_python({"kind": decision}),
    )


def measure_class_weights(corpus: str, train: Examples, test: Examples) -> Iterator[Result]:
    """Yield a result for each learner, decision and class weight."""
    for algorithm, features in LEARNERS.items():
        for decision in DECISIONS:
            for class_weight in ("none", "balanced"):
                learner = {"algorithm": algorithm, "class_weight": class_weight}
                measures = pipeline(learner, features, decision).fit(train).evaluate(test).measures
                yield {
                    "corpus": corpus,
                    "what": f"{algorithm}, {decision}, {class_weight}",
                    "f1_micro": round(measures["f1_micro"], 4),
                    "f1_macro_zero": round(measures["f1_macro_zero"], 4),
                }


def measure_stored_weights(corpus: str, train: Examples, test: Examples) -> Iterator[Result]:
    """Yield a result for each way to store the weights of one trained ``svm``."""
    fitted = pipeline({"algorithm": "svm"}, RECIPE, "sign").fit(train)
    X = fitted.features_.transform(read_documents(test.documents))
    state = fitted.learner_.get_state()
    reference = fitted.learner_.decision_function(X) > 0
    ends = X.indptr.tolist()
    rows = [slice(ends[i], ends[i + 1]) for i in range(min(SCORED, X.shape[0]))]
    vectors = [Vector(X.indices[row].astype(np.int64), X.data[row]) for row in rows]
    learners = {}
    for name, stored_as in COMPRESSIONS.items():
        r, k = state["coef"].shape
        columns = CoefficientColumns(r, k, Compression(**stored_as))
        for j in range(k):
            columns.append(j, state["coef"][:, j])
        learner = catalog.create_learner(
            catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "svm", **stored_as})
        )
        learner.set_state({**coefficients_state(columns.finish()), "intercept": state["intercept"]})
        learners[name] = learner
    seconds = dict.fromkeys(learners, 0.0)
    for _ in range(REPEATS):  # in turns, so that other work on the machine slows all of them
        for name, learner in learners.items():
            start = time.process_time()
            for vector in vectors:
                learner.score_one(vector)
            seconds[name] += time.process_time() - start
    for name, learner in learners.items():
        yield {
            "corpus": corpus,
            "what": f"stored: {name}",
            "features": X.shape[1],
            "labels": reference.shape[1],
            "bytes": sum(array.nbytes for array in learner.get_state().values()),
            "decisions": reference.size,
            "changed": int(((learner.decision_function(X) > 0) != reference).sum()),
            "time_of_a_document": round(seconds[name] / seconds["float64"], 2),
        }


def rendered() -> dict[str, str]:
    """Return the tables of the page."""
    found = {(result["corpus"], result["what"]): result for result in tables.stored(NAME)}
    weights = [
        [
            TITLES[corpus],
            f"`{algorithm}`, `{decision}`",
            *(
                tables.figure(found[corpus, f"{algorithm}, {decision}, {class_weight}"][measure])
                for measure in ("f1_micro", "f1_macro_zero")
                for class_weight in ("none", "balanced")
            ),
        ]
        for corpus in TITLES
        for algorithm in LEARNERS
        for decision in DECISIONS
    ]
    stored_as = [
        [
            TITLES[corpus],
            name,
            f"{result['bytes'] / 1e6:.1f} MB",
            f"{result['changed']} of {result['decisions']:,}",
            f"{result['time_of_a_document']:.2f}",
        ]
        for corpus in TITLES
        for name in COMPRESSIONS
        for result in [found[corpus, f"stored: {name}"]]
    ]
    balanced = "with `balanced`"
    return {
        "class_weights": tables.markdown(
            ["corpus", "learner and decision", "micro F1", balanced, "macro F1", balanced], weights
        ),
        "stored_weights": tables.markdown(
            ["corpus", "weights", "size", "changed decisions", "time for a document"], stored_as
        ),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", nargs="*", default=list(TITLES), choices=TITLES)
    for corpus_name in parser.parse_args().corpus:
        training_part, test_part = split(CORPORA[corpus_name](), "given", 0)
        for measure in (measure_class_weights, measure_stored_weights):
            for measured in measure(corpus_name, training_part, test_part):
                print(measured, flush=True)
                tables.store(NAME, [measured], ("corpus", "what"))
    tables.show(PAGE, rendered())
