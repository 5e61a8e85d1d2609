"""Requests and files that nobody would send, for as long as one likes.

    python benchmarks/fuzz.py --minutes 60

One process asks a running service all that its OpenAPI document allows and forbids and checks every
answer (``tests/support/fuzzing.py``); another has mangled files of every format, messages and saved models
read (``tests/support/mutation.py``). It prints what was counted, and ends with status 1, and with what shows
it, if anything was found.
"""

from __future__ import annotations

import argparse
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

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from fuzz_tour import tour
from fuzzing import LIMITED, Fuzz, Tally
from mutation import MEMORY_RATIO, READERS, Astray, examine
from stack import Stack

SEQUENCES_SECONDS = 240
"""Of random sequences, after every pass over each operation."""
PASS_SECONDS = 400
"""Less than what is left when a pass over each operation begins, the first one apart."""
EXAMPLES = 20
"""Random requests for each operation in a pass."""

KINDS = {
    "not_a_server_error": "answers that are faults (5xx)",
    "status_code_conformance": "answers with an undocumented status",
    "response_schema_conformance": "answers that do not fit their schema",
    "content_type_conformance": "answers of an undocumented media type",
    "response_headers_conformance": "answers without a documented header",
    "negative_data_rejection": "bad requests that were taken",
    "positive_data_acceptance": "good requests that were not understood",
}


@dataclass
class Read:
    """What mangled files came to.

    Attributes:
        outcomes: files by reader, and whether they were read.
        astray: what was found.
        memory: the most that a reader took beyond ten times its file, in bytes.
    """

    outcomes: Counter[tuple[str, bool]] = field(default_factory=Counter)
    astray: list[str] = field(default_factory=list)
    memory: int = 0


def read_files(seed: int, seconds: float) -> Read:
    """Have mangled files read, each reader's in turn."""
    end = time.monotonic() + seconds
    done = Read()
    tracemalloc.start()
    number = seed * 10**9
    with tempfile.TemporaryDirectory(prefix="covey-fuzz-") as folder:
        while time.monotonic() < end:
            for reader in READERS:
                try:
                    outcome = examine(reader, number, Path(folder))
                except Astray as error:
                    done.astray.append(str(error))
                    continue
                done.outcomes[reader, outcome.read] += 1
                done.memory = max(done.memory, outcome.peak_bytes - MEMORY_RATIO * outcome.size_bytes)
            number += 1
    return done


def ask(seed: int, seconds: float) -> tuple[Fuzz, int]:
    """Ask a service of its own; gives what was counted, and how many faults it logged."""
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="covey-fuzz-") as folder:
        stack = Stack(Path(folder) / "data", LIMITED).start()
        try:
            fuzz = Fuzz(stack, seed)
            tour(fuzz)
            passes = 0
            while (left := end - time.monotonic()) > 0:
                if passes == 0 or left > PASS_SECONDS:
                    fuzz.phases(seed + passes, EXAMPLES)
                left = end - time.monotonic()
                fuzz.sequences(seed + passes, int(max(1, min(SEQUENCES_SECONDS, left))))
                passes += 1
                told = (
                    f"pass {passes}: {fuzz.tally.requests():,} requests, {len(fuzz.tally.findings)} findings"
                )
                print(told, file=sys.stderr, flush=True)
            fuzz.ended_by_faults()
        finally:
            stack.stop()
        faults = stack.log.read_text(errors="replace").replace(" ", "").count('"event":"fault"')
    return fuzz, faults


def line(what: str, number: int, more: str = "") -> None:
    """Print a count."""
    print(f"{what:<50}{number:>9,}  {more}".rstrip())


def tell_answers(fuzz: Fuzz, faults: int) -> None:
    """Print what asking came to."""
    tally: Tally = fuzz.tally
    line("operations of the document", len(fuzz.operations))
    line("  that did what they are for", len(tally.served() & fuzz.operations))
    classes = ", ".join(f"{name} {times:,}" for name, times in sorted(tally.classes().items()))
    line("requests", tally.requests(), classes)
    found: Counter[str] = Counter()
    for (_, wrong), (_, times) in tally.findings.items():
        found[wrong.partition(":")[0]] += times
    for check, words in KINDS.items():
        line(words, found.pop(check, 0))
    line("anything else", found.total(), ", ".join(found))
    line("faults in the service's log", faults)


def tell_files(done: Read) -> None:
    """Print what reading came to."""
    line("files", done.outcomes.total() + len(done.astray))
    for reader in READERS:
        read, refused = done.outcomes[reader, True], done.outcomes[reader, False]
        line(f"  {reader}", read + refused, f"read {read:,}, refused {refused:,}")
    line("readers that failed, hung or took too much memory", len(done.astray))
    line(f"most memory beyond {MEMORY_RATIO} times the file, MiB", round(done.memory / 2**20))


def main() -> int:
    """Ask, read and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="so long; one pass at least")
    parser.add_argument("--seed", type=int, default=None, help="any number; by default a random one")
    arguments = parser.parse_args()
    seed = secrets.randbits(20) if arguments.seed is None else arguments.seed
    seconds = arguments.minutes * 60
    print(f"seed {seed}, {arguments.minutes:g} minutes", flush=True)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as beside:
        reading = beside.submit(read_files, seed, seconds)
        fuzz, faults = ask(seed, seconds)
        done = reading.result()
    tell_answers(fuzz, faults)
    tell_files(done)
    if told := [fuzz.tally.told(), *done.astray]:
        print("\n\n".join(text for text in told if text))
    return 1 if fuzz.tally.findings or done.astray or faults else 0


if __name__ == "__main__":
    sys.exit(main())
