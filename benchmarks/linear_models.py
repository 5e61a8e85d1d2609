"""Measure class weights and stored weights of ``svm`` and ``naive_bayes``.

    python benchmarks/linear_models.py [--corpus NAME ...]

Prints two tables. The first shows F1 on the test part with and without ``class_weight: balanced``. Macro F1
with zero counts 0 for a label that is never predicted correctly. The second shows the bytes of the weights of
``svm``, the decisions of the test part that differ from float64 without pruning, and the CPU time to score
one document. ``COVEY_DATA`` is the folder of the corpora (default: ``../shared/data``).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from models import catalog
from models.arrays import Vector
from models.baselines.coefficients import CoefficientColumns, Compression, coefficients_state
from models.data.examples import Examples
from models.pipeline import Pipeline, read_documents

DATA = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))
RECIPE = {"kind": "text", "weighting": "pivoted", "scaling": "unit"}
LEARNERS = {"svm": RECIPE, "naive_bayes": {"kind": "text", "weighting": "tf"}}
STORED: list[dict[str, Any]] = [
    {},
    {"precision": "float32"},
    {"prune": 0.01},
    {"prune": 0.01, "precision": "float32"},
    {"prune": 0.05},
]
SCORED = 400


def parts(corpus: str) -> tuple[Examples, Examples]:
    """Return the training part and the test part of a corpus."""
    with gzip.open(DATA / f"{corpus}.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    labels = [tuple(sorted(set(record["labels"]))) for record in records]
    whole = Examples("text", [record["text"] for record in records], labels)
    mask = np.array([record["split"] == "train" for record in records])
    return whole.where(mask), whole.where(~mask)


def pipeline(learner: dict[str, Any], features: dict[str, Any], decision: str) -> Pipeline:
    """Create an unfitted pipeline."""
    return Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python(features),
        catalog.LEARNER_PARAMETERS.validate_python(learner),
        catalog.DECISION_PARAMETERS.validate_python({"kind": decision}),
    )


def compare_class_weights(corpus: str, train: Examples, test: Examples) -> None:
    """Print a row for each learner, class weight and decision."""
    print(
        "| corpus | learner | decision | class weight | micro F1 | macro F1 with zero |\n" + "|---" * 6 + "|"
    )
    for algorithm, features in LEARNERS.items():
        for decision in ("sign", "tuned_threshold"):
            for class_weight in ("none", "balanced"):
                learner = {"algorithm": algorithm, "class_weight": class_weight}
                measures = pipeline(learner, features, decision).fit(train).evaluate(test).measures
                micro, macro = measures["f1_micro"], measures["f1_macro_zero"]
                row = f"| {corpus} | `{algorithm}` | `{decision}` | `{class_weight}` "
                print(f"{row}| {micro:.3f} | {macro:.3f} |", flush=True)


def compare_stored_weights(corpus: str, train: Examples, test: Examples) -> None:
    """Print a row for each way to store the weights of one trained ``svm``."""
    fitted = pipeline({"algorithm": "svm"}, RECIPE, "sign").fit(train)
    X = fitted.features.transform(read_documents(test.documents))
    state = fitted.learner.get_state()
    reference = fitted.learner.decision_function(X) > 0
    print("\n| corpus | stored | megabytes | changed decisions | µs for a document |\n" + "|---" * 5 + "|")
    ends = X.indptr.tolist()
    rows = [slice(ends[i], ends[i + 1]) for i in range(min(SCORED, X.shape[0]))]
    vectors = [Vector(X.indices[row].astype(np.int64), X.data[row]) for row in rows]
    for stored in STORED:
        compression = Compression(**stored)
        r, k = state["coef"].shape
        columns = CoefficientColumns(r, k, compression)
        for j in range(k):
            columns.append(j, state["coef"][:, j])
        learner = catalog.create_learner(
            catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "svm", **stored})
        )
        learner.set_state({**coefficients_state(columns.finish()), "intercept": state["intercept"]})
        changed = int(((learner.decision_function(X) > 0) != reference).sum())
        start = time.process_time()
        for vector in vectors:
            learner.score_one(vector)
        seconds = (time.process_time() - start) / len(vectors)
        size = sum(array.nbytes for array in learner.get_state().values())
        name = ", ".join(f"{key} {value}" for key, value in stored.items()) or "float64"
        row = f"| {corpus} | {name} | {size / 1e6:.1f} | {changed} of {reference.size:,} "
        print(f"{row}| {seconds * 1e6:.0f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", nargs="*", default=["reuters21578", "spamassassin_lists"])
    for corpus_name in parser.parse_args().corpus:
        training_part, test_part = parts(corpus_name)
        compare_class_weights(corpus_name, training_part, test_part)
        compare_stored_weights(corpus_name, training_part, test_part)
