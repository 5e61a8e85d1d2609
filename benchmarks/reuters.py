"""Train both boosting learners on Reuters-21578 with the service, and compare with table 2 of MP-Boost.

Starts a service, uploads the corpus, and trains with all features. Prints micro- and macro-averaged F1, the
paper's figures, and the memory of the service.

    python benchmarks/reuters.py [--rounds 5,10,20,50,100,200]

``COVEY_DATA`` is the folder of the corpora (default: ``../shared/data``).
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from app.demo.run import Client
from app.demo.service import temporary_service

CORPUS = Path(os.environ.get("COVEY_DATA", "../shared/data")) / "reuters21578.jsonl.gz"

PAPER = {
    "adaboost_mh": {
        5: (0.416, 0.235),
        10: (0.483, 0.271),
        20: (0.611, 0.325),
        50: (0.723, 0.392),
        100: (0.776, 0.454),
        200: (0.798, 0.461),
    },
    "mp_boost": {
        5: (0.704, 0.529),
        10: (0.759, 0.556),
        20: (0.795, 0.586),
        50: (0.822, 0.589),
        100: (0.837, 0.608),
        200: (0.843, 0.600),
    },
}
"""Micro- and macro-averaged F1 in table 2: Reuters-21578, full feature set."""

FEATURES: dict[str, Any] = {
    "kind": "text",
    "weighting": "binary",
    "analyzer": {"lowercase": True, "drop_numbers": True, "stop_words": "english", "stemmer": "porter"},
}


class Memory:
    """Peak memory of the service's processes, by repeated measurement."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.peaks: dict[str, int] = {}

    def measure(self) -> None:
        """Measure once."""
        for pid in _descendants(self._pid):
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:  # the process has ended
                continue
            resident = next((int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line), 0)
            kind = next((k for k in ("workers", "app api", "valkey-server") if k in command), None)
            if kind is not None:
                self.peaks[kind] = max(self.peaks.get(kind, 0), resident)


@contextmanager
def measured(pid: int) -> Iterator[Memory]:
    """Measure the memory five times per second until the block ends."""
    memory = Memory(pid)
    done = threading.Event()

    def loop() -> None:
        while not done.wait(0.2):
            memory.measure()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield memory
    finally:
        done.set()
        thread.join()


def _descendants(pid: int) -> list[int]:
    descendants: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            descendants += [child, *_descendants(child)]
    return descendants


def wait(client: Client, path: str, states: tuple[str, ...]) -> dict[str, Any]:
    """Poll until the resource has one of the states."""
    while (resource := client("GET", path))["state"] not in states:
        time.sleep(0.1)
    return resource


def main() -> int:
    """Run the trainings and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", default="5,10,20,50,100,200")
    rounds = [int(part) for part in parser.parse_args().rounds.split(",")]
    if not CORPUS.exists():
        print(f"no {CORPUS}; set COVEY_DATA to the folder of the corpora", file=sys.stderr)
        return 1
    with (
        temporary_service() as url,
        httpx.Client(base_url=url, timeout=300.0, trust_env=False) as http,
        measured(os.getpid()) as memory,
    ):
        client = Client(http)
        start = time.perf_counter()
        dataset = client("POST", "/v1/datasets", json={"name": "Reuters-21578"})
        path = f"/v1/datasets/{dataset['id']}"
        headers = {"Content-Type": "application/octet-stream", "Content-Encoding": "gzip"}
        client("PUT", f"{path}/content", content=CORPUS.read_bytes(), headers=headers)
        dataset = wait(client, path, ("ready", "failed"))
        print(
            f"{dataset['n_examples']} documents ({dataset['splits']['train']} for training, "
            f"{dataset['splits']['test']} for testing), {dataset['n_labels']} labels in the file; "
            f"uploaded and read in {time.perf_counter() - start:.1f} s\n"
        )
        print("learner      rounds   micro F1 (paper)   macro F1 (paper)   pivots   fit [s]")
        for algorithm in ("adaboost_mh", "mp_boost"):
            for n in rounds:
                job = client(
                    "POST",
                    "/v1/training-jobs",
                    json={
                        "model": algorithm,
                        "dataset_id": dataset["id"],
                        "features": FEATURES,
                        "learner": {"algorithm": algorithm, "rounds": n},
                        "decision": {"kind": "sign"},
                    },
                )
                job = wait(client, f"/v1/training-jobs/{job['id']}", ("succeeded", "failed"))
                if job["state"] == "failed":
                    print(job["error"]["detail"], file=sys.stderr)
                    return 1
                version = client("GET", f"/v1/models/{algorithm}/versions/{job['result']['version']}")
                test = version["metrics"]["test"]
                micro, macro = PAPER[algorithm].get(n, (float("nan"), float("nan")))
                print(
                    f"{algorithm:<12} {n:6}   {test['f1_micro']:8.3f}  ({micro:.3f})"
                    f"   {test['f1_macro']:8.3f}  ({macro:.3f})"
                    f"   {version['facts']['distinct_pivots']:6.1f}"
                    f"   {version['timings']['fit_seconds']:7.1f}",
                    flush=True,
                )
        print(f"\n{len(version['labels'])} labels with a training example, {version['facts']['terms']} terms")
        for kind, peak in sorted(memory.peaks.items()):
            print(f"peak resident memory of a {kind!r} process: {peak / 1024:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
