"""Requests and jobs are spans if OpenTelemetry is configured, and nothing of it is imported otherwise."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import in_process
import pytest
import rows
from captured_logs import captured_logs
from in_process_api import InProcessApi, api
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from app.context import AppContext
from app.telemetry import opening
from app.telemetry.spans import Spans
from workers import job_process

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
def exporter(service: InProcessApi) -> Iterator[InMemorySpanExporter]:
    """Gets the spans of the service."""
    exporter = InMemorySpanExporter()
    service.app.state.spans = Spans(exporter, in_background=False)
    yield exporter
    service.app.state.spans = None


def test_a_request_is_a_span_in_the_trace_of_its_caller(
    service: InProcessApi, exporter: InMemorySpanExporter
) -> None:
    before = time.time_ns()
    headers = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "X-Request-ID": "mail-1"}
    service.send("GET", "/v1/models/private-name", headers=headers)
    (span,) = exporter.get_finished_spans()
    assert span.name == "models_get"
    assert span.context is not None
    assert f"{span.context.trace_id:032x}" == TRACE
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == "00f067aa0ba902b7"
    assert span.attributes == {
        "http.request.method": "GET",
        "http.response.status_code": 404,
        "covey.request_id": "mail-1",
    }
    assert span.status.status_code is StatusCode.UNSET
    assert span.start_time is not None
    assert span.end_time is not None
    assert before - 1e9 < span.start_time < span.end_time <= time.time_ns()


def test_a_failure_of_the_service_is_an_error_without_its_message(
    service: InProcessApi, exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("private words")

    monkeypatch.setattr("app.keys.service.page", fail)
    assert service.send("GET", "/v1/api-keys").status_code == 500
    (span,) = exporter.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert "private" not in span.to_json()


class Collector:
    """A receiver of OTLP over HTTP."""

    def __init__(self) -> None:
        self.names: dict[str, dict[str, str]] = {}


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """Receives the spans of every process that starts now."""
    state = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = ExportTraceServiceRequest.FromString(body)
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        state.names[span.name] = {
                            item.key: item.value.string_value or str(item.value.int_value)
                            for item in span.attributes
                        }
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield state
        server.shutdown()
        thread.join()


def test_spans_of_requests_and_jobs_reach_a_receiver(
    collector: Collector, tmp_path: Path, migrated_sqlite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with api(tmp_path, migrated_sqlite, monkeypatch) as service:
        body = {"name": "inline", "examples": [{"text": "an invoice", "labels": ["billing"]}]}
        service.call("POST", "/v1/datasets", 201, json=body)
        run_next_job(service.ctx)
    # The end of the API has sent the spans that waited.
    assert collector.names["datasets_create"]["http.response.status_code"] == "201"
    assert collector.names["job ingest"]["covey.outcome"] == "succeeded"
    assert collector.names["job ingest"]["covey.job_id"].startswith("job_")


def run_next_job(ctx: AppContext) -> None:
    """Run the oldest job as a job process does, but in this process."""
    claim = rows.claimed(ctx.db, in_process.queued(ctx)[0], seconds=60)
    assert job_process._run_and_report(ctx, claim) == 0


def test_nothing_of_opentelemetry_is_imported_without_a_receiver() -> None:
    code = (
        "import sys; from app.telemetry.opening import open_spans; "
        "assert open_spans(in_background=True) is None; "
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_a_receiver_without_the_extra_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "app.telemetry.spans", None)
    with captured_logs(opening) as lines:
        assert opening.open_spans(in_background=True) is None
    assert [line["event"] for line in lines] == ["telemetry.not_installed"]
