"""Attack a real service: hostile input, races, and dependencies that are slow or away.

    python -m benchmarks.attack
    python -m benchmarks.attack --list
    python -m benchmarks.attack --only text --only "the last key"
    python -m benchmarks.attack --fuzz 60

Prints a line for each statement that must hold: what was measured, the value, the bound, and ``ok`` or
``REGRESSION``. The exit status is 1 if there is a regression. The bounds on times are generous for a machine
of two cores that does nothing else. ``--fuzz`` sends random requests and reads mutated files instead, see
``fuzz.py``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.attack import all_attacks, fuzz
from benchmarks.attack.harness import Targets, attempt


def main() -> int:
    """Run the attacks and print the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="print the names of the attacks, and end")
    parser.add_argument("--short", action="store_true", help="run only the attacks of `make test-faults`")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="WORDS",
        help="run only the attacks whose file or name contains these words; can be repeated",
    )
    parser.add_argument(
        "--fuzz", type=float, metavar="MINUTES", help="random requests and mutated files instead"
    )
    parser.add_argument("--seed", type=int, help="random seed of --fuzz; default: a random number")
    arguments = parser.parse_args()
    if arguments.fuzz is not None:
        return fuzz.run(60 * arguments.fuzz, arguments.seed)
    chosen = [
        attack
        for attack in all_attacks()
        if (attack.short or not arguments.short)
        and (not arguments.only or any(words in f"{attack.area}: {attack.name}" for words in arguments.only))
    ]
    if arguments.list:
        print("\n".join(f"{attack.area}: {attack.name}" for attack in chosen))
        return 0
    regressions: list[str] = []
    n_results = 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="covey-attack-") as folder:
        targets = Targets(Path(folder))
        try:
            for attack in chosen:
                print(f"{attack.area}: {attack.name}", flush=True)
                for result in attempt(attack, targets):
                    n_results += 1
                    verdict = "ok" if result.held else "REGRESSION"
                    line = f"{result.what}: {result.measured} (bound {result.bound})"
                    print(f"  {verdict:<10}  {line}", flush=True)
                    if not result.held:
                        regressions.append(f"{attack.area}: {attack.name}: {line}")
        finally:
            targets.close()
    minutes = (time.monotonic() - began) / 60
    print(
        f"{len(chosen)} attacks, {n_results} results, {len(regressions)} regressions, {minutes:.1f} minutes"
    )
    print("\n".join(f"REGRESSION  {line}" for line in regressions), end="\n" if regressions else "")
    return 1 if regressions else 0


if __name__ == "__main__":
    sys.exit(main())
