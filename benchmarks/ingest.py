"""Measure speed and memory of reading data sets.

    python benchmarks/ingest.py --mib 1024
    python benchmarks/ingest.py --against ../covey-before

The first command compares the reader of JSON Lines with ``pyarrow.json`` on the same file. The second reads
files of every format with this checkout and with another one, in alternation, and prints the ratio of the
processor times.

Writes files of random sentences (or numeric features) to a temporary folder. Each reader runs in its own
process, so that its peak memory can be measured.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import resource
import statistics
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq

from benchmarks.checkouts import HERE, run_in
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


def examples(n_bytes: int, seed: int = 0) -> Iterator[tuple[str, list[str]]]:
    """Yield texts of about 1 kB with two labels, about ``n_bytes`` in total."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    words = _random_words(rng)
    written = 0
    while written < n_bytes:
        text = " ".join(rng.choices(words, k=150))
        written += len(text.encode()) + 50
        yield text, [f"label {rng.randrange(_LABELS)}" for _ in range(2)]


def feature_examples(n_bytes: int, seed: int = 0) -> Iterator[tuple[dict[str, float], list[str]]]:
    """Yield numeric documents of 60 features with two labels, about ``n_bytes`` of JSON in total."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    names = _random_words(rng)[:_NAMES]
    for _ in range(n_bytes // 1000):
        features = {name: round(rng.random(), 4) for name in rng.choices(names, k=60)}
        yield features, [f"label {rng.randrange(_LABELS)}" for _ in range(2)]


def _random_words(rng: random.Random) -> list[str]:
    return [
        "".join(rng.choices("abcdefghijklmnopqrstuvwxyzäöü", k=rng.randint(2, 10))) for _ in range(_WORDS)
    ]


def write_jsonl(path: Path, n_bytes: int) -> None:
    """Write texts as JSON Lines."""
    with path.open("w", encoding="utf-8") as file:
        for text, labels in examples(n_bytes):
            file.write(json.dumps({"text": text, "labels": labels}, ensure_ascii=False) + "\n")


def write_jsonl_features(path: Path, n_bytes: int) -> None:
    """Write features as JSON Lines."""
    with path.open("w", encoding="utf-8") as file:
        for features, labels in feature_examples(n_bytes):
            file.write(json.dumps({"features": features, "labels": labels}, ensure_ascii=False) + "\n")


def write_csv(path: Path, n_bytes: int) -> None:
    """Write texts as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "labels"])
        writer.writerows([text, ",".join(labels)] for text, labels in examples(n_bytes))


def write_parquet(path: Path, n_bytes: int) -> None:
    """Write texts as Parquet."""
    rows = list(examples(n_bytes))
    table = pa.table({"text": [text for text, _ in rows], "labels": [labels for _, labels in rows]})
    pq.write_table(table, path)


def write_svmlight(path: Path, n_bytes: int) -> None:
    """Write features in the format of LIBSVM."""
    numbers: dict[str, int] = {}
    with path.open("w", encoding="utf-8") as file:
        for features, labels in feature_examples(n_bytes):
            pairs = sorted(
                (numbers.setdefault(name, len(numbers) + 1), value) for name, value in features.items()
            )
            codes = ",".join(label.removeprefix("label ") for label in dict.fromkeys(labels))
            file.write(f"{codes} {' '.join(f'{number}:{value}' for number, value in pairs)}\n")


def write_arff(path: Path, n_bytes: int) -> None:
    """Write features as dense ARFF with ten labels, in a zip with the XML file of its labels."""
    rng = random.Random(0)  # noqa: S311 - no secret
    names = [f"f{number}" for number in range(150)]
    labels = [f"label{number}" for number in range(10)]
    rows = "\n".join(
        ",".join([*(f"{rng.random():.4f}" for _ in names), *(str(rng.randrange(2)) for _ in labels)])
        for _ in range(n_bytes // 1100)
    )
    head = "".join(f"@attribute {name} numeric\n" for name in names)
    head += "".join(f"@attribute {name} {{0,1}}\n" for name in labels)
    xml = "".join(f'<label name="{name}"></label>' for name in labels)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("random.arff", f"@relation random\n{head}@data\n{rows}\n")
        archive.writestr("random.xml", f'<labels xmlns="http://mulan.sourceforge.net/labels">{xml}</labels>')


def message(number: int, text: str, header: str = "") -> str:
    """Return a plain message."""
    return (
        f"Received: from mx.example.com by store.example.com; Mon, 10 Jun 2024 09:14:00 +0200\n"
        f"From: Ann <ann@example.org>\nTo: service@example.com\nMessage-ID: <{number}@example.org>\n"
        f"Date: Mon, 10 Jun 2024 09:14:00 +0200\nSubject: {text[:40]}\n{header}"
        f"Content-Type: text/plain; charset=utf-8\n\n{text}\n"
    )


def write_mbox(path: Path, n_bytes: int) -> None:
    """Write a mailbox with Gmail's labels."""
    with path.open("w", encoding="utf-8") as file:
        for number, (text, labels) in enumerate(examples(n_bytes)):
            header = f"X-Gmail-Labels: {','.join(labels)}\n"
            file.write(f"From ann@example.org Mon Jun 10 09:14:00 2024\n{message(number, text, header)}\n")


def write_eml_zip(path: Path, n_bytes: int) -> None:
    """Write a zip of messages in folders."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number, (text, labels) in enumerate(examples(n_bytes)):
            archive.writestr(f"{labels[0]}/{number}.eml", message(number, text))


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "jsonl": write_jsonl,
    "jsonl, features": write_jsonl_features,
    "csv": write_csv,
    "parquet": write_parquet,
    "svmlight": write_svmlight,
    "arff": write_arff,
    "mbox": write_mbox,
    "eml_zip": write_eml_zip,
}
"""What is read: the name of the format, and a remark after a comma."""


def by_covey(path: Path, kind: str) -> int:
    """Read, validate, count and store."""
    with path.open("rb") as stream, tempfile.TemporaryDirectory() as folder:
        return ingest(stream, kind.partition(",")[0], Path(folder) / "examples.parquet").n_examples


def by_covey_inspect(path: Path, kind: str) -> int:
    """Read, validate and count."""
    return inspect(path, kind.partition(",")[0]).n_examples


def by_pyarrow(path: Path, _: str) -> int:
    """Read the whole file into memory, with all threads."""
    options = pyarrow.json.ReadOptions(block_size=2**24)
    return int(pyarrow.json.read_json(path, read_options=options).num_rows)


def by_pyarrow_single(path: Path, _: str) -> int:
    """Read the whole file into memory, with one thread."""
    options = pyarrow.json.ReadOptions(block_size=2**24, use_threads=False)
    return int(pyarrow.json.read_json(path, read_options=options).num_rows)


def by_pyarrow_stream(path: Path, _: str) -> int:
    """Read batch by batch without keeping the batches."""
    options = pyarrow.json.ReadOptions(block_size=2**24)
    return sum(int(batch.num_rows) for batch in pyarrow.json.open_json(path, read_options=options))


READERS: dict[str, Callable[[Path, str], int]] = {
    "covey, stored": by_covey,
    "covey, inspected": by_covey_inspect,
    "pyarrow, streamed": by_pyarrow_stream,
    "pyarrow, one thread": by_pyarrow_single,
    "pyarrow, all threads": by_pyarrow,
}


def measure(name: str, path: Path, kind: str) -> Measurement:
    """Run one reader in this process."""
    base = _peak()
    start, processor = time.perf_counter(), time.process_time()
    n_rows = READERS[name](path, kind)
    elapsed = time.perf_counter() - start
    return Measurement(elapsed, time.process_time() - processor, base, _peak(), n_rows)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _measured(checkout: Path, name: str, path: Path, kind: str) -> Measurement:
    """Run one reader in a new process, with the packages of a checkout."""
    return Measurement(**run_in(checkout, __file__, "--measure", name, str(path), kind))


def compare_readers(folder: Path, n_bytes: int, kind: str, names: list[str]) -> None:
    """Print a line for each reader of a file."""
    path = folder / "examples.jsonl"
    WRITERS[kind](path, n_bytes)
    n_mib = path.stat().st_size / 2**20
    print(f"{n_mib:,.0f} MiB of {kind}")
    print(f"{'reader':<22}{'rows':>12}{'seconds':>10}{'MiB/s':>8}{'cpu s':>8}{'peak MiB':>10}{'before':>8}")
    for name in names:
        one = _measured(HERE, name, path, kind)
        print(
            f"{name:<22}{one.n_rows:>12,}{one.seconds:>10.1f}{n_mib / one.seconds:>8.0f}"
            f"{one.processor:>8.1f}{one.peak:>10.0f}{one.base:>8.0f}"
        )


def compare_checkouts(folder: Path, n_bytes: int, other: Path, rounds: int) -> None:
    """Print the processor time of this checkout and of another one for files of every format."""
    print(
        f"{'format':<18}{'MiB':>6}{'rows':>10}{'cpu s':>8}{'other':>8}{'ratio':>7}"
        f"{'peak MiB':>10}{'other':>8}"
    )
    for kind, write in WRITERS.items():
        path = folder / "examples"
        write(path, n_bytes)
        sides: dict[Path, list[Measurement]] = {HERE: [], other: []}
        for number in range(rounds):
            for checkout in list(sides)[:: 1 if number % 2 else -1]:
                sides[checkout].append(_measured(checkout, "covey, stored", path, kind))
        here, there = sides[HERE], sides[other]
        processor, before = (statistics.median(one.processor for one in side) for side in (here, there))
        n_rows = here[0].n_rows
        assert {one.n_rows for one in (*here, *there)} == {n_rows}, "both read the same examples"
        print(
            f"{kind:<18}{path.stat().st_size / 2**20:>6.0f}{n_rows:>10,}{processor:>8.2f}{before:>8.2f}"
            f"{processor / before:>7.2f}{max(one.peak for one in here):>10.0f}"
            f"{max(one.peak for one in there):>8.0f}",
            flush=True,
        )


def main() -> None:
    """Write the files, run each reader in a new process, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mib", type=int, default=64, help="size of a file (default 64)")
    parser.add_argument("--kind", choices=("jsonl", "jsonl, features"), default="jsonl")
    parser.add_argument("--readers", nargs="*", choices=READERS, default=list(READERS), metavar="READER")
    parser.add_argument("--against", type=Path, help="another checkout to compare with, in all formats")
    parser.add_argument("--rounds", type=int, default=3, help="readings of each file and side (default 3)")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        name, path, kind = arguments.measure
        json.dump(asdict(measure(name, Path(path), kind)), sys.stdout)
        return
    with tempfile.TemporaryDirectory() as folder:
        if arguments.against:
            compare_checkouts(Path(folder), arguments.mib * 2**20, arguments.against, arguments.rounds)
        else:
            compare_readers(Path(folder), arguments.mib * 2**20, arguments.kind, arguments.readers)


if __name__ == "__main__":
    main()
