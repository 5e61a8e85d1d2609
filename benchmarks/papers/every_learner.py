"""Every learner on Reuters-21578, compared with scikit-learn's one-vs-rest linear SVM."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from benchmarks.papers import corpora
from benchmarks.papers.bench import Bench, Json
from benchmarks.papers.results import table
from models.arrays import AnyArray, Bools
from models.decisions import HeldOut
from models.decisions.tune import tuned_thresholds
from models.measures.evaluation import evaluate
from models.splits import stratified_folds

TITLE = "Every learner on Reuters-21578"

MEASURES = ("f1_micro", "f1_macro", "f1_macro_zero")

ANALYZER: Json = {"lowercase": True, "drop_numbers": True, "stemmer": "porter"}

WEIGHTS: Json = {"kind": "text", "weighting": "pivoted", "scaling": "unit", "analyzer": ANALYZER}
COUNTS: Json = {"kind": "text", "weighting": "tf", "analyzer": {**ANALYZER, "stop_words": "english"}}
PRESENCE: Json = {**COUNTS, "weighting": "binary"}


@dataclass(frozen=True)
class Setup:
    """A learner with suitable features.

    Attributes:
        name: name in the table.
        zero: whether its scores have a natural zero, which ``sign`` requires.
        fbr: parameter of ``tuned_threshold``.
    """

    name: str
    learner: Json
    features: Json
    zero: bool = True
    fbr: float = 0.1


SETUPS = (
    Setup("`adaboost_mh`", {"algorithm": "adaboost_mh", "rounds": 200}, PRESENCE),
    Setup("`mp_boost`", {"algorithm": "mp_boost", "rounds": 200}, PRESENCE),
    Setup("`adaboost_lc`", {"algorithm": "adaboost_lc", "rounds": 200}, WEIGHTS),
    Setup("`mmp`", {"algorithm": "mmp", "epochs": 5}, WEIGHTS, zero=False),
    Setup("`mlpp`, calibrated", {"algorithm": "mlpp", "epochs": 5, "calibrated": True}, WEIGHTS),
    Setup(
        "`binary_relevance_perceptron`", {"algorithm": "binary_relevance_perceptron", "epochs": 5}, WEIGHTS
    ),
    Setup("`naive_bayes`", {"algorithm": "naive_bayes"}, COUNTS),
    Setup("`svm`", {"algorithm": "svm"}, WEIGHTS),
    Setup("`svm`, C .5, fbr .3", {"algorithm": "svm", "C": 0.5}, WEIGHTS, fbr=0.3),
    Setup("`h_svm`", {"algorithm": "h_svm"}, WEIGHTS),
    Setup("`h_rls`", {"algorithm": "h_rls"}, WEIGHTS),
    Setup("`h_m3`", {"algorithm": "h_m3", "loss": "symmetric_difference"}, WEIGHTS),
)

DECISIONS = ("sign", "tuned_threshold")
N_FOLDS = 3
FBR = 0.1


@dataclass(frozen=True)
class Result:
    """F1 and training time of one configuration."""

    measures: dict[str, float]
    seconds: float


CORPORA: dict[str, tuple[str, Callable[[], bytes]]] = {
    "all": ("Reuters-21578, 115 labels", corpora.reuters),
    "both": ("Reuters-21578, 90 labels", corpora.reuters_90),
}
"""Titles and contents by name of the result."""

REFERENCE = "scikit-learn's SVM"


def _measure(name: str, content: Callable[[], bytes], bench: Bench) -> Json:
    """Return measures and training seconds by row and decision."""
    ours = _ours(bench, bench.dataset(name, content))
    rows: Json = {setup.name: {} for setup in SETUPS if any(key[0] == setup.name for key in ours)}
    for (row, decision), result in ours.items():
        rows[row][decision] = asdict(result)
    rows[REFERENCE] = {decision: asdict(result) for decision, result in _scikit_learn(content()).items()}
    seconds = {
        decision: rows["`svm`"][decision]["seconds"] / rows[REFERENCE][decision]["seconds"]
        for decision in DECISIONS
    }
    theirs = rows[REFERENCE]
    above = {
        decision: [
            name
            for name, row in rows.items()
            if name != REFERENCE
            and decision in row
            and all(row[decision]["measures"][m] >= theirs[decision]["measures"][m] for m in MEASURES[:2])
        ]
        for decision in DECISIONS
    }
    return {
        "rows": {
            name: {decision: result["measures"] for decision, result in results.items()}
            for name, results in rows.items()
        },
        "above": above,
        "svm_seconds": seconds,
    }


RESULTS = {name: partial(_measure, *about) for name, about in CORPORA.items()}


def render(figures: dict[str, Json]) -> str:
    """Return a table per set of labels."""
    tables = "\n\n".join(_table(CORPORA[name][0], found) for name, found in figures.items())
    return f"""\
All figures are for the test part of the ModApte split. The 90 labels are those that occur in both parts. With 90 labels,
stories without any of them are omitted, as is usual. Boosting uses the presence of terms and naive Bayes uses their counts,
both without stop words. The other learners use `pivoted` weights scaled to unit length. Numbers are dropped, and words are
stemmed with Porter's algorithm. The labels have no tree, so the hierarchical learners treat each label as a root. For a
label that neither occurs nor is predicted, `f1_macro` counts 1 and `f1_macro_zero` counts 0.

{tables}

The parameters of the second `svm` were selected on this test part from some values of `C` and two of `fbr`.
Therefore a difference of a few thousandths between the two is meaningless.
"""


def _ours(bench: Bench, dataset: str) -> dict[tuple[str, str], Result]:
    """Run each setup with both decisions. SVMs run one at a time, because their training time is compared."""
    setups = [setup for setup in SETUPS if not bench.quick or setup.name in ("`mp_boost`", "`svm`")]
    pairs = [
        (setup.name, decision, configuration)
        for setup in setups
        for decision, configuration in _configurations(setup).items()
    ]
    alone = [[pair] for pair in pairs if pair[2]["learner"]["algorithm"] == "svm"]
    together = [pair for pair in pairs if pair[2]["learner"]["algorithm"] != "svm"]
    found = {}
    for some in [*alone, together]:
        report = bench.experiment(
            {
                "dataset_id": dataset,
                "split": {"kind": "given"},
                "configurations": [configuration for _, _, configuration in some],
                "measures": list(MEASURES),
            }
        )
        for (name, decision, _), row in zip(some, report["rows"], strict=True):
            measures = {measure: row["test"][measure]["mean"] for measure in MEASURES}
            found[name, decision] = Result(measures, row["fit_seconds"]["mean"])
    return found


def _configurations(setup: Setup) -> dict[str, Json]:
    decisions: dict[str, Json] = {"tuned_threshold": {"kind": "tuned_threshold", "fbr": setup.fbr}}
    if setup.zero:
        decisions = {"sign": {"kind": "sign"}, **decisions}
    return {
        kind: {"learner": setup.learner, "features": setup.features, "decision": decision}
        for kind, decision in decisions.items()
    }


def _scikit_learn(content: bytes) -> dict[str, Result]:
    """Train a one-vs-rest LinearSVC on TfidfVectorizer's defaults, and tune thresholds as Covey does."""
    rows = [json.loads(line) for line in content.splitlines()]
    training = [row for row in rows if row["split"] == "train"]
    test = [row for row in rows if row["split"] == "test"]
    labels = sorted({label for row in training for label in row["labels"]})
    train_sets, test_sets = _indicator(training, labels), _indicator(test, labels)
    vectorizer = TfidfVectorizer()
    X = vectorizer.fit_transform([row["text"] for row in training])
    X_test = vectorizer.transform([row["text"] for row in test])

    def fitted(which: Bools) -> OneVsRestClassifier:
        with warnings.catch_warnings():
            # A label can have no example outside a fold; _scores sets its scores.
            warnings.filterwarnings("ignore", message="Label not .* is present")
            return OneVsRestClassifier(LinearSVC()).fit(X[which], train_sets[which].astype(int))

    clock = time.perf_counter()
    machine = fitted(np.ones(len(training), dtype=bool))
    plain_seconds = time.perf_counter() - clock
    Y = csr_array(train_sets.astype(np.int8))
    folds = stratified_folds(Y, N_FOLDS, seed=0)
    scores = np.zeros(train_sets.shape)
    for fold in range(N_FOLDS):
        scores[folds == fold] = _scores(fitted(folds != fold), X[folds == fold], train_sets[folds != fold])
    tunable = train_sets.sum(axis=0) >= N_FOLDS
    held_out = HeldOut(scores, Y, None, folds, tunable)
    thresholds = tuned_thresholds(held_out, default=0.0, fbr=FBR)
    tuned_seconds = time.perf_counter() - clock
    scores = machine.decision_function(X_test)
    truth = csr_array(test_sets.astype(np.int8))
    return {
        "sign": Result(evaluate(truth, scores > 0, scores, labels).measures, plain_seconds),
        "tuned_threshold": Result(
            evaluate(truth, scores > thresholds, scores, labels).measures, tuned_seconds
        ),
    }


def _scores(machine: OneVsRestClassifier, X: AnyArray, train_sets: Bools) -> AnyArray:
    """Return scores on a held-out fold. A label without a training example gets the score -1."""
    scores: AnyArray = machine.decision_function(X).astype(np.float64)
    scores[:, ~train_sets.any(axis=0)] = -1.0
    return scores


def _indicator(rows: list[Json], labels: list[str]) -> Bools:
    place = {label: j for j, label in enumerate(labels)}
    sets = np.zeros((len(rows), len(labels)), dtype=bool)
    for i, row in enumerate(rows):
        sets[i, [place[label] for label in row["labels"] if label in place]] = True
    return sets


def _table(title: str, found: Json) -> str:
    ours = {name: row for name, row in found["rows"].items() if name != REFERENCE}
    best = {(d, m): max(row[d][m] for row in ours.values() if d in row) for d in DECISIONS for m in MEASURES}

    def cells(row: Json) -> list[str]:
        shown = []
        for decision in DECISIONS:
            for measure in MEASURES:
                value = row[decision][measure] if decision in row else None
                mark = "**" if value is not None and value >= best[decision, measure] else ""
                shown.append("–" if value is None else f"{mark}{value:.3f}{mark}")
        return shown

    head = ["", *(f"`{decision}` {measure}" for decision in DECISIONS for measure in MEASURES)]
    rows = [[name, *cells(row)] for name, row in found["rows"].items()]
    lines = [f"### {title}", "", table(head, rows), ""]
    for decision in DECISIONS:
        ratio = found["svm_seconds"][decision]
        lines.append(
            f"With `{decision}`, these learners are at or above scikit-learn in both micro- and macro-averaged F1: "
            f"{'; '.join(found['above'][decision]) or 'none'}. `svm` needs {ratio:.2f} of scikit-learn's training time.\n"
        )
    return "\n".join(lines)
