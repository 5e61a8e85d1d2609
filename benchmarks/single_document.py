"""Measure what a prediction for one document costs, layer by layer, beside the same document in a batch.

    python benchmarks/single_document.py [--models FOLDER] [--texts N] [--repeat N]

Trains two models of Reuters-21578 on its training part, or loads them from the folder: ``mp_boost`` with 200
rounds on selected binary terms, and ``svm`` on pivoted unit-length features. Then ranks texts of the test
part with about 800 characters one by one. Figures are CPU microseconds for each text, the minimum of the
repeats. "Batch" is the same work for 500 texts at once, divided by 500.

``COVEY_DATA`` is the folder of the corpora (default: ``../shared/data``).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from models import catalog
from models.artifact import load, save
from models.data.examples import Examples
from models.features import TextFeatures
from models.pipeline import Pipeline

CORPUS = (
    Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))
    / "reuters21578.jsonl.gz"
)
ANALYZER = {"lowercase": True, "drop_numbers": True, "stop_words": "english", "stemmer": "porter"}
MODELS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "mp_boost": (
        {
            "kind": "text",
            "weighting": "binary",
            "analyzer": ANALYZER,
            "selection": {"kind": "information_gain"},
        },
        {"algorithm": "mp_boost", "rounds": 200},
    ),
    "svm": (
        {"kind": "text", "weighting": "pivoted", "scaling": "unit", "analyzer": ANALYZER},
        {"algorithm": "svm"},
    ),
}


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


def cpu_microseconds(work: Callable[[], object], repeat: int, per: int) -> float:
    """Return the CPU time of a call divided by ``per``, the minimum of the repeats."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times) * 1e6 / per


def measure(pipeline: Pipeline, texts: list[str], repeat: int) -> dict[str, float]:
    """Return the CPU microseconds of each layer for a text."""
    n, features = len(texts), pipeline.features
    assert isinstance(features, TextFeatures)
    matrices = [features.transform([text]) for text in texts]
    batch = (texts * (500 // n + 1))[:500]

    vectors = [vector for text in texts if (vector := features.vector(text)) is not None]

    def serializable(documents: list[str]) -> tuple[list[list[float]], list[list[int]]]:
        ranking = pipeline.rank(documents)
        return ranking.scores.tolist(), ranking.order.tolist()

    work: dict[str, tuple[Callable[[], object], int]] = {
        "features.transform([text])": (lambda: [features.transform([t]) for t in texts], n),
        "features.vector(text)": (lambda: [features.vector(t) for t in texts], n),
        "learner.decision_function": (lambda: [pipeline.learner.decision_function(X) for X in matrices], n),
        "learner.score_one": (lambda: [pipeline.learner.score_one(x) for x in vectors], n),
        "predict([text])": (lambda: [pipeline.predict([t]) for t in texts], n),
        "rank([text])": (lambda: [pipeline.rank([t]) for t in texts], n),
        "rank([text]) and tolist": (lambda: [serializable([t]) for t in texts], n),
        "rank([text], top=5)": (lambda: [pipeline.rank([t], top=5) for t in texts], n),
        "predict, batch": (lambda: pipeline.predict(batch), len(batch)),
        "rank, batch": (lambda: pipeline.rank(batch), len(batch)),
    }
    for call, _ in work.values():
        call()  # caches the analysis of words
    return {name: cpu_microseconds(call, repeat, per) for name, (call, per) in work.items()}


def main() -> None:
    """Print a table with a line for each layer and a column for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", type=Path, help="folder of the saved models (default: a temporary one)")
    parser.add_argument("--texts", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    training, tests = read_corpus()
    texts = tests[: arguments.texts]
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.models or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results = {name: measure(trained(name, folder, training), texts, arguments.repeat) for name in MODELS}
    print(f"{len(texts)} texts of {sum(map(len, texts)) / len(texts):.0f} characters on average")
    print(f"{'CPU µs for each text':30}" + "".join(f"{name:>12}" for name in results))
    for layer in next(iter(results.values())):
        print(f"{layer:30}" + "".join(f"{figures[layer]:12.1f}" for figures in results.values()))


if __name__ == "__main__":
    main()
