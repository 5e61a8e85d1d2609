"""Measure speed and memory of reading JSON Lines, compared with pyarrow.json on the same file.

    python benchmarks/ingest.py --mib 1024

Writes a file of random sentences (or numeric features) to a temporary folder and reads it with each reader.
Each reader runs in its own process, so that its peak memory can be measured.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import pyarrow.json

from models.data.ingestion.ingest import ingest
from models.data.ingestion.inspect import inspect

_WORDS = 20_000
_LABELS = 100
_NAMES = 200  # pyarrow creates a column for each name and runs out of memory if there are many


@dataclass(frozen=True)
class Measurement:
    """Result of one reader.

    Attributes:
        seconds: wall time.
        processor: CPU time of all threads in seconds.
        base: peak resident memory before reading, in MiB.
        peak: peak resident memory after reading, in MiB.
        n_rows: number of examples.
    """

    seconds: float
    processor: float
    base: float
    peak: float
    n_rows: int


def make_file(path: Path, n_bytes: int, kind: str, seed: int = 0) -> None:
    """Write about ``n_bytes`` of labelled examples of about 1 kB."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    words = [
        "".join(rng.choices("abcdefghijklmnopqrstuvwxyzäöü", k=rng.randint(2, 10))) for _ in range(_WORDS)
    ]
    written = 0
    with path.open("wb") as file:
        while written < n_bytes:
            example: dict[str, object]
            if kind == "text":
                example = {"text": " ".join(rng.choices(words, k=150))}
            else:
                example = {
                    "features": {word: round(rng.random(), 4) for word in rng.choices(words[:_NAMES], k=60)}
                }
            example["labels"] = [f"label {rng.randrange(_LABELS)}" for _ in range(2)]
            written += file.write(json.dumps(example, ensure_ascii=False).encode() + b"\n")


def by_covey(path: Path) -> int:
    """Read, validate, count and store."""
    with path.open("rb") as stream:
        return ingest(stream, "jsonl", path.with_suffix(".parquet")).n_examples


def by_covey_inspect(path: Path) -> int:
    """Read, validate and count."""
    return inspect(path, "jsonl").n_examples


def by_pyarrow(path: Path) -> int:
    """Read the whole file into memory, with all threads."""
    options = pyarrow.json.ReadOptions(block_size=2**24)
    return int(pyarrow.json.read_json(path, read_options=options).num_rows)


def by_pyarrow_single(path: Path) -> int:
    """Read the whole file into memory, with one thread."""
    options = pyarrow.json.ReadOptions(block_size=2**24, use_threads=False)
    return int(pyarrow.json.read_json(path, read_options=options).num_rows)


def by_pyarrow_stream(path: Path) -> int:
    """Read batch by batch without keeping the batches."""
    options = pyarrow.json.ReadOptions(block_size=2**24)
    return sum(int(batch.num_rows) for batch in pyarrow.json.open_json(path, read_options=options))


READERS: dict[str, Callable[[Path], int]] = {
    "covey, stored": by_covey,
    "covey, inspected": by_covey_inspect,
    "pyarrow, streamed": by_pyarrow_stream,
    "pyarrow, one thread": by_pyarrow_single,
    "pyarrow, all threads": by_pyarrow,
}


def measure(name: str, path: Path) -> Measurement:
    """Run one reader in this process."""
    base = _peak()
    start, processor = time.perf_counter(), time.process_time()
    n_rows = READERS[name](path)
    elapsed = time.perf_counter() - start
    return Measurement(elapsed, time.process_time() - processor, base, _peak(), n_rows)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Write the file, run each reader in a new process, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mib", type=int, default=64, help="size of the file (default 64)")
    parser.add_argument("--kind", choices=("text", "features"), default="text")
    parser.add_argument("--readers", nargs="*", choices=READERS, default=list(READERS), metavar="READER")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "examples.jsonl"
        make_file(path, arguments.mib * 2**20, arguments.kind)
        n_mib = path.stat().st_size / 2**20
        print(f"{n_mib:,.0f} MiB of {arguments.kind}")
        print(
            f"{'reader':<22}{'rows':>12}{'seconds':>10}{'MiB/s':>8}{'cpu s':>8}{'peak MiB':>10}{'before':>8}"
        )
        for name in arguments.readers:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                one = pool.submit(measure, name, path).result()
            print(
                f"{name:<22}{one.n_rows:>12,}{one.seconds:>10.1f}{n_mib / one.seconds:>8.0f}"
                f"{one.processor:>8.1f}{one.peak:>10.0f}{one.base:>8.0f}"
            )


if __name__ == "__main__":
    main()
