"""Inserts routers and their decisions as rows, without routing messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from sqlalchemy import insert

from app.db import tables
from app.db.session import Database
from app.ids import first_id

START = datetime(2026, 3, 2, tzinfo=UTC)
"""A Monday, the time of the first decision."""

LABELS = ["billing", "legal", "sales"]


@dataclass(frozen=True)
class RoutedMessage:
    """What a test needs to know about a decision.

    Attributes:
        at: time of the decision.
        version: the version that decided.
        disposition: what became of the message.
        predicted: the predicted labels with their probabilities.
        set_probability: the probability of the predicted labels; None if there is none.
        feedback: the correct labels; None without feedback.
        shadow: the labels of shadow version 2; None without a shadow.
        unknown_words: share of unknown words; None for an older decision.
    """

    at: datetime = START
    version: int = 1
    disposition: str = "routed"
    predicted: Sequence[tuple[str, float | None]] = (("billing", 0.9),)
    set_probability: float | None = 0.9
    feedback: Sequence[str] | None = None
    shadow: Sequence[str] | None = None
    unknown_words: float | None = None

    @property
    def labels(self) -> set[str]:
        """The predicted labels."""
        return {label for label, _ in self.predicted}


def random_messages(n: int, seed: int = 0, *, weeks: int = 4) -> list[RoutedMessage]:
    """Return messages of all kinds."""
    rng = np.random.default_rng(seed)
    messages = []
    for i in range(n):
        labels = [label for label in LABELS if rng.random() < 0.4]
        truth = [label for label in LABELS if (label in labels) != (rng.random() < 0.15)]
        disposition = "fallback" if not labels else str(rng.choice(["routed", "review"], p=[0.7, 0.3]))
        calibrated = rng.random() < 0.9
        messages.append(
            RoutedMessage(
                at=START + timedelta(weeks=weeks) * i / n,
                version=int(rng.integers(1, 3)),
                disposition=disposition,
                predicted=[(label, float(rng.random()) if calibrated else None) for label in labels],
                set_probability=float(rng.choice([0.29, 1.0, rng.random()])) if calibrated else None,
                feedback=truth if rng.random() < (0.6 if disposition == "review" else 0.1) else None,
                shadow=[label for label in LABELS if (label in labels) != (rng.random() < 0.1)]
                if rng.random() < 0.3
                else None,
                unknown_words=float(np.round(rng.random() ** 2, 4)) if rng.random() < 0.8 else None,
            )
        )
    return messages


def insert_router(
    db: Database,
    references: dict[int, dict[str, Any] | None],
    *,
    name: str = "desk",
    router_id: str = "rtr_1",
) -> None:
    """Insert a router with the versions of its model, each with a reference or None."""
    with db.write() as tx:
        tx.session.add(tables.Model(name="m", last_version=len(references), created_at=START))
        tx.session.flush()
        for number, reference in references.items():
            tx.session.add(
                tables.ModelVersion(
                    model="m",
                    version=number,
                    artifact_key=f"artifacts/{number}.covey",
                    artifact_sha256="0" * 64,
                    artifact_bytes=3,
                    description={"labels": LABELS} | ({} if reference is None else {"reference": reference}),
                    created_at=START,
                )
            )
        tx.session.flush()
        tx.session.add(
            tables.Router(
                name=name,
                id=router_id,
                model="m",
                version=1,
                config={"model": "m", "version": 1, "fallback": "front@example.org"},
                created_at=START,
                updated_at=START,
            )
        )


def insert_decisions(db: Database, messages: Sequence[RoutedMessage], *, router_id: str = "rtr_1") -> None:
    """Insert decisions with their labels, feedback and shadows."""
    rows: list[dict[str, Any]] = []
    labels: list[dict[str, Any]] = []
    for number, message in enumerate(messages):
        id_ = f"{first_id('dec', message.at)[:-6]}{len(router_id) % 10}{number:05d}"
        rows.append(_row(message, id_, router_id))
        labels += [
            {"router_id": router_id, "label": label, "decision_id": id_} for label in sorted(message.labels)
        ]
    with db.write() as tx:
        tx.session.execute(insert(tables.Decision), rows)
        tx.session.execute(insert(tables.DecisionLabel), labels)


def _row(message: RoutedMessage, id_: str, router_id: str) -> dict[str, Any]:
    departments = [
        {"label": label, "destination": "x", "score": 1.0}
        | ({} if probability is None else {"probability": probability})
        for label, probability in message.predicted
    ]
    summary = {"automated": False, "defects": [], "truncated": False}
    feedback, shadow = message.feedback, message.shadow
    agreed = feedback is not None and {*feedback} == message.labels
    return {
        "id": id_,
        "router_id": router_id,
        "router": "desk",
        "message_key": id_,
        "response": {"departments": departments, "message": summary},
        "created_at": message.at,
        "model": "m",
        "version": message.version,
        "disposition": message.disposition,
        "set_probability": message.set_probability,
        "feedback": None if feedback is None else sorted(feedback),
        "feedback_state": None if feedback is None else "agreed" if agreed else "corrected",
        "shadow": None if shadow is None else {"version": 2, "labels": [*shadow], "ranking": []},
        "shadow_version": None if shadow is None else 2,
        "shadow_agrees": None if shadow is None else {*shadow} == message.labels,
        "unknown_words": message.unknown_words,
    }
