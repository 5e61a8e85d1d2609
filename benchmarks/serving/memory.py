"""The memory that four API processes need for one large model.

A linear model of random numbers is imported into ``covey serve``, which predicts until every process has
loaded it. The proportional set size (PSS) counts a page that p processes share as 1/p of a page for each, so
its sum is the memory that all of them need.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import httpx
import numpy as np
from stack import BYTES, Stack
from waiting import LIMIT_SECONDS, wait_for

from benchmarks.recipes import pipeline
from benchmarks.serving.report import Goal, Values
from benchmarks.serving.setup import Setup
from models import artifact, catalog
from models.base import TrainingSummary
from models.pipeline import Pipeline
from models.pipeline.reference import Reference
from models.serialization.strings import pack_strings

N_LABELS, N_FEATURES, PROCESSES = 1000, 65_000, 4
MIB = 2**20
FIELDS = ("Pss", "Rss", "Private_Dirty")
BODY = {"instances": [{"text": "word000001 word000777 word012345"}], "top": 3}


def measure(setup: Setup) -> list[Goal]:
    """Compare the proportional set size of a model in four processes with the size of its file."""
    file = setup.folder / "large.covey"
    size = artifact.save(random_model(), file).size_bytes / MIB
    _print(f"model: {N_LABELS:,} labels, {N_FEATURES:,} features, {size:,.0f} MiB")
    stack = Stack(setup.folder / "memory", {"COVEY_PROCESSES": str(PROCESSES)}).start()
    try:
        print_memory(stack, "before the import")
        stack.call("POST", "/v1/models/large/versions", 201, content=file.read_bytes(), headers=BYTES)
        predict_everywhere(stack)
        ratio = print_memory(stack, "model loaded")["model PSS"] / MIB / size
    finally:
        stack.stop()
    text = f"memory for a model of {size:,.0f} MiB in {PROCESSES} processes, of its size"
    return [Goal(text, 1.05, Values(ratio, ratio, ratio), at_least=False)]


def random_model() -> Pipeline:
    """Return a fitted pipeline of text features and linear support vector machines with random weights."""
    rng = np.random.default_rng(0)
    model = pipeline({}, {"algorithm": "svm"})
    terms, offsets = pack_strings([f"word{i:06}" for i in range(N_FEATURES)])
    model.set_state(
        {
            "features.terms": terms,
            "features.term_offsets": offsets,
            "features.idf": rng.uniform(1, 10, N_FEATURES),
            "features.mean_distinct": np.array([50.0]),
            "learner.coef": rng.normal(size=(N_FEATURES, N_LABELS)),
            "learner.intercept": rng.normal(size=N_LABELS),
            "decision.thresholds": np.zeros(N_LABELS),
        }
    )
    model.kind_, model.tree_, model.mail_version_ = "text", None, None
    model.labels_ = [f"label{i:05}" for i in range(N_LABELS)]
    model.decision_ = catalog.resolve_decision(model.learner_, None)
    model.decision_report_ = None
    model.reference_ = Reference(source="training", examples=0, label_counts=[0] * N_LABELS, without_label=0)
    model.summary_, model.timings_ = TrainingSummary(), {}
    return model


def predict_everywhere(stack: Stack) -> None:
    """Predict on new connections until every process has mapped the model."""

    def all_loaded() -> bool | None:
        with httpx.Client(base_url=stack.url, timeout=LIMIT_SECONDS, trust_env=False) as client:
            client.post("/v1/models/large/predict", json=BODY).raise_for_status()
        return True if all(memory(pid)["model RSS"] for pid in stack.api_pids()) else None

    wait_for(all_loaded, what="every process to load the model")


def memory(pid: int) -> dict[str, int]:
    """Return the memory of a process in bytes, and that of the mapped files of models."""
    sums = dict.fromkeys((*FIELDS, "model PSS", "model RSS"), 0)
    of_model = False
    with Path(f"/proc/{pid}/smaps").open(encoding="utf-8", errors="replace") as file:
        for line in map(str.rstrip, file):
            field = line.partition(":")[0]
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                of_model = line.endswith(".covey")
            elif field in FIELDS:
                names = [field, f"model {field.upper()}"] if of_model else [field]
                for name in names:
                    if name in sums:
                        sums[name] += int(line.split()[1]) * 1024
    return sums


def print_memory(stack: Stack, what: str) -> dict[str, int]:
    """Print the memory of each API process, and return the sums."""
    found = {str(pid): memory(pid) for pid in sorted(stack.api_pids())}
    together = {name: sum(each[name] for each in found.values()) for name in next(iter(found.values()))}
    _print(f"\n{what}, MiB\n{'process':10}" + "".join(f"{name:>15}" for name in together))
    for process, values in {**found, "together": together}.items():
        _print(f"{process:10}" + "".join(f"{value / MIB:15,.1f}" for value in values.values()))
    return together


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
