"""CPU time of one process of ``covey route``, here and in another working copy, in alternation.

    python -m benchmarks.route_start
    python -m benchmarks.route_start ../base --messages 40

The service is one that returns the same decision for each message, since only the process of the command
counts: user and system time from its start to its end. ``python -c pass`` is what no command goes below. The
exit status is 1 if this working copy needs more than 100 ms.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

from decision_service import decision_service

from benchmarks.tables import markdown

ROOT = Path(__file__).parents[1]

GOAL_MS = 100.0


def cpu_ms(command: list[str], folder: Path, message: bytes) -> float:
    """Return the CPU time of a process in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder)}
    subprocess.run(command, input=message, env=environment, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("others", nargs="*", type=Path, help="other working copies")
    parser.add_argument("--messages", type=int, default=30, help="processes of each side (30)")
    arguments = parser.parse_args()
    message = (ROOT / "app/demo/several.eml").read_bytes()
    with decision_service() as service:
        words = ["route", "--router", "a", "--url", service.url, "--add-headers"]
        sides = {"python -c pass": ([sys.executable, "-c", "pass"], ROOT)}
        for folder in (ROOT, *(other.resolve() for other in arguments.others)):
            sides[str(folder)] = [sys.executable, str(folder / "app/cli/entry.py"), *words], folder
        times: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(arguments.messages + 1):
            for name, (command, folder) in sides.items():
                times[name].append(cpu_ms(command, folder, message))
    own = {name: values[1:] for name, values in times.items()}  # the first ones may write bytecode
    medians = {name: statistics.median(values) for name, values in own.items()}
    base = medians[str(ROOT)]
    rows = [
        [name, f"{min(own[name]):.0f} ms", f"{medians[name]:.0f} ms", f"{medians[name] / base:.2f}"]
        for name in sides
    ]
    print(markdown(("process", "CPU time, lowest", "median", "of this working copy"), rows))
    return int(base > GOAL_MS)


if __name__ == "__main__":
    sys.exit(main())
