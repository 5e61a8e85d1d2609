"""Measure whether the probabilities of versions are true, on every corpus.

    python benchmarks/calibration.py [--corpus NAME ...] [--learner NAME ...] [--split given|random]
        [--json benchmarks/calibration.json]

Each learner is trained on the training part with the decision ``auto``, and its probabilities are compared
with the label sets of the test part. The goals are an expected calibration error of at most .035 for pairs of
a document and a label with p > .1, and of at most .05 for label sets. "By chance" is the mean error that true
probabilities would have on as many test examples: the probabilities themselves draw the outcomes. "Sigmoid"
is the error of pairs if p were the logistic function of the score. "Smallest p" is that of label sets if the
set probability were the smallest probability of a decision on a label.

20 Newsgroups and Reuters-21578 are split by time, so that the test part is drawn differently from the
training part; ``--split random`` draws test parts of the same size at random. With ``--json``, results
replace those of the same corpus, learner and split in the file, and ``docs/learners.md`` shows the file.

``COVEY_DATA`` is the folder of the corpora (default: ``../shared/data``).
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # must be set before NumPy starts its threads

import argparse
import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.multilabel_corpora import CORPORA
from models import catalog
from models.arrays import Bools, Floats
from models.data.examples import Examples
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.measures.calibration import expected_calibration_error, probable
from models.pipeline import Pipeline
from models.splits import TRAINING, stratified_split

PAGE = Path(__file__).parents[1] / "docs" / "learners.md"
GOAL_PAIRS = 0.035
GOAL_SETS = 0.05

ANALYZER = {"drop_numbers": True, "stop_words": "english"}
BINARY = {
    "kind": "text",
    "weighting": "binary",
    "analyzer": ANALYZER,
    "selection": {"kind": "information_gain", "policy": "round_robin", "per_label": 100},
}
PIVOTED = {"kind": "text", "weighting": "pivoted", "scaling": "unit", "analyzer": ANALYZER}
COUNTS = {"kind": "text", "weighting": "count", "analyzer": ANALYZER}

LEARNERS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "svm": ({"algorithm": "svm"}, PIVOTED, True),
    "mp_boost": ({"algorithm": "mp_boost", "rounds": 50}, BINARY, False),
    "adaboost_mh": ({"algorithm": "adaboost_mh", "rounds": 100}, BINARY, False),
    "naive_bayes": ({"algorithm": "naive_bayes"}, COUNTS, False),
    "binary_relevance_perceptron": ({"algorithm": "binary_relevance_perceptron"}, PIVOTED, True),
    "mmp": ({"algorithm": "mmp"}, PIVOTED, True),
    "mlpp": ({"algorithm": "mlpp"}, PIVOTED, True),
}
"""Parameters of each learner, its features of texts, and whether it needs scaled numbers."""

MEASUREMENTS = {"yeast", "scene", "emotions", "genbase", "imclef07a", "cellcycle"}
"""Corpora whose features have different units. The numbers of the others are words."""

COLUMNS = {
    "expected_calibration_error": "pairs",
    "chance": "by chance",
    "sigmoid": "sigmoid",
    "set_expected_calibration_error": "sets",
    "set_chance": "by chance",
    "smallest": "smallest p",
    "brier_score": "Brier",
    "log_loss": "log loss",
    "coverage_at_precision_95": "95 %",
    "coverage_at_precision_99": "99 %",
}
"""The values of a result, with the headings of the table."""

Result = dict[str, Any]


def split(examples: Examples, how: str, seed: int) -> tuple[Examples, Examples]:
    """Return the training part and the test part of a corpus."""
    test = np.array([part == "test" for part in examples.splits()])
    if how == "random":
        Y = indicator_matrix(examples.labels, collect_labels(examples.labels))
        test = stratified_split(Y, [float(test.mean())], seed=seed) != TRAINING
    return examples.where(~test), examples.where(test)


def features_of(corpus: str, learner: str, kind: str) -> dict[str, Any]:
    """Return the parameters of the features."""
    _, of_texts, needs_scaling = LEARNERS[learner]
    if kind == "text":
        return of_texts
    scaling = ("max_abs" if corpus in MEASUREMENTS else "unit") if needs_scaling else "none"
    return {"kind": "numeric", "scaling": scaling}


def measure(
    training: Examples, test: Examples, learner: str, features: dict[str, Any], seed: int
) -> dict[str, float]:
    """Train a learner and return the values of its probabilities on the test part."""
    pipeline = Pipeline(
        catalog.create_features(catalog.FEATURES_PARAMETERS.validate_python(features)),
        catalog.create_learner(catalog.LEARNER_PARAMETERS.validate_python(LEARNERS[learner][0]), seed=seed),
        catalog.DECISION_PARAMETERS.validate_python({"kind": "auto"}),
        seed=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline.fit(training)
    scores = pipeline.scores(test)
    measures = pipeline.evaluate_scores(test.label_sets(), scores).measures
    calibration = pipeline.calibration_
    assert calibration is not None, "every corpus has frequent labels"
    relevant: Bools = indicator_matrix(test.labels, pipeline.labels_).toarray() != 0
    predicted: Bools = pipeline.decide(scores).toarray() != 0
    p, of_sets = calibration.probabilities(scores, predicted)
    sigmoid = 1.0 / (1.0 + np.exp(-np.clip(scores, -500, 500)))
    smallest = np.where(predicted, p, 1.0 - p).min(axis=1)
    values = measures | {
        "chance": error_by_chance(p[p > 0.1], seed),
        "sigmoid": expected_calibration_error(*probable(sigmoid.ravel(), relevant.ravel())),
        "set_chance": error_by_chance(of_sets, seed),
        "smallest": expected_calibration_error(smallest, (predicted == relevant).all(axis=1)),
    }
    return {name: round(float(values[name]), 4) for name in COLUMNS}


def error_by_chance(probabilities: Floats, seed: int, n_draws: int = 20) -> float:
    """Return the mean calibration error of outcomes that are drawn with the probabilities themselves."""
    rng = np.random.default_rng(seed)
    draws = [rng.random(len(probabilities)) < probabilities for _ in range(n_draws)]
    return float(np.mean([expected_calibration_error(probabilities, outcomes) for outcomes in draws]))


def table(results: list[Result]) -> str:
    """Return results as a Markdown table; a goal that is not met has an asterisk."""
    lines = [
        f"| corpus | split | learner | {' | '.join(COLUMNS.values())} |",
        f"|---|---|---|{'---|' * len(COLUMNS)}",
    ]
    goals = {"expected_calibration_error": GOAL_PAIRS, "set_expected_calibration_error": GOAL_SETS}
    for result in results:
        cells = [
            f"{result[name]:.3f}{'*' * (result[name] > goals.get(name, np.inf))}".removeprefix("0")
            for name in COLUMNS
        ]
        lines.append(
            f"| {result['corpus']} | {result['split']} | `{result['learner']}` | {' | '.join(cells)} |"
        )
    return "\n".join(lines) + "\n"


def show(page: str, results: list[Result]) -> str:
    """Return ``docs/learners.md`` with the table of results between its two marks."""
    shown = f"<!-- calibration -->\n{table(results)}<!-- end calibration -->"
    return re.sub(
        r"<!-- calibration -->\n.*?<!-- end calibration -->", lambda _: shown, page, flags=re.DOTALL
    )


def store(path: Path, results: list[Result]) -> None:
    """Replace the results of the same corpus, learner and split in a file."""

    def key(result: Result) -> tuple[str, str, str]:
        return result["corpus"], result["split"], result["learner"]

    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    merged = {key(result): result for result in [*old, *results]}
    path.write_text(json.dumps([merged[k] for k in sorted(merged)], indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Print the table, and which goals are met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", choices=CORPORA, action="append")
    parser.add_argument("--learner", choices=LEARNERS, action="append")
    parser.add_argument("--split", choices=("given", "random"), default="given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results: list[Result] = []
    for corpus in arguments.corpus or CORPORA:
        training, test = split(CORPORA[corpus](), arguments.split, arguments.seed)
        for learner in arguments.learner or ("svm", "mp_boost"):
            features = features_of(corpus, learner, test.kind)
            values = measure(training, test, learner, features, arguments.seed)
            result = {"corpus": corpus, "split": arguments.split, "learner": learner, **values}
            results.append(result)
            print(table([result]).splitlines()[-1], flush=True)
            if arguments.json is not None:
                store(arguments.json, [result])
                stored = json.loads(arguments.json.read_text(encoding="utf-8"))
                PAGE.write_text(show(PAGE.read_text(encoding="utf-8"), stored), encoding="utf-8")
    pairs = sum(result["expected_calibration_error"] <= GOAL_PAIRS for result in results)
    sets = sum(result["set_expected_calibration_error"] <= GOAL_SETS for result in results)
    print(f"pairs at most {GOAL_PAIRS}: {pairs} of {len(results)}; sets at most {GOAL_SETS}: {sets}")


if __name__ == "__main__":
    main()
