"""The setting of the MP-Boost paper's experiments, on Reuters-21578."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from corpora import FOLDER
from scipy.sparse import csr_array

from models.features import TextFeatures, TextFeaturesParameters

REUTERS = "reuters21578.jsonl.gz"


@pytest.mark.corpora(REUTERS)
def test_reuters_has_about_as_many_terms_as_in_the_paper() -> None:
    """The paper has 20,123 terms, and 2,012 by round robin, with another stop list."""
    texts, label_sets = [], []
    with gzip.open(FOLDER / REUTERS, "rt", encoding="utf-8") as lines:
        for example in map(json.loads, lines):
            if example["split"] == "train":
                texts.append(example["text"])
                label_sets.append(set(example["labels"]))
    names = sorted(set().union(*label_sets))
    Y = csr_array(np.array([[name in own for name in names] for own in label_sets], dtype=np.int8))
    assert Y.shape == (9603, 115)
    parameters = TextFeaturesParameters.model_validate(
        {
            "kind": "text",
            "weighting": "binary",
            "analyzer": {"drop_numbers": True, "stop_words": "english", "stemmer": "porter"},
            "selection": {"kind": "information_gain", "policy": "round_robin", "per_label": 48},
        }
    )
    features = TextFeatures(parameters)
    X = features.fit_transform(texts, Y)
    assert features.summary_.facts["terms"] == pytest.approx(20_123, rel=0.02)
    assert X.shape[1] == pytest.approx(2_012, rel=0.2)
