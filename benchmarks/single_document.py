"""Measure what a prediction for one document costs, layer by layer, beside the same document in a batch.

    python -m benchmarks.single_document [--models FOLDER] [--repeat N]

Trains three models of Reuters-21578 on its training part with ``auto``, or loads them from the folder:
``mp_boost`` with 200 rounds on selected binary terms, and ``svm`` on pivoted unit-length features, with and
without hashing. Then ranks 100 texts of the test part with 700 to 900 characters one by one. Figures are CPU
microseconds for each text, the minimum of the repeats. The layers take turns, so that other work on the
machine slows all of them. "Batch" is the same work for 500 texts at once, divided by 500.

Stores the results and writes the table into ``docs/serving.md``.

``COVEY_DATA`` is the folder of the corpora (default: ``../shared/data``).
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import tables
from models import catalog
from models.artifact import load, save
from models.data.examples import Examples
from models.features import TextFeatures
from models.pipeline import Pipeline

CORPUS = (
    Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))
    / "reuters21578.jsonl.gz"
)
RECIPE = {"kind": "text", "weighting": "pivoted", "scaling": "unit"}
SELECTED = {"kind": "text", "weighting": "binary", "selection": {"kind": "information_gain"}}
MODELS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "mp_boost": (SELECTED, {"algorithm": "mp_boost", "rounds": 200}),
    "svm": (RECIPE, {"algorithm": "svm"}),
    "svm, hashing": ({**RECIPE, "hashing": {}}, {"algorithm": "svm"}),
}
NAME = "single_document"
PAGE = tables.DOCS / "serving.md"
TEXTS = 100


def read_corpus() -> tuple[Examples, list[str]]:
    """Return the training part, and the texts of the test part with 700 to 900 characters."""
    texts: list[str] = []
    label_sets: list[tuple[str, ...]] = []
    tests: list[str] = []
    with gzip.open(CORPUS, "rt") as file:
        for line in file:
            record = json.loads(line)
            if record["split"] == "train":
                texts.append(record["text"])
                label_sets.append(tuple(record["labels"]))
            elif 700 <= len(record["text"]) <= 900:
                tests.append(record["text"])
    return Examples("text", texts, label_sets), tests


def trained(name: str, folder: Path, training: Examples) -> Pipeline:
    """Return a loaded model, which is trained and saved first if the folder does not have it."""
    path = folder / f"{name}.covey"
    if not path.exists():
        features, learner = MODELS[name]
        pipeline = Pipeline.from_parameters(
            catalog.FEATURES_PARAMETERS.validate_python(features),
            catalog.LEARNER_PARAMETERS.validate_python(learner),
        )
        save(pipeline.fit(training), path)
    return load(path)


def measure(pipeline: Pipeline, texts: list[str], repeat: int) -> dict[str, float]:
    """Return the CPU microseconds of each layer for a text."""
    n, features, calibration = len(texts), pipeline.features_, pipeline.calibration_
    assert isinstance(features, TextFeatures)
    batch = (texts * (500 // n + 1))[:500]
    vectors = [vector for text in texts if (vector := features.vector(text)) is not None]

    def without_probabilities() -> None:
        pipeline.calibration_ = None
        for text in texts:
            pipeline.rank([text])
        pipeline.calibration_ = calibration

    work: dict[str, tuple[Callable[[], object], int]] = {
        "features, `vector`": (lambda: [features.vector(t) for t in texts], n),
        "scores, `score_one`": (lambda: [pipeline.learner_.score_one(x) for x in vectors], n),
        "`rank` without probabilities": (without_probabilities, n),
        "`rank`": (lambda: [pipeline.rank([t]) for t in texts], n),
        "`predict`, five labels": (lambda: [pipeline.predictions([t], top=5) for t in texts], n),
        "the same with explanations": (
            lambda: [pipeline.predictions([t], top=5, explain=True) for t in texts],
            n,
        ),
        "`rank`, batch": (lambda: pipeline.rank(batch), len(batch)),
    }
    times = dict.fromkeys(work, math.inf)
    for call, _ in work.values():
        call()  # caches the analysis of words
    for _ in range(repeat):
        for layer, (call, per) in work.items():
            start = time.process_time()
            call()
            times[layer] = min(times[layer], (time.process_time() - start) * 1e6 / per)
    return {layer: round(microseconds, 1) for layer, microseconds in times.items()}


def rendered() -> dict[str, str]:
    """Return the table of the page."""
    of_model = {result["model"]: result["microseconds"] for result in tables.stored(NAME)}
    rows = [[layer, *(f"{of_model[name][layer]:.0f}" for name in MODELS)] for layer in of_model["svm"]]
    return {"single_document": tables.markdown(["layer", *(f"`{name}`" for name in MODELS)], rows)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", type=Path, help="folder of the saved models (default: a temporary one)")
    parser.add_argument("--repeat", type=int, default=20)
    arguments = parser.parse_args()
    training_part, tests = read_corpus()
    with tempfile.TemporaryDirectory() as temporary:
        models_folder = arguments.models or Path(temporary)
        models_folder.mkdir(parents=True, exist_ok=True)
        for model in MODELS:
            figures = measure(trained(model, models_folder, training_part), tests[:TEXTS], arguments.repeat)
            print(model, figures, flush=True)
            tables.store(NAME, [{"model": model, "microseconds": figures}], ("model",))
    tables.show(PAGE, rendered())
