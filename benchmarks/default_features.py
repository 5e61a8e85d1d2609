"""Compare the default features of texts of each learner with others.

    python -m benchmarks.default_features [--corpus NAME ...] [--learner NAME ...]

The decision is ``auto``, and learners have their default parameters. Stores micro-averaged F1 and the share
of right label sets on the test part, and CPU seconds of the training, and writes a table of micro F1 into
``docs/learners.md``. ``COVEY_DATA`` is the folder of the corpora (default: ``../shared/data``).

The messages of ``covey demo`` are e-mails, and few: their figures are means over ten splits. The others are
texts. ``h_svm`` is ``svm`` if there is no label tree. The large corpora are for the faster learners only.
Perceptrons are not measured on 20 Newsgroups, which is sorted by label: in one pass in this order, they learn
little else than the last labels.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # must be set before NumPy starts its threads

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import tables, text_options
from benchmarks.calibration_scores import split
from benchmarks.multilabel_corpora import CORPORA as TEXTS
from benchmarks.tables import Result, figure
from models import catalog
from models.data.examples import Examples
from models.mail import Email
from models.pipeline import Pipeline

NAME = "default_features"
PAGE = tables.DOCS / "learners.md"
KEY = ("corpus", "learner", "features")

CORPORA = {
    "demo": "demo (e-mails)",
    "lists": "mailing lists",
    "reuters": "Reuters",
    "20newsgroups": "20 Newsgroups",
}

PIVOTED = {"weighting": "pivoted", "scaling": "unit"}
BINARY = {"weighting": "binary"}
STOP_WORDS = {"analyzer": {"stop_words": "auto"}}
GAIN = {"selection": {"kind": "information_gain", "per_label": 100}}
ROCCHIO = {"selection": {"kind": "rocchio", "per_label": 100}}

FEATURES: dict[str, dict[str, Any]] = {
    "`pivoted`, `unit`": PIVOTED,
    "`pivoted`, `unit`, stop words": {**PIVOTED, **STOP_WORDS},
    "`tfidf`": {},
    "`tfidf`, stop words": STOP_WORDS,
    "`tf`": {"weighting": "tf"},
    "`binary`": BINARY,
    "`binary`, stop words": {**BINARY, **STOP_WORDS},
    "`binary`, 100 terms per label": {**BINARY, **GAIN},
    "`pivoted`, 100 terms per label": {"weighting": "pivoted", **ROCCHIO},
    "`pivoted`, 100 terms per label, stop words": {"weighting": "pivoted", **ROCCHIO, **STOP_WORDS},
}
LINEAR = ("`pivoted`, `unit`", "`pivoted`, `unit`, stop words", "`tfidf`")
BOOSTING = ("`binary`", "`binary`, stop words", "`binary`, 100 terms per label")

LEARNERS: dict[str, tuple[str, ...]] = {
    "svm": LINEAR,
    "binary_relevance_perceptron": LINEAR,
    "mmp": LINEAR,
    "mlpp": LINEAR,
    "h_rls": LINEAR,
    "naive_bayes": ("`tfidf`", "`tfidf`, stop words", "`tf`"),
    "mp_boost": BOOSTING,
    "adaboost_mh": BOOSTING,
    "adaboost_lc": (
        "`pivoted`, 100 terms per label",
        "`pivoted`, 100 terms per label, stop words",
        "`pivoted`, `unit`",
        "`tfidf`",
    ),
}
"""The features to compare for each learner."""

LEFT_OUT = {
    "reuters": ("mlpp", "h_rls", "mp_boost", "adaboost_mh"),
    "20newsgroups": tuple(learner for learner in LEARNERS if learner not in ("svm", "naive_bayes")),
}
"""The learners that are not measured on a corpus."""
SEEDS = 10


def parts(corpus: str) -> Iterator[tuple[Examples, Examples]]:
    """Yield the training part and the test part of each split of a corpus."""
    if corpus != "demo":
        yield split(TEXTS[corpus](), "stratified" if corpus == "lists" else "given", 0)
        return
    texts, labels, _ = text_options.read("demo")
    mails = [Email(subject=subject, text=text) for subject, _, text in (t.partition("\n") for t in texts)]
    examples = Examples("email", mails, labels)
    for seed in range(SEEDS):
        training = np.random.default_rng(seed).permutation(len(mails)) < len(mails) // 2
        yield examples.where(training), examples.where(~training)


def measure(corpus: str, learner: str, features: str) -> Result:
    """Return the mean results over the splits of a corpus."""
    found = []
    for training, test in parts(corpus):
        pipeline = Pipeline.from_parameters(
            catalog.FEATURES_PARAMETERS.validate_python({"kind": "text", **FEATURES[features]}),
            catalog.LEARNER_PARAMETERS.validate_python({"algorithm": learner}),
        )
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pipeline.fit(training)
        seconds = time.process_time() - start
        measures = pipeline.evaluate(test).measures
        found.append((measures["f1_micro"], 1 - measures["subset_zero_one"], seconds))
    f1, right, seconds = np.mean(found, axis=0).tolist()
    return {
        "corpus": corpus,
        "learner": learner,
        "features": features,
        "f1_micro": round(f1, 4),
        "subset_accuracy": round(right, 4),
        "seconds": round(seconds, 2),
    }


def is_default(corpus: str, learner: str, features: str) -> bool:
    """Whether a training without features would use these."""
    parameters = catalog.LEARNER_PARAMETERS.validate_python({"algorithm": learner})
    default = catalog.resolve_features(parameters, None, "email" if corpus == "demo" else "text")
    return default == catalog.FEATURES_PARAMETERS.validate_python({"kind": "text", **FEATURES[features]})


def rendered() -> dict[str, str]:
    """Return the table of the page."""
    found = {tuple(result[field] for field in KEY): result["f1_micro"] for result in tables.stored(NAME)}
    rows = []
    for learner, compared in LEARNERS.items():
        for features in compared:
            cells = [f"`{learner}`" if features == compared[0] else "", features]
            for corpus in CORPORA:
                value = found.get((corpus, learner, features))
                shown = "" if value is None else figure(value)
                cells.append(f"**{shown}**" if shown and is_default(corpus, learner, features) else shown)
            rows.append(cells)
    return {"default_features": tables.markdown(["learner", "features", *CORPORA.values()], rows)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", nargs="*", default=[*CORPORA], choices=[*CORPORA])
    parser.add_argument("--learner", nargs="*", default=[*LEARNERS], choices=[*LEARNERS])
    arguments = parser.parse_args()
    for corpus_name in arguments.corpus:
        for learner_name in arguments.learner:
            if learner_name in LEFT_OUT.get(corpus_name, ()):
                continue
            for features_name in LEARNERS[learner_name]:
                measured = measure(corpus_name, learner_name, features_name)
                print(measured, flush=True)
                tables.store(NAME, [measured], KEY)
    tables.show(PAGE, rendered())
