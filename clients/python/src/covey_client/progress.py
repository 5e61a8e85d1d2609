"""What an upload or a job has done so far, and a bar that shows it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from covey_client.errors import CoveyError


@dataclass(frozen=True)
class Progress:
    """A state of an upload or a job.

    Attributes:
        phase: what happens now, such as `uploading` or `training`.
        completed: completed units of the phase.
        total: all units of the phase; None if the number is not known.
        unit: unit of both numbers, such as `bytes` or `rounds`.
    """

    phase: str
    completed: int
    total: int | None
    unit: str


Report = Callable[[Progress], None]

ShowProgress = bool | Report
"""`True` shows a bar on the standard error stream; it needs the extra `bar`.
A function receives each state."""


@contextmanager
def reporting(progress: ShowProgress) -> Iterator[Report]:
    """Return the function that receives each state."""
    if progress is False:
        yield lambda _progress: None
    elif progress is True:
        with _bar() as report:
            yield report
    else:
        yield progress


@contextmanager
def _bar() -> Iterator[Report]:
    try:
        from rich.console import Console  # noqa: PLC0415 - an extra
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
        from rich.progress import Progress as Bars  # noqa: PLC0415
    except ImportError as error:
        raise CoveyError(
            "progress=True needs Rich: pip install 'covey-client[bar]'; or pass a function"
        ) from error
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[done]}"),
    )
    with Bars(*columns, TimeElapsedColumn(), console=Console(file=sys.stderr)) as bars:
        task = bars.add_task("", total=None, done="")

        def report(progress: Progress) -> None:
            of = f" of {progress.total:,}" if progress.total is not None else ""
            bars.update(
                task,
                description=progress.phase,
                completed=progress.completed,
                total=progress.total,
                done=f"{progress.completed:,}{of} {progress.unit}",
            )

        yield report
