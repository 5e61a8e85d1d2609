"""The ids of a caller are kept, if they are safe, and logged with the id of the decision."""

from __future__ import annotations

from typing import Any

import pytest
from in_process_api import InProcessApi

from app.api.request_head import RequestHead
from app.api.request_ids import caller_request_id, caller_trace_id

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


def head(**headers: str) -> RequestHead:
    encoded = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return RequestHead({"query_string": b"", "headers": encoded})


@pytest.mark.parametrize("value", ["a", "req_01k5", "4bf9:2/7+x=@host.example-1", "x" * 128])
def test_a_usable_request_id_is_kept(value: str) -> None:
    assert caller_request_id(head(x_request_id=value)) == value


@pytest.mark.parametrize("value", ["", "x" * 129, "a b", 'a"', "a\tb", "é", "-a", "a{}", "a,b"])
def test_any_other_request_id_is_ignored(value: str) -> None:
    assert caller_request_id(head(x_request_id=value)) is None


@pytest.mark.parametrize("value", [TRACEPARENT, TRACEPARENT[:-1] + "0", "cc" + TRACEPARENT[2:] + "-what"])
def test_the_trace_id_is_read(value: str) -> None:
    assert caller_trace_id(head(traceparent=value)) == TRACE


@pytest.mark.parametrize(
    "value",
    [
        "",
        TRACE,
        TRACEPARENT.upper(),
        "ff" + TRACEPARENT[2:],
        TRACEPARENT + "-more",
        TRACEPARENT.replace(TRACE, "0" * 32),
        TRACEPARENT.replace("00f067aa0ba902b7", "0" * 16),
        "cc" + TRACEPARENT[2:] + "-" + "x" * 600,
    ],
)
def test_an_invalid_traceparent_is_ignored(value: str) -> None:
    assert caller_trace_id(head(traceparent=value)) is None


def request_lines(caplog: pytest.LogCaptureFixture, operation: str) -> list[Any]:
    """Return the lines of the access log for an operation, and forget all lines."""
    lines: list[Any] = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    caplog.clear()
    return [line for line in lines if line["event"] == "request" and line["operation"] == operation]


def test_the_log_connects_the_ids_of_the_caller_with_the_decision(
    service: InProcessApi, caplog: pytest.LogCaptureFixture
) -> None:
    service.train(service.dataset())
    service.call("PUT", "/v1/routers/desk", 200, json={"model": "m", "fallback": "desk"})
    headers = {"X-Request-ID": "mail-17", "traceparent": TRACEPARENT, "Content-Type": "message/rfc822"}
    caplog.clear()
    ids = set()
    for _ in range(2):  # the second response is the stored decision
        message = b"Subject: invoice\r\nMessage-ID: <1@example.org>\r\n\r\nthe invoice is wrong\r\n"
        response = service.send("POST", "/v1/routers/desk/messages", content=message, headers=headers)
        assert response.headers["X-Request-ID"] == "mail-17"
        ids.add(response.json()["decision_id"])
    lines = request_lines(caplog, "routers_route_message")
    assert len(lines) == 2
    for line in lines:
        assert (line["request_id"], line["trace_id"], {line["decision_id"]}) == ("mail-17", TRACE, ids)
    missing = service.send("POST", "/v1/routers/none/messages", content=b"x", headers=headers)
    assert missing.json()["request_id"] == "mail-17"
    (line,) = request_lines(caplog, "routers_route_message")
    assert "decision_id" not in line
