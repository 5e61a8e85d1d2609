"""Measure what threads save when ``svm`` is trained, with the same weights.

    python -m benchmarks.threads [--corpus NAME ...] [--repeat N]

The corpora have more examples than features; others are trained by one thread. Features are divided by their
largest value. Stores the elapsed time of one thread and of two in turns, the fastest of the repeats, and
whether all weights have the same bits, and writes the table into ``docs/learners.md``. Needs two idle cores.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np

from benchmarks import tables
from benchmarks.multilabel_corpora import CORPORA
from models import catalog
from models.data.examples import Examples
from models.pipeline import Pipeline

NAME = "threads"
PAGE = tables.DOCS / "learners.md"
TITLES = ("ohsumed", "bibtex", "tmc2007-500")


def trained(examples: Examples, n_jobs: int) -> Pipeline:
    """Return a pipeline that is trained by some threads."""
    pipeline = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "numeric", "scaling": "max_abs"}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "svm"}),
        catalog.DECISION_PARAMETERS.validate_python({"kind": "sign"}),
    )
    return pipeline.fit(examples, n_jobs=n_jobs)


def measure(corpus: str, repeat: int) -> tables.Result:
    """Return the times and whether the weights are the same."""
    whole = CORPORA[corpus]()
    examples = whole.where(np.array(whole.split_column) == "train")
    seconds: dict[int, list[float]] = {1: [], 2: []}
    states = {}
    for _ in range(repeat):
        for n_jobs, times in seconds.items():
            start = time.perf_counter()
            pipeline = trained(examples, n_jobs)
            times.append(time.perf_counter() - start)
            states[n_jobs] = pipeline.get_state()
    return {
        "corpus": corpus,
        "examples": examples.n_examples,
        "features": pipeline.learner_.n_features_in_,
        "labels": len(pipeline.labels_),
        "seconds_1": round(min(seconds[1]), 2),
        "seconds_2": round(min(seconds[2]), 2),
        "same_bits": all(np.array_equal(states[1][name], states[2][name]) for name in states[1]),
    }


def rendered() -> dict[str, str]:
    """Return the table of the page."""
    rows = [
        [
            result["corpus"],
            f"{result['examples']:,} × {result['features']:,}, {result['labels']} labels",
            f"{result['seconds_1']:.1f} s",
            f"{result['seconds_2']:.1f} s",
            "yes" if result["same_bits"] else "no",
        ]
        for result in tables.stored(NAME)
    ]
    return {"threads": tables.markdown(["corpus", "size", "one thread", "two threads", "same bits"], rows)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--corpus", nargs="*", default=TITLES, choices=TITLES)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    for corpus_name in arguments.corpus:
        measured = measure(corpus_name, arguments.repeat)
        print(measured, f"load {os.getloadavg()[0]:.1f}", flush=True)
        tables.store(NAME, [measured], ("corpus",))
    tables.show(PAGE, rendered())
