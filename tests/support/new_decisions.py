"""Builds decisions that a test records without routing a message."""

from __future__ import annotations

from typing import Any

from app.api.structs import unvalidated
from app.ids import new_id
from app.routing.schemas import Decision, MessageSummary

_new_decision = unvalidated(Decision)
_new_summary = unvalidated(MessageSummary)


def decision(message: dict[str, Any] | None = None, **fields: Any) -> Decision:
    """Return a decision with some fields, and with some fields of its message."""
    summary: dict[str, Any] = {"automated": False, "defects": [], "truncated": False}
    required: dict[str, Any] = {
        "decision_id": new_id("dec"),
        "router": "desk",
        "model": "m",
        "disposition": "routed",
        "departments": [],
        "destinations": [],
        "ranking": [],
        "message": _new_summary(**summary | (message or {})),
    }
    return _new_decision(**required | fields)
