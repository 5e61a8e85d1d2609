"""Send random requests and mutated files for any length of time.

One process sends valid and invalid requests, generated from the OpenAPI document, to a running service and
checks every response (``tests/support/fuzzing.py``). Another process reads mutated files of all formats,
messages and saved models (``tests/support/mutation.py``). If an error is found, the output says how to
reproduce it, and the exit status is 1.
"""

from __future__ import annotations

import multiprocessing
import secrets
import sys
import tempfile
import time
import tracemalloc
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from fuzz_setup import call_every_operation
from fuzzing import LIMITED, Fuzz, Tally
from mutation import MEMORY_RATIO, READERS, ReaderFault, check_reader
from stack import Stack

SEQUENCES_SECONDS = 240
"""Duration of the random sequences after each pass over all operations."""
PASS_SECONDS = 400
"""Every pass after the first starts only if more time than this is left."""
EXAMPLES = 20
"""Number of random requests per operation in a pass."""

KINDS = {
    "not_a_server_error": "responses with a 5xx status",
    "status_code_conformance": "responses with an undocumented status",
    "response_schema_conformance": "responses that violate their schema",
    "content_type_conformance": "responses with an undocumented media type",
    "response_headers_conformance": "responses without a documented header",
    "negative_data_rejection": "invalid requests that were accepted",
    "positive_data_acceptance": "valid requests that were rejected as malformed",
}


@dataclass
class FileResults:
    """Results of reading mutated files.

    Attributes:
        outcomes: number of files by reader and by whether the file was read.
        findings: descriptions of failures, hangs and excessive memory.
        memory: largest memory of a reader beyond ten times the size of its file, in bytes.
    """

    outcomes: Counter[tuple[str, bool]] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    memory: int = 0


def read_files(seed: int, seconds: float) -> FileResults:
    """Read mutated files, with each reader in turn."""
    end = time.monotonic() + seconds
    done = FileResults()
    tracemalloc.start()
    number = seed * 10**9
    with tempfile.TemporaryDirectory(prefix="covey-fuzz-") as folder:
        while time.monotonic() < end:
            for reader in READERS:
                try:
                    outcome = check_reader(reader, number, Path(folder))
                except ReaderFault as error:
                    done.findings.append(str(error))
                    continue
                done.outcomes[reader, outcome.accepted] += 1
                done.memory = max(done.memory, outcome.peak_bytes - MEMORY_RATIO * outcome.size_bytes)
            number += 1
    return done


def send_requests(seed: int, seconds: float) -> tuple[Fuzz, int]:
    """Fuzz a new service. Returns the results and the number of internal errors in its log."""
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="covey-fuzz-") as folder:
        stack = Stack(Path(folder) / "data", LIMITED).start()
        try:
            fuzz = Fuzz(stack, seed)
            call_every_operation(fuzz)
            passes = 0
            while (left := end - time.monotonic()) > 0:
                if passes == 0 or left > PASS_SECONDS:
                    fuzz.phases(seed + passes, EXAMPLES)
                left = end - time.monotonic()
                fuzz.sequences(seed + passes, seconds=int(max(1, min(SEQUENCES_SECONDS, left))))
                passes += 1
                print(
                    f"pass {passes}: {fuzz.tally.requests():,} requests, {len(fuzz.tally.findings)} findings",
                    file=sys.stderr,
                    flush=True,
                )
            fuzz.find_internal_failures()
        finally:
            stack.stop()
        lines = stack.log.read_text(errors="replace").replace(" ", "")
        faults = lines.count('"event":"request.internal_error"')
    return fuzz, faults


def print_count(what: str, number: int, more: str = "") -> None:
    """Print a line with a count."""
    print(f"{what:<50}{number:>9,}  {more}".rstrip())


def print_requests(fuzz: Fuzz, faults: int) -> None:
    """Print the results of the requests."""
    tally: Tally = fuzz.tally
    print_count("documented operations", len(fuzz.operations))
    print_count("  that succeeded at least once", len(tally.succeeded() & fuzz.operations))
    classes = ", ".join(f"{name} {times:,}" for name, times in sorted(tally.classes().items()))
    print_count("requests", tally.requests(), classes)
    found: Counter[str] = Counter()
    for (_, finding), (_, times) in tally.findings.items():
        found[finding.partition(":")[0]] += times
    for check, description in KINDS.items():
        print_count(description, found.pop(check, 0))
    print_count("other findings", found.total(), ", ".join(found))
    print_count("internal errors in the service's log", faults)


def print_files(done: FileResults) -> None:
    """Print the results of the files."""
    print_count("files", done.outcomes.total() + len(done.findings))
    for reader in READERS:
        read, rejected = done.outcomes[reader, True], done.outcomes[reader, False]
        print_count(f"  {reader}", read + rejected, f"read {read:,}, rejected {rejected:,}")
    print_count("failures, hangs and excessive memory in readers", len(done.findings))
    print_count(f"largest memory beyond {MEMORY_RATIO} times the file, MiB", round(done.memory / 2**20))


def run(seconds: float, seed: int | None) -> int:
    """Run both processes, print the results, and return the exit status. At least one pass is made."""
    seed = secrets.randbits(20) if seed is None else seed
    print(f"seed {seed}, {seconds / 60:g} minutes", flush=True)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as beside:
        reading = beside.submit(read_files, seed, seconds)
        fuzz, faults = send_requests(seed, seconds)
        done = reading.result()
    print_requests(fuzz, faults)
    print_files(done)
    if reports := [fuzz.tally.report(), *done.findings]:
        print("\n\n".join(text for text in reports if text))
    return 1 if fuzz.tally.findings or done.findings or faults else 0
