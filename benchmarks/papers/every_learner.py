"""Every learner on Reuters-21578, compared with scikit-learn's one-vs-rest linear SVM."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from benchmarks.corpora import Json, indicator, jsonl, labels_of, records, reuters_90
from benchmarks.papers.bench import Bench
from benchmarks.papers.frame import Part, Tables, table
from models.arrays import AnyArray, Bools
from models.decisions import HeldOut
from models.decisions.tune import tuned_thresholds
from models.measures.evaluation import evaluate
from models.splits import stratified_folds

MEASURES = ("f1_micro", "f1_macro_one", "f1_macro_zero")

ANALYZER: Json = {"lowercase": True, "drop_numbers": True, "stemmer": "porter"}

WEIGHTS: Json = {"kind": "text", "weighting": "pivoted", "scaling": "unit", "analyzer": ANALYZER}
COUNTS: Json = {"kind": "text", "weighting": "tf", "analyzer": {**ANALYZER, "stop_words": "english"}}
PRESENCE: Json = {**COUNTS, "weighting": "binary"}


@dataclass(frozen=True)
class Setup:
    """A learner with suitable features.

    Attributes:
        zero: whether its scores have a natural zero, which ``sign`` requires.
        fbr: parameter of ``tuned_threshold``.
    """

    learner: Json
    features: Json = field(default_factory=lambda: WEIGHTS)
    zero: bool = True
    fbr: float = 0.1

    def configurations(self) -> dict[str, Json]:
        """Return the configurations by decision."""
        decisions: dict[str, Json] = {"sign": {"kind": "sign"}} if self.zero else {}
        decisions["tuned_threshold"] = {"kind": "tuned_threshold", "fbr": self.fbr}
        return {
            kind: {"learner": self.learner, "features": self.features, "decision": decision}
            for kind, decision in decisions.items()
        }


SETUPS = {
    "`adaboost_mh`": Setup({"algorithm": "adaboost_mh", "rounds": 200}, PRESENCE),
    "`mp_boost`": Setup({"algorithm": "mp_boost", "rounds": 200}, PRESENCE),
    "`adaboost_lc`": Setup({"algorithm": "adaboost_lc", "rounds": 200}),
    "`mmp`": Setup({"algorithm": "mmp", "epochs": 5}, zero=False),
    "`mlpp`, calibrated": Setup({"algorithm": "mlpp", "epochs": 5, "calibrated": True}),
    "`binary_relevance_perceptron`": Setup({"algorithm": "binary_relevance_perceptron", "epochs": 5}),
    "`naive_bayes`": Setup({"algorithm": "naive_bayes"}, COUNTS),
    "`svm`": Setup({"algorithm": "svm"}),
    "`svm`, C .5, fbr .3": Setup({"algorithm": "svm", "C": 0.5}, fbr=0.3),
    "`h_svm`": Setup({"algorithm": "h_svm"}),
    "`h_rls`": Setup({"algorithm": "h_rls"}),
    "`h_m3`": Setup({"algorithm": "h_m3", "loss": "symmetric_difference"}),
}

DECISIONS = ("sign", "tuned_threshold")
N_FOLDS = 3
FBR = 0.1
REFERENCE = "scikit-learn's SVM"

Rows = dict[str, dict[str, dict[str, float]]]
"""Measures and ``seconds`` by row and decision."""


def _measure(name: str, read: Callable[[], list[Json]], bench: Bench) -> Json:
    """Return measures by row and decision, the rows above scikit-learn, and the relative time of ``svm``."""
    rows = _ours(bench, bench.dataset(name, lambda: jsonl(read())))
    theirs = rows[REFERENCE] = _scikit_learn(read())
    return {
        "rows": {
            name: {decision: {m: result[m] for m in MEASURES} for decision, result in row.items()}
            for name, row in rows.items()
        },
        "above": {
            decision: [
                name
                for name, row in rows.items()
                if name != REFERENCE
                and decision in row
                and all(row[decision][m] >= theirs[decision][m] for m in MEASURES[:2])
            ]
            for decision in DECISIONS
        },
        "svm_seconds": {d: rows["`svm`"][d]["seconds"] / theirs[d]["seconds"] for d in DECISIONS},
    }


def _ours(bench: Bench, dataset: str) -> Rows:
    """Run each setup with both decisions. SVMs run one at a time, because their training time is compared."""
    names = [name for name in SETUPS if not bench.quick or name in ("`mp_boost`", "`svm`")]
    keys = [(name, decision) for name in names for decision in SETUPS[name].configurations()]
    alone = [[key] for key in keys if SETUPS[key[0]].learner["algorithm"] == "svm"]
    rows: Rows = {name: {} for name in names}
    for some in [*alone, [key for key in keys if [key] not in alone]]:
        configurations = [SETUPS[name].configurations()[decision] for name, decision in some]
        report = bench.experiment(dataset, configurations, MEASURES)
        for (name, decision), row in zip(some, report["rows"], strict=True):
            result = {measure: row["test"][measure]["mean"] for measure in MEASURES}
            rows[name][decision] = {**result, "seconds": row["fit_seconds"]["mean"]}
    return {name: {d: row[d] for d in DECISIONS if d in row} for name, row in rows.items()}


def _scikit_learn(rows: list[Json]) -> dict[str, dict[str, float]]:
    """Train a one-vs-rest LinearSVC on TfidfVectorizer's defaults, and tune thresholds as Covey does."""
    training, test = ([row for row in rows if row["split"] == part] for part in ("train", "test"))
    labels = labels_of(training)
    Y, truth = indicator(training, labels), indicator(test, labels)
    train_sets: Bools = Y.toarray() != 0
    vectorizer = TfidfVectorizer()
    X = vectorizer.fit_transform([row["text"] for row in training])
    X_test = vectorizer.transform([row["text"] for row in test])

    def fitted(which: Bools) -> OneVsRestClassifier:
        with warnings.catch_warnings():
            # A label can have no example outside a fold; its scores are set below.
            warnings.filterwarnings("ignore", message="Label not .* is present")
            return OneVsRestClassifier(LinearSVC()).fit(X[which], train_sets[which].astype(int))

    clock = time.perf_counter()
    machine = fitted(np.ones(len(training), dtype=bool))
    seconds = {"sign": time.perf_counter() - clock}
    fold_of = stratified_folds(Y, N_FOLDS, seed=0)
    held_out = np.zeros(train_sets.shape)
    for fold in range(N_FOLDS):
        scores: AnyArray = fitted(fold_of != fold).decision_function(X[fold_of == fold]).astype(np.float64)
        scores[:, ~train_sets[fold_of != fold].any(axis=0)] = -1.0
        held_out[fold_of == fold] = scores
    tunable = train_sets.sum(axis=0) >= N_FOLDS
    examples = HeldOut(held_out, Y, None, fold_of, tunable)
    tuned = tuned_thresholds(examples, default=0.0, fbr=FBR)
    seconds["tuned_threshold"] = time.perf_counter() - clock
    scores = machine.decision_function(X_test)
    return {
        decision: {
            **evaluate(truth, csr_array(scores > thresholds), scores, labels).measures,
            "seconds": seconds[decision],
        }
        for decision, thresholds in (("sign", 0), ("tuned_threshold", tuned))
    }


def _tables(figures: Json) -> Tables:
    columns = [(decision, measure) for decision in DECISIONS for measure in MEASURES]
    for result in figures.values():
        ours = [row for name, row in result["rows"].items() if name != REFERENCE]
        best = {(d, m): max(row[d][m] for row in ours if d in row) for d, m in columns}
        rows = []
        for name, row in result["rows"].items():
            cells = []
            for decision, measure in columns:
                value = row.get(decision, {}).get(measure)
                mark = "**" if value is not None and value >= best[decision, measure] else ""
                cells.append("–" if value is None else f"{mark}{value:.3f}{mark}")
            rows.append([name, *cells])
        yield table(["", *(f"`{decision}` {measure}" for decision, measure in columns)], rows)


PARTS = {
    "every_learner": Part(
        {
            "all": partial(_measure, "Reuters-21578, 115 labels", lambda: list(records("reuters21578"))),
            "both": partial(_measure, "Reuters-21578, 90 labels", reuters_90),
        },
        _tables,
    )
}
