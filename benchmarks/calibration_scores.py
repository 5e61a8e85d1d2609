"""Scores for which probabilities are fitted and measured, kept in a folder so that no training is repeated.

A change of the calibration needs no other scores. After a change of a learner, features or folds, delete the
folder.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from benchmarks.multilabel_corpora import CORPORA
from benchmarks.papers import recipes
from benchmarks.papers.recipes import N_BINS, PIVOTED, ROUNDS, SELECTED, Json
from models import catalog
from models.arrays import AnyArray, Bools, Floats
from models.data.digests import document_groups
from models.data.examples import Examples
from models.decisions import HeldOut
from models.decisions.tune import LearnerScores
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.splits import TRAINING, stratified_split

TF = {"kind": "text", "weighting": "tf", "analyzer": recipes.ANALYZER}

LEARNERS: dict[str, tuple[Json, Json]] = {
    "svm": ({}, PIVOTED),
    "mp_boost": ({"rounds": ROUNDS}, SELECTED),
    "adaboost_mh": ({"rounds": 100}, SELECTED),
    "naive_bayes": ({}, TF),
    "binary_relevance_perceptron": ({}, PIVOTED),
    "mmp": ({}, PIVOTED),
    "mlpp": ({}, PIVOTED),
}
"""Parameters of each learner, and its features of texts."""

MEASUREMENTS = {"yeast", "scene", "emotions", "genbase", "imclef07a", "cellcycle"}
"""Corpora whose features have different units. The numbers of the others are words."""


Arrays = dict[str, AnyArray]


@dataclass(frozen=True)
class Scored:
    """Scores of a learner on a corpus.

    Attributes:
        held_out: the held-out scores of the training part, on the scale of the learner.
        learner: what a decision needs to know about the learner.
        test: (n, k) scores of the test part.
        relevant: (n, k) its label sets, without labels that have no training example.
    """

    held_out: HeldOut
    learner: LearnerScores
    test: Floats
    relevant: Bools

    @classmethod
    def of(cls, name: str, arrays: Arrays) -> Scored:
        """Return the scores of a learner by its name."""
        parameters = {"algorithm": name, **LEARNERS[name][0]}
        learner = catalog.create_learner(catalog.LEARNER_PARAMETERS.validate_python(parameters))
        relevant = csr_array(arrays["Y"].astype(np.int8))
        return cls(
            HeldOut(arrays["held_out"], relevant, None, arrays["folds"], arrays["tunable"]),
            LearnerScores(
                own=catalog.own_decision(learner),
                default=catalog.default_threshold(learner, relevant.shape[1]),
                has_zero=catalog.has_zero_threshold(learner),
                parents=None,
            ),
            arrays["test"],
            arrays["relevant"],
        )


def split(examples: Examples, how: str, seed: int) -> tuple[Examples, Examples]:
    """Return the training part and the test part of a corpus."""
    test = np.array([part == "test" for part in examples.splits()])
    if how == "stratified":
        Y = indicator_matrix(examples.labels, collect_labels(examples.labels))
        groups = document_groups(examples)
        test = stratified_split(Y, [float(test.mean())], seed=seed, groups=groups) != TRAINING
    return examples.where(~test), examples.where(test)


def parameters_of(corpus: str, name: str, kind: str) -> tuple[Json, Json]:
    """Return the parameters of the features and of the learner."""
    parameters, of_texts = LEARNERS[name]
    learner = {"algorithm": name, **parameters}
    if kind == "text":
        return of_texts, learner
    if of_texts is SELECTED:
        return {"kind": "numeric", "scaling": "none"}, {**learner, "bins": N_BINS}
    if of_texts is TF:
        return {"kind": "numeric", "scaling": "none"}, learner
    return {"kind": "numeric", "scaling": "max_abs" if corpus in MEASUREMENTS else "unit"}, learner


def scored(corpus: str, name: str, how: str, seeds: range, folder: Path | None) -> Iterator[Scored]:
    """Yield the scores of a learner on a corpus for each seed.

    Args:
        corpus: one of ``CORPORA``.
        name: one of ``LEARNERS``.
        how: "given" for the corpus' own split, "stratified" for a stratified one.
        seeds: seeds of the folds and the learner.
        folder: where scores are kept; None to keep none.
    """
    examples: Examples | None = None
    for seed in seeds:
        path = None if folder is None else folder / f"{corpus}.{name}.{how}{seed}.npz"
        if path is not None and path.exists():
            with np.load(path, allow_pickle=False) as stored:
                arrays = dict(stored)
        else:
            examples = CORPORA[corpus]() if examples is None else examples
            arrays = _train(corpus, name, *split(examples, how, 0), seed)
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                np.savez(path.with_suffix(".part.npz"), **arrays)  # type: ignore[arg-type]
                path.with_suffix(".part.npz").rename(path)  # so that a cut leaves no half of a file
        yield Scored.of(name, arrays)


def _train(corpus: str, name: str, training: Examples, test: Examples, seed: int) -> Arrays:
    task = recipes.Task.of(training, test, units=corpus in MEASUREMENTS, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trained = recipes.train(task, *parameters_of(corpus, name, training.kind))
    held_out = trained.held_out
    assert held_out is not None, "every corpus has frequent labels"
    return {
        "held_out": held_out.scores,
        "Y": held_out.relevant(),
        "folds": held_out.folds,
        "tunable": held_out.tunable,
        "test": trained.test,
        "relevant": task.relevant(),
    }
