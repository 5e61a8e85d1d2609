"""Tuned thresholds in the pipeline: held-out folds, rare labels, votes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from models import catalog
from models.arrays import Floats
from models.base import Context
from models.data.digests import document_groups
from models.data.examples import Examples
from models.decisions import HeldOut
from models.decisions.held_out import ScoreScale, align
from models.labels.indicator_matrix import indicator_matrix
from models.pipeline import Pipeline, TrainingSet, read_documents
from models.splits import stratified_folds

WORDS = ["ash", "birch", "cedar", "elm", "fir", "oak"]


def random_texts(seed: int, n: int = 40) -> Examples:
    """Short texts with labels that depend on their words; one label has two examples, another one all."""
    rng = np.random.default_rng(seed)
    texts, sets = [], []
    for i in range(n):
        words = rng.choice(WORDS, size=3).tolist()
        labels = {word for word in sorted(set(words)) if word < "d" and rng.random() < 0.8} | {"wood"}
        texts.append(" ".join(words))
        sets.append(tuple(sorted(labels | ({"rare"} if i in (5, 9) else set()))))
    return Examples("text", texts, sets)


def pipeline(learner: str, seed: int = 0, fbr: float = 0.1, **options: Any) -> Pipeline:
    return Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text"}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": learner, **options}),
        catalog.DECISION_PARAMETERS.validate_python({"kind": "tuned_threshold", "fbr": fbr}),
        seed=seed,
    )


def held_out(fitted: Pipeline, source: Examples) -> HeldOut:
    """Return the scores of each document by features and a learner that were fitted on the other folds.

    Documents are read again for each fold, so that nothing can leak from one fold into another.
    """
    Y = indicator_matrix(source.labels, fitted.labels_)
    folds = stratified_folds(Y, 3, seed=fitted.seed, groups=document_groups(source))
    scores, has_terms, scales = np.zeros(Y.shape), np.ones(len(folds), dtype=np.bool_), []
    for fold in range(3):
        inside, outside = source.where(folds != fold), source.where(folds == fold)
        features = catalog.create_features(fitted.features_.parameters)
        X = features.fit_transform(read_documents(inside.documents), Y[folds != fold])
        context = Context(
            labels=fitted.labels_,
            features=features.names_,
            candidates=features.candidates_,
            numeric_features=source.kind == "features",
        )
        learner = catalog.create_learner(fitted.learner_.validated_parameters(), seed=fitted.seed)
        learner.fit(X, Y[folds != fold], context=context)
        unseen = features.transform(read_documents(outside.documents))
        scores[folds == fold] = learner.decision_function(unseen)
        if source.kind != "features":
            has_terms[folds == fold] = np.diff(unseen.indptr) > 0
        scales.append(ScoreScale.of(np.asarray(learner.decision_function(X)), None))
    tunable = np.min([Y[folds != fold].sum(axis=0) for fold in range(3)], axis=0) > 0
    held_out = HeldOut(scores, Y, None, folds, tunable & (Y[has_terms].sum(axis=0) >= 3))
    scale = ScoreScale.of(fitted.scores(source), None)
    return align(held_out, scale, scales if fitted.learner_.has_fixed_scale else None).where(has_terms)


def best_f1_threshold(scores: Floats, relevant: Floats, fbr: float) -> float:
    distinct = sorted(set(scores.tolist()))
    candidates = [distinct[0] - 1, *((a + b) / 2 for a, b in pairwise(distinct))]
    best = (-1.0, 0.0)
    for candidate in [*candidates, distinct[-1] + 1]:
        on = scores > candidate
        f1 = 2 * (on & (relevant == 1)).sum() / (on.sum() + relevant.sum())
        best = max(best, (float(f1), candidate))
    return distinct[-1] if best[0] < fbr else best[1]


@pytest.mark.parametrize("fbr", [0.1, 0.9])
@pytest.mark.parametrize("learner", ["svm", "mmp", "mlpp", "binary_relevance_perceptron"])
def test_thresholds_maximize_f1_on_held_out_scores(learner: str, fbr: float) -> None:
    source = random_texts(seed=3)
    fitted = pipeline(learner, seed=2, fbr=fbr).fit(source)
    assert fitted.labels_ == ["ash", "birch", "cedar", "rare", "wood"]
    data = held_out(fitted, source)
    scores, Y = data.scores, data.Y.toarray()
    for j, label in enumerate(fitted.labels_):
        if label != "rare":
            expected = best_f1_threshold(scores[:, j], Y[:, j], fbr)
        else:
            expected = scores[:, j].max() if learner in ("mmp", "mlpp") else 0.0
        assert fitted.thresholds_[j] == pytest.approx(expected, abs=1e-12), label


@pytest.mark.parametrize(
    ("learner", "parameters"), [("mmp", {}), ("mlpp", {}), ("mlpp", {"calibrated": True}), ("svm", {})]
)
def test_a_label_that_is_too_rare_to_tune_keeps_a_meaningful_default_threshold(
    learner: str, parameters: dict[str, Any]
) -> None:
    """If zero has no meaning, the label is not predicted for any held-out document."""
    source = random_texts(seed=6)
    fitted = pipeline(learner, **parameters).fit(source)
    rare = fitted.labels_.index("rare")
    highest = held_out(fitted, source).scores[:, rare].max()
    has_zero_threshold = learner == "svm" or parameters.get("calibrated", False)
    assert fitted.thresholds_[rare] == (0.0 if has_zero_threshold else pytest.approx(highest))


def test_the_final_learner_is_trained_on_all_documents() -> None:
    source = random_texts(seed=1)
    tuned, plain = pipeline("svm").fit(source), pipeline("svm")
    plain.decision = catalog.DECISION_PARAMETERS.validate_python({"kind": "sign"})
    plain.fit(source)
    assert (tuned.scores(source) == plain.scores(source)).all()
    assert (plain.thresholds_ == 0).all()


def test_predicted_sets_are_the_labels_above_their_thresholds() -> None:
    source = random_texts(seed=1)
    fitted = pipeline("mmp").fit(source)
    on = fitted.scores(source) > fitted.thresholds_
    assert (fitted.decide(fitted.scored(source)).toarray() == on).all()


def test_if_every_label_is_rare_no_fold_is_trained() -> None:
    phases = set()
    source = Examples("text", ["ash", "oak", "fir"], [("a",), ("a", "b"), ()])
    fitted = pipeline("mlpp").fit_training(
        TrainingSet(source), monitor=lambda progress: phases.add(progress.phase)
    )
    assert fitted.thresholds_.tolist() == [0.5, 0.5]
    assert phases == {"features", "training"}


@pytest.mark.parametrize("algorithm", sorted(catalog.ENTRIES))
def test_every_learner_with_tuned_thresholds_is_deterministic(algorithm: str) -> None:
    source = random_texts(seed=4)
    one, two = (pipeline(algorithm, seed=5).fit(source) for _ in range(2))
    assert np.isfinite(one.thresholds_).all()
    assert (one.thresholds_ == two.thresholds_).all()
    assert (one.scores(source) == two.scores(source)).all()


def test_thresholds_can_be_tuned_with_a_covering_of_named_labels() -> None:
    """The learners of all folds have the same labels, even if a fold lacks examples of a label."""
    groups = [{"labels": ["ash", "birch", "cedar", "rare", "wood"], "weight": 1}]
    fitted = pipeline("adaboost_lc", covering={"kind": "groups", "groups": groups}, rounds=3).fit(
        random_texts(0)
    )
    assert np.isfinite(fitted.thresholds_).all()
