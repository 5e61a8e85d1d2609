"""Measure the memory that several API processes need for one large model.

    python benchmarks/shared_models.py
    python benchmarks/shared_models.py --labels 1000 --features 65000 --processes 4

Builds a linear model from random numbers, imports it into ``covey serve --processes N``, and predicts until
every process has loaded it. Prints the memory of each process, and the part of it that is the file of the
model. The proportional set size (PSS) counts a page that p processes share as 1/p of a page for each, so its
sum is the memory that all of them need.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from stack import BYTES, Stack
from waiting import LIMIT_SECONDS, wait_for

from models import artifact, catalog
from models.base import TrainingSummary
from models.pipeline import Pipeline
from models.serialization.strings import pack_strings

MIB = 2**20
FIELDS = ("Pss", "Rss", "Private_Dirty")
BODY = {"instances": [{"text": "word000001 word000777 word012345"}], "top": 3}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--labels", type=int, default=1000)
    parser.add_argument("--features", type=int, default=65_000)
    parser.add_argument("--processes", type=int, default=4)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "model.covey"
        size = artifact.save(random_model(arguments.labels, arguments.features), file).size_bytes
        print(f"model: {arguments.labels:,} labels, {arguments.features:,} features, {size / MIB:,.0f} MiB")
        stack = Stack(folder / "data", {"COVEY_PROCESSES": str(arguments.processes)}).start()
        try:
            print(header("before the import"))
            print_memory(stack)
            with file.open("rb") as content:
                stack.call("POST", "/v1/models/large/versions", 201, content=content, headers=BYTES)
            predict_everywhere(stack)
            print(header("model loaded"))
            print_memory(stack)
        finally:
            stack.stop()


def random_model(n_labels: int, n_features: int) -> Pipeline:
    """Return a fitted pipeline of text features and linear support vector machines with random weights."""
    rng = np.random.default_rng(0)
    pipeline = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text"}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "svm"}),
    )
    terms, offsets = pack_strings([f"word{i:06}" for i in range(n_features)])
    pipeline.set_state(
        {
            "features.terms": terms,
            "features.term_offsets": offsets,
            "features.idf": rng.uniform(1, 10, n_features),
            "features.mean_distinct": np.array([50.0]),
            "learner.coef": rng.normal(size=(n_features, n_labels)),
            "learner.intercept": rng.normal(size=n_labels),
            "decision.thresholds": np.zeros(n_labels),
        }
    )
    pipeline.kind_, pipeline.tree_, pipeline.mail_version_ = "text", None, None
    pipeline.labels_ = [f"label{i:05}" for i in range(n_labels)]
    pipeline.decision_ = catalog.resolve_decision(pipeline.learner_, None)
    pipeline.decision_report_ = None
    pipeline.summary_, pipeline.timings_ = TrainingSummary(), {}
    return pipeline


def predict_everywhere(stack: Stack) -> None:
    """Predict on new connections until every process has mapped the model."""

    def all_loaded() -> bool | None:
        with httpx.Client(base_url=stack.url, timeout=LIMIT_SECONDS, trust_env=False) as client:
            client.post("/v1/models/large/predict", json=BODY).raise_for_status()
        pids = stack.api_pids()
        return True if all(memory(pid, model=True)["Rss"] for pid in pids) else None

    wait_for(all_loaded, what="every process to load the model")


def memory(pid: int, *, model: bool) -> dict[str, int]:
    """Return the memory of a process in bytes: all of it, or the mapped files of models."""
    sums = dict.fromkeys(FIELDS, 0)
    counted = False
    for line in lines(pid):
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            counted = not model or line.endswith(".covey")
        elif counted and (field := line.partition(":")[0]) in sums:
            sums[field] += int(line.split()[1]) * 1024
    return sums


def lines(pid: int) -> Iterator[str]:
    """Yield the description of the memory of a process by the kernel."""
    with Path(f"/proc/{pid}/smaps").open(encoding="utf-8", errors="replace") as file:
        yield from map(str.rstrip, file)


def header(what: str) -> str:
    """Return the head of a table."""
    columns = "".join(f"{name:>15}" for name in FIELDS)
    return f"\n{what}, MiB\n{'process':10}{columns}{'model PSS':>15}{'model RSS':>15}"


def print_memory(stack: Stack) -> None:
    """Print the memory of each API process, and the sums."""
    rows = []
    for pid in sorted(stack.api_pids()):
        whole, of_model = memory(pid, model=False), memory(pid, model=True)
        rows.append([*whole.values(), of_model["Pss"], of_model["Rss"]])
        print(f"{pid:<10}" + "".join(f"{value / MIB:15,.1f}" for value in rows[-1]))
    print(f"{'together':10}" + "".join(f"{sum(column) / MIB:15,.1f}" for column in zip(*rows, strict=True)))


if __name__ == "__main__":
    main()
