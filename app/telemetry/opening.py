"""Open the export of spans if OpenTelemetry is installed and the environment names a receiver."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from app.telemetry.spans import Spans

log = structlog.get_logger()

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def open_spans(*, in_background: bool) -> Spans | None:
    """Return what exports the spans of this process; None if the environment names no receiver.

    Without a receiver, nothing of OpenTelemetry is imported.

    Args:
        in_background: whether a thread sends spans in groups; otherwise each span is sent at once.
    """
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return None
    try:
        from app.telemetry.spans import Spans, otlp_exporter  # noqa: PLC0415 - needs an extra
    except ImportError:
        log.warning("telemetry.not_installed", hint="install covey[telemetry]")
        return None
    return Spans(otlp_exporter(), in_background=in_background)
