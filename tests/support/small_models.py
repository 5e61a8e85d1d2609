"""Small fitted pipelines of every learner."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from models import catalog
from models.catalog import ENTRIES
from models.data.examples import Examples, FeatureRows, Kind
from models.labels import LabelTree
from models.mail.email import Email
from models.pipeline import Pipeline

ALGORITHMS = sorted(ENTRIES)
N_LABELS = 12
N_TERMS = 400

SHORT_TRAININGS: dict[str, dict[str, Any]] = {
    "adaboost_mh": {"rounds": 100},
    "mp_boost": {"rounds": 100},
    "adaboost_lc": {"rounds": 10},
    "mmp": {"epochs": 1},
    "mlpp": {"epochs": 1},
    "binary_relevance_perceptron": {"epochs": 1},
    "h_m3": {"passes": 2},
}


def fitted(algorithm: str, kind: Kind = "text") -> Pipeline:
    """Fit a pipeline on 50 random documents of a kind with 13 labels and up to 400 terms."""
    rng = np.random.default_rng(0)
    words = [f"w{i:04d}" for i in range(N_TERMS)]
    texts = [" ".join(rng.choice(words, 60)) for _ in range(50)]
    sets = [("root", f"l{i % N_LABELS:02d}") for i in range(50)]
    documents: Any = texts
    if kind == "email":
        documents = [Email(subject=text[:20], text=text) for text in texts]
    elif kind == "features":
        documents = FeatureRows(words, csr_array(rng.poisson(0.1, size=(50, N_TERMS)).astype(np.float64)))
    learner = catalog.LEARNER_PARAMETERS.validate_python(
        {"algorithm": algorithm, **SHORT_TRAININGS.get(algorithm, {})}
    )
    pipeline = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "numeric" if kind == "features" else "text"}),
        learner,
        catalog.own_decision(learner),
    )
    tree = LabelTree({f"l{i:02d}": "root" for i in range(N_LABELS)}) if algorithm.startswith("h_") else None
    return pipeline.fit(Examples(kind, documents, sets), tree=tree)
