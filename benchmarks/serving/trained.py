"""The models of the benchmark: trained once, and kept in the cache folder."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, eye_array

from benchmarks.corpora import EXAMPLES, Json, records, split
from benchmarks.recipes import pipeline
from benchmarks.serving.bodies import CORPUS
from models import artifact
from models.features import TextFeatures

ANALYZER = {"lowercase": True, "drop_numbers": True, "stop_words": "english", "stemmer": "porter"}

BINARY = {
    "kind": "text",
    "weighting": "binary",
    "analyzer": ANALYZER,
    "selection": {"kind": "information_gain", "policy": "round_robin", "per_label": 48},
}
"""The reduced features of the MP-Boost paper."""

PIVOTED = {"kind": "text", "weighting": "pivoted", "scaling": "unit", "analyzer": ANALYZER}

TRAININGS: dict[str, tuple[Json, Json]] = {
    "mp_boost": (BINARY, {"algorithm": "mp_boost", "rounds": 200}),
    "mp_boost_half": (BINARY, {"algorithm": "mp_boost", "rounds": 100}),
    "svm": (PIVOTED, {"algorithm": "svm"}),
}
"""Features and learner of each model."""

LONG = {"algorithm": "adaboost_lc", "rounds": 100_000, "smoothing": 0.01}
"""A learner that trains until it is cancelled."""


def trained(cache: Path) -> dict[str, Path]:
    """Return the artifacts of the models. Those that are not in the cache folder are trained first."""
    paths = {name: cache / f"{name}-{artifact.FORMAT_VERSION}.covey" for name in TRAININGS}
    missing = [name for name in TRAININGS if not paths[name].exists()]
    if missing:
        training, _ = split(EXAMPLES["reuters"]())
    for name in missing:
        print(f"training {name}", file=sys.stderr, flush=True)
        part = paths[name].with_suffix(".part")
        artifact.save(pipeline(*TRAININGS[name], {"kind": "sign"}).fit(training), part)
        part.rename(paths[name])  # so that an interrupted run leaves no half
    return paths


def export_scorer(path: Path, target: Path) -> Path:
    """Write the weights of a boosting model by word, for servers that know nothing of the model.

    A word adds the weights of its term to the scores, if it is in the text. The words are all words of the
    corpus whose term is a feature, so that a server needs neither stop words nor a stemmer.

    Args:
        path: the artifact.
        target: file to write; a JSON file with the words and labels stands beside it.
    """
    pipeline = artifact.load(path)
    words = sorted({word for row in records(CORPUS) for word in re.findall(r"[a-z]+", row["text"].lower())})
    assert isinstance(pipeline.features_, TextFeatures)
    features = pipeline.features_.transform(words)
    terms = {
        word: int(features.indices[start])
        for word, start, end in zip(words, features.indptr, features.indptr[1:], strict=False)
        if end > start
    }
    n_features = pipeline.learner_.n_features_in_
    constant = pipeline.learner_.decision_function(csr_array((1, n_features), dtype=np.float64))[0]
    weights = pipeline.learner_.decision_function(csr_array(eye_array(n_features))) - constant
    np.savez(target, weights=weights, constant=constant)
    described = {"labels": pipeline.labels_, "terms": terms}
    target.with_suffix(".json").write_text(json.dumps(described), "utf-8")
    return target
