"""Runs ``covey api`` that stops at some messages, so that tests can kill it at a known point.

It stops before the commit of the decision on a message with the subject ``hold before``, and between commit
and response for ``hold after``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from app.cli.main import main
from app.routing.decision_writer import DecisionWriter


def stop_at(method: Callable[[Any, Any], None], subject: str) -> Callable[[Any, Any], None]:
    """Return a method about a group of decisions that waits for ever if one has a subject."""

    def wrapped(writer: Any, group: Any) -> None:
        if any(subject in item.row.response for item in group):
            threading.Event().wait()
        method(writer, group)

    return wrapped


if __name__ == "__main__":
    for name, subject in (("_record", "hold before"), ("_resolve", "hold after")):
        setattr(DecisionWriter, name, stop_at(getattr(DecisionWriter, name), subject))
    main()
