"""The kinds of jobs.

A new kind is an entry of ``KINDS`` here, and its ``Work`` in ``workers.job_kinds``: the API knows the queue
of a job, and need not import what runs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["ingest", "train", "evaluate", "batch_prediction", "experiment", "cell"]


@dataclass(frozen=True)
class JobKind:
    """A kind of jobs.

    Attributes:
        queue: the queue of Celery that the tasks of these jobs wait in.
        event: whether webhooks receive ``job.ended`` when such a job ends. Jobs of an experiment have none,
            because the experiment has one.
    """

    queue: str
    event: bool = True


KINDS: dict[str, JobKind] = {
    "ingest": JobKind("ingest"),
    "evaluate": JobKind("evaluation"),
    "batch_prediction": JobKind("evaluation"),
    "train": JobKind("training"),
    "experiment": JobKind("training", event=False),
    "cell": JobKind("cells", event=False),
}
"""All kinds, those of the most urgent queue first."""

QUEUES = tuple(dict.fromkeys(kind.queue for kind in KINDS.values()))
"""The queues of Celery, the most urgent one first."""

QUEUE_OF: dict[str, str] = {name: kind.queue for name, kind in KINDS.items()}
