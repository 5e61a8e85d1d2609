"""The probabilities of a pipeline are fitted on held-out scores, on the scale of unseen documents."""

from __future__ import annotations

import numpy as np
import pytest

from models import catalog
from models.calibration import fit_calibration
from models.pipeline import Pipeline
from tests.models.pipeline.test_pipeline_thresholds import held_out, random_texts


@pytest.mark.parametrize("algorithm", ["svm", "naive_bayes", "mp_boost"])
def test_probabilities_are_those_of_a_calibration_on_the_scores_of_the_folds(algorithm: str) -> None:
    source = random_texts(seed=3)
    parameters = catalog.LEARNER_PARAMETERS.validate_python({"algorithm": algorithm})
    features = catalog.FEATURES_PARAMETERS.validate_python({"kind": "text", "weighting": "tf"})
    fitted = Pipeline.from_parameters(features, parameters, None, seed=2).fit(source)
    expected = fit_calibration(held_out(fitted, source), fitted.rule_)
    assert expected is not None
    assert fitted.calibration_ is not None
    found = fitted.calibration_.get_state()
    for name, array in expected.get_state().items():
        np.testing.assert_allclose(found[name], array, rtol=1e-6, atol=1e-9, err_msg=name)
