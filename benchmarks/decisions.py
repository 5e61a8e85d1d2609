"""Compare decisions on real corpora: what each of them gains over the learner's own on the test part.

    python benchmarks/decisions.py [--corpus NAME ...] [--learner NAME ...] [--seed N]

Each learner is trained once per corpus, and once for each of the folds that give held-out scores. All
decisions use these scores. The held-out column is the value that a decision expects of itself.

- ``reuters``: Reuters-21578, ModApte split, 115 labels.
- ``newsgroups``: 20 Newsgroups by date, without the headers, one label per document.
- ``lists``: mail of SpamAssassin's mailing lists, 16 labels; a random third is the test part.

``COVEY_DATA`` is the folder of the corpora (default: ``../shared/data``).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from models import catalog
from models.arrays import Floats, Labels
from models.base import Context
from models.calibration import fit_label_calibration
from models.decisions import HeldOut
from models.decisions.report import DecisionCandidate
from models.decisions.tuning import LearnerScores, fit_decision
from models.decisions.values import Tally
from models.features import TextFeatures, TextFeaturesParameters
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.pipeline.held_out import FoldStep, HeldOutScores
from models.splits import TRAINING, stratified_split

DATA = Path(os.environ.get("COVEY_DATA", "../shared/data"))

TERMS = {"drop_numbers": True, "stop_words": "english", "stemmer": "porter"}

LEARNERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "svm": (
        {"kind": "text", "weighting": "pivoted", "scaling": "unit", "analyzer": TERMS},
        {"algorithm": "svm"},
    ),
    "mp_boost": (
        {
            "kind": "text",
            "weighting": "binary",
            "analyzer": TERMS,
            "selection": {"kind": "information_gain", "policy": "round_robin", "per_label": 100},
        },
        {"algorithm": "mp_boost", "rounds": 50},
    ),
}
"""Features and parameters of each learner."""

DECISIONS: dict[str, dict[str, Any]] = {
    "sign": {"kind": "sign"},
    "tuned_threshold": {"kind": "tuned_threshold"},
    "auto": {"kind": "auto"},
    "auto, right sets": {"kind": "auto", "optimize": "subset_accuracy"},
    "auto, missed labels cost 5": {"kind": "auto", "optimize": {"kind": "cost", "missed_label": 5.0}},
    "95 % precision": {"kind": "target", "measure": "precision", "value": 0.95},
    "95 % precision of each label": {
        "kind": "target",
        "measure": "precision",
        "value": 0.95,
        "scope": "per_label",
    },
    "95 % recall": {"kind": "target", "measure": "recall", "value": 0.95},
}


@dataclass(frozen=True)
class Corpus:
    """Texts with their label sets; ``test`` tells which of them are in the test part."""

    texts: list[str]
    labels: list[tuple[str, ...]]
    test: list[bool]


def _records(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _given_split(name: str, strip: Callable[[str], str], seed: int) -> Corpus:  # noqa: ARG001
    rows = list(_records(name))
    return Corpus(
        [strip(row["text"]) for row in rows],
        [tuple(row["labels"]) for row in rows],
        [row["split"] == "test" for row in rows],
    )


def _random_split(name: str, seed: int) -> Corpus:
    rows = list(_records(name))
    labels = [tuple(row["labels"]) for row in rows]
    parts = stratified_split(indicator_matrix(labels, collect_labels(labels)), [1 / 3], seed=seed)
    return Corpus([row["text"] for row in rows], labels, (parts != TRAINING).tolist())


def _without_headers(text: str) -> str:
    return text.partition("\n\n")[2]


CORPORA: dict[str, Callable[[int], Corpus]] = {
    "reuters": partial(_given_split, "reuters21578", str),
    "newsgroups": partial(_given_split, "20newsgroups", _without_headers),
    "lists": partial(_random_split, "spamassassin_lists"),
}


@dataclass(frozen=True)
class Scores:
    """The scores of a trained learner.

    Attributes:
        labels: the k labels.
        held_out: held-out scores of the training part.
        learner: what a decision needs to know about the learner.
        test: (n, k) scores of the test part.
        Y_test: (n, k) its label sets. Labels without a training example are left out.
    """

    labels: list[str]
    held_out: HeldOut
    learner: LearnerScores
    test: Floats
    Y_test: Labels


def train(corpus: Corpus, learner_name: str, seed: int) -> Scores:
    """Train a learner on the training part of a corpus, and on its folds."""
    features_parameters, learner_parameters = LEARNERS[learner_name]
    features = TextFeatures(TextFeaturesParameters.model_validate(features_parameters))
    parameters = catalog.LEARNER_PARAMETERS.validate_python(learner_parameters)
    learner = catalog.create_learner(parameters, seed=seed)
    parts: list[tuple[list[Any], list[tuple[str, ...]]]] = [([], []), ([], [])]
    for text, label_set, is_test in zip(corpus.texts, corpus.labels, corpus.test, strict=True):
        parts[is_test][0].append(text)
        parts[is_test][1].append(label_set)
    labels = collect_labels(parts[0][1])
    Y, Y_test = (indicator_matrix(part[1], labels) for part in parts)
    X = features.fit_transform([parts[0][0]], Y)
    context = Context(labels=labels, features=features.names_, candidates=features.candidates_)
    learner.fit(X, Y, context=context)
    held_out = HeldOutScores(learner, X, Y, context=context, seed=seed, monitor=_ignore, resume={}).run()
    assert held_out is not None, "every corpus has frequent labels"
    training = np.asarray(learner.decision_function(X))
    return Scores(
        labels,
        held_out,
        LearnerScores(
            own=catalog.own_decision(learner),
            default=catalog.default_threshold(learner, len(labels)),
            has_zero=catalog.has_zero_threshold(learner),
            parents=None,
            training=lambda: training,
        ),
        np.asarray(learner.decision_function(features.transform(parts[1][0]))),
        Y_test,
    )


def _ignore(step: FoldStep) -> None:
    """Ignore a step of a training."""


def print_decisions(scores: Scores) -> None:
    """Print one row per decision."""
    relevant = scores.Y_test.toarray() != 0
    for name, parameters in DECISIONS.items():
        decision = catalog.DECISION_PARAMETERS.validate_python(parameters)
        started = time.process_time()
        fitted = fit_decision(
            decision, scores.held_out, scores.learner, scores.labels, calibrate=fit_label_calibration
        )
        seconds = time.process_time() - started
        tally = Tally()
        tally.add(fitted.rule.predicted(scores.test), relevant, None)
        value = tally.values()
        chosen = None if fitted.report is None else fitted.report.chosen
        print(
            f"  {name:<30}"
            + "".join(f"{value[measure]:>9.4f}" for measure in MEASURES)
            + f"{seconds:>8.2f} s"
            + ("" if chosen is None else f"  {_chosen(chosen)}")
        )


MEASURES = ("f1_micro", "subset_accuracy", "precision_micro", "recall_micro")


def _chosen(chosen: DecisionCandidate) -> str:
    expected = ", ".join(f"{getattr(chosen.values, measure):.4f}" for measure in MEASURES)
    return f"{chosen.thresholds}{', at least one' * chosen.at_least_one} (held out: {expected})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", choices=CORPORA, action="append")
    parser.add_argument("--learner", choices=LEARNERS, action="append")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(f"  {'decision':<30}" + "".join(f"{name.removesuffix('_micro')[:8]:>9}" for name in MEASURES))
    for corpus in arguments.corpus or CORPORA:
        read = CORPORA[corpus](arguments.seed)
        for learner in arguments.learner or LEARNERS:
            print(f"{corpus}, {learner}", flush=True)
            print_decisions(train(read, learner, arguments.seed))


if __name__ == "__main__":
    main()
