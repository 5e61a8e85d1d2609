"""Train on as many documents as RCV1 has: 800,000 × 25,000 sparse, 75 random words each, 103 labels.

python -m benchmarks.scale [--learner NAME] [--examples N]

Each learner trains in its own process with one thread for one epoch or a few rounds. The goal for its peak
resident memory, including the documents, is 8 GiB.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

from benchmarks.corpora import large
from models.base import Learner, Problem, Step
from models.boosting.adaboost_lc import AdaBoostLC
from models.boosting.mp_boost import MPBoost
from models.perceptrons import MMP

LIMIT_GIB = 8.0

LEARNERS: Mapping[str, Callable[[], Learner]] = {
    "mmp": MMP,
    "adaboost_lc": lambda: AdaBoostLC(rounds=3),
    "mp_boost": lambda: MPBoost(rounds=3),
}


def peak() -> float:
    """Return the peak resident memory of this process in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def train(name: str, examples: int) -> None:
    """Generate the documents, train, and print time and memory."""
    X, Y = large(examples)
    before, start = peak(), time.perf_counter()
    progress: list[tuple[float, str]] = []

    def record(step: Step, /) -> None:
        progress.append((time.perf_counter() - start, f"{step.completed} {step.unit}"))

    LEARNERS[name]().fit_problem(Problem(X, Y), monitor=record)
    seconds = time.perf_counter() - start
    first, steps = progress[0][0], progress[-1][1]
    later = (progress[-1][0] - first) / (len(progress) - 1) if len(progress) > 1 else first
    print(
        f"{name:12} {X.shape[0]:,} × {X.shape[1]:,}, {X.nnz / X.shape[0]:.1f} values and "
        f"{Y.nnz / Y.shape[0]:.2f} of {Y.shape[1]} labels per row: {steps} in {seconds:.0f} s "
        f"(first step {first:.1f} s, later steps {later:.2f} s each); peak {peak():.2f} GiB, "
        f"{before:.2f} before training: {'met' if peak() < LIMIT_GIB else 'NOT MET'}",
        flush=True,
    )


def main() -> None:
    """Train one learner in this process, or each learner in its own process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learner", choices=LEARNERS, help="train only this learner, in this process")
    parser.add_argument("--examples", type=int, default=800_000)
    arguments = parser.parse_args()
    if arguments.learner:
        train(arguments.learner, arguments.examples)
        return
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.scale", "--examples", str(arguments.examples), "--learner"]
    for name in LEARNERS:
        subprocess.run([*command, name], env=environment, check=True)


if __name__ == "__main__":
    main()
