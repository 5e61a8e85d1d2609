"""Spans of requests and jobs, exported over OTLP/HTTP. Importing this module needs ``covey[telemetry]``.

A span is created when its work has ended, with the time of its begin. It contains ids, names and states, and
never text of messages or of exceptions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from app.version import __version__

EXPORT_SECONDS = 5
"""Time limit of an export. A job process waits for it before it ends."""


def otlp_exporter() -> SpanExporter:
    """Return what sends spans to the receiver that the environment names."""
    return OTLPSpanExporter(timeout=EXPORT_SECONDS)


class Spans:
    """Create spans.

    Args:
        exporter: sends the spans.
        in_background: whether a thread sends them in groups; otherwise ``record`` sends each one.
    """

    def __init__(self, exporter: SpanExporter, *, in_background: bool) -> None:
        name = os.environ.get("OTEL_SERVICE_NAME", "covey")
        resource = Resource.create({"service.name": name, "service.version": __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        processor = BatchSpanProcessor if in_background else SimpleSpanProcessor
        self._provider.add_span_processor(processor(exporter))
        self._tracer = self._provider.get_tracer("covey", __version__)
        self._propagator = TraceContextTextMapPropagator()

    def record(
        self,
        name: str,
        started: int,
        attributes: Mapping[str, str | int | None],
        *,
        traceparent: str | None = None,
        is_request: bool = False,
        failed: bool = False,
    ) -> None:
        """Create a span that ends now.

        Args:
            name: what was done.
            started: begin in nanoseconds since 1970.
            attributes: attributes; those without a value are left out.
            traceparent: the ``traceparent`` of the caller, whose trace contains the span.
            is_request: whether the span is a request; otherwise it is a job.
            failed: whether the service is at fault.
        """
        parent = None if traceparent is None else self._propagator.extract({"traceparent": traceparent})
        span = self._tracer.start_span(
            name,
            context=parent,
            kind=SpanKind.SERVER if is_request else SpanKind.CONSUMER,
            attributes={key: value for key, value in attributes.items() if value is not None},
            start_time=started,
        )
        if failed:
            span.set_status(Status(StatusCode.ERROR))
        span.end()

    def close(self) -> None:
        """Send the spans that wait, and stop."""
        self._provider.shutdown()
