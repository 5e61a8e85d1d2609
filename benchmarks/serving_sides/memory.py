"""The memory of four processes with one large model, as ``benchmarks/shared_models.py`` prints it."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass

from benchmarks.serving_sides.processes import ROOT
from benchmarks.serving_sides.report import Goal, Values
from benchmarks.serving_sides.wrk import LoadError

PROCESSES = 4


@dataclass(frozen=True)
class Shared:
    """Sizes in MiB.

    Attributes:
        model: size of the file of the model.
        pss: sum of the proportional set sizes of the model over all processes.
        rss: sum of its resident set sizes.
    """

    model: float
    pss: float
    rss: float


def measure() -> tuple[list[Goal], Shared]:
    """Compare the proportional set size of a model in four processes with the size of its file.

    Raises:
        LoadError: the measurement failed.
    """
    completed = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "shared_models.py", "--processes", str(PROCESSES)],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    print(completed.stdout, file=sys.stderr, flush=True)
    if completed.returncode:
        raise LoadError(f"shared_models.py failed: {completed.stderr[-2000:]}")
    shared = parse(completed.stdout)
    ratio = shared.pss / shared.model
    goal = Goal(
        f"memory for a model of {shared.model:,.0f} MiB in {PROCESSES} processes, of its size",
        1.05,
        Values(ratio, ratio, ratio),
        at_least=False,
    )
    return [goal], shared


def parse(output: str) -> Shared:
    """Read the size of the model, and the last sums.

    >>> parse('''model: 1,000 labels, 65,000 features, 497 MiB
    ... together  1.0  2.0  3.0  0.0  0.0
    ... together  900.1  2,500.0  300.0  497.2  1,988.0
    ... ''')
    Shared(model=497.0, pss=497.2, rss=1988.0)
    """
    size = re.search(r"^model: .* ([\d,.]+) MiB$", output, re.MULTILINE)
    together = re.findall(r"^together\s+(.*)$", output, re.MULTILINE)
    if size is None or not together:
        raise LoadError(f"shared_models.py printed no sizes: {output}")
    pss, rss = (_number(word) for word in together[-1].split()[-2:])
    return Shared(_number(size[1]), pss, rss)


def _number(word: str) -> float:
    return float(word.replace(",", ""))
