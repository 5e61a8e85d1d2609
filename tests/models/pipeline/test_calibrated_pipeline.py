"""The probabilities of a pipeline are fitted on held-out scores, on the scale of unseen documents."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from models import catalog
from models.base import Context
from models.calibration import fit_calibration
from models.decisions import HeldOut
from models.decisions.score_scale import ScoreScale
from models.labels.indicator_matrix import indicator_matrix
from models.pipeline import Pipeline, read_documents
from models.splits import stratified_folds
from tests.models.pipeline.test_pipeline_thresholds import random_texts


@pytest.mark.parametrize("algorithm", ["svm", "naive_bayes", "mp_boost"])
def test_probabilities_are_those_of_a_calibration_on_the_scores_of_the_folds(algorithm: str) -> None:
    source = random_texts(seed=3)
    parameters = catalog.LEARNER_PARAMETERS.validate_python({"algorithm": algorithm})
    features = catalog.FEATURES_PARAMETERS.validate_python({"kind": "text", "weighting": "tf"})
    fitted = Pipeline.from_parameters(features, parameters, None, seed=2).fit(source)
    documents = read_documents(source.documents)
    X = csr_array(fitted.features_.transform(documents))
    Y = indicator_matrix(source.labels, fitted.labels_)
    folds = stratified_folds(Y, 3, seed=2)
    scores, scales = np.zeros(Y.shape), []
    for fold in range(3):
        learner = catalog.create_learner(parameters, seed=2)
        context = Context(labels=fitted.labels_, features=fitted.features_.names_)
        learner.fit(X[folds != fold], Y[folds != fold], context=context)
        scores[folds == fold] = learner.decision_function(X[folds == fold])
        seen = np.asarray(learner.decision_function(X[folds != fold]))
        spread = seen.std(axis=0)
        scales.append(ScoreScale(seen.mean(axis=0), np.where(spread > 1e-12, spread, 1.0)))
    counts = Y.sum(axis=0)
    tunable = np.array(
        [counts[j] >= 3 and all(Y[folds != f, j].sum() for f in range(3)) for j in range(len(counts))]
    )
    fixed_scale = algorithm != "mp_boost"
    held_out = HeldOut(scores, Y, None, folds, tunable, tuple(scales) if fixed_scale else None)
    of_learner = ScoreScale.of(np.asarray(fitted.learner_.decision_function(X)), None)
    expected = fit_calibration(held_out, fitted.rule_, scale=of_learner)
    assert expected is not None
    assert fitted.calibration_ is not None
    found = fitted.calibration_.get_state()
    for name, array in expected.get_state().items():
        np.testing.assert_allclose(found[name], array, rtol=1e-6, atol=1e-9, err_msg=name)
