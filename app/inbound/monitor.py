"""Metrics and health of a command for mail servers."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from app.health.monitor import serve

OUTCOMES = ("handled", "refused", "not_routed", "not_delivered", "failed")
"""Outcomes of a message. Only those that are handled or refused are not tried again."""

Part = Literal["service", "next_hop", "mailbox", "messages"]
"""What can fail."""


class Monitor:
    """Counts the messages of a process, and knows whether it works. Each process has one."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._messages = Counter(
            "covey_mail_messages", "Messages by outcome.", ["outcome"], registry=self.registry
        )
        self._seconds = Histogram(
            "covey_mail_message_seconds",
            "Time from the arrival of a message to its outcome.",
            registry=self.registry,
            buckets=(0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300),
        )
        self._healthy = Gauge(
            "covey_mail_healthy", "1 if messages can be handled, else 0.", registry=self.registry
        )
        for outcome in OUTCOMES:
            self._messages.labels(outcome)
        self._reasons: dict[Part, str] = {}
        self._healthy.set(1)

    def count(self, outcome: str, seconds: float) -> None:
        """Count a message.

        Args:
            outcome: one of ``OUTCOMES``.
            seconds: how long it took.
        """
        self._messages.labels(outcome).inc()
        self._seconds.observe(seconds)

    def fail(self, part: Part, reason: object) -> None:
        """Report that messages cannot be handled now."""
        self._reasons[part] = str(reason)
        self._healthy.set(0)

    def recover(self, part: Part) -> None:
        """Report that a part does not prevent messages from being handled."""
        self._reasons.pop(part, None)
        self._healthy.set(not self._reasons)

    def reasons(self) -> dict[str, str]:
        """Return why messages cannot be handled now, by the part that fails."""
        return {str(part): reason for part, reason in self._reasons.items()}

    def serve(self, address: str | None) -> AbstractContextManager[None]:
        """Serve metrics and health while the block runs; see ``app.health.monitor.serve``."""
        return serve(address, self.registry, self.reasons)
