"""The Python client waits for jobs: by the stream of events, or by asking again and again."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import httpx
import pytest
from covey_client import (
    CoveyError,
    DatasetFailed,
    Progress,
    Unauthorized,
    WaitTimeout,
    WorkCancelled,
    WorkFailed,
    models,
)
from covey_client._async import waiting as async_waiting
from covey_client._sync import waiting
from either_client import Either, Service, dataset, job, json_response, problem

QUEUED = models.TrainingJob.from_dict(job("queued"))
RUNNING = json_response(
    200, job("running", progress={"phase": "training", "completed": 3, "total": 9, "unit": "rounds"})
)
SUCCEEDED = json_response(200, job("succeeded"))
EVENTS = "/v1/training-jobs/job_1/events"


def events(*types: str, first: int = 1) -> httpx.Response:
    """Return a stream of events, with keep-alives between them."""
    text = ""
    for number, type_ in enumerate(types, first):
        detail = {"phase": type_, "completed": 0, "total": 9, "unit": "rounds"}
        event = {
            "seq": number,
            "type": "phase" if type_ not in ("succeeded", "failed") else type_,
            "detail": detail,
        }
        text += f": keep-alive\n\nid: {number}\nevent: x\ndata: {json.dumps(event)}\n\n"
    return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, content=text.encode())


def test_the_stream_is_followed_until_the_job_ends(either: Either, waits: list[float]) -> None:
    service = Service(RUNNING, events("reading", "training", "succeeded"), SUCCEEDED)
    seen: list[Progress] = []
    assert either(service)("wait", QUEUED, progress=seen.append).state == "succeeded"
    assert service.requests[1].headers["Accept"] == "text/event-stream"
    assert service.requests[1].url.path == EVENTS
    assert waits == []
    assert Progress("training", 3, 9, "rounds") in seen
    assert [state.phase for state in seen if state.completed == 0] == ["reading", "training"]


def test_a_broken_stream_continues_after_its_last_event(either: Either, waits: list[float]) -> None:
    service = Service(RUNNING, events("reading", "training"), events("succeeded", first=3), SUCCEEDED)
    either(service)("wait", QUEUED)
    assert [request.headers.get("Last-Event-ID") for request in service.requests] == [None, None, "2", None]


@pytest.mark.parametrize(
    "no_stream",
    [
        problem(429, "too_many_streams", {"Retry-After": "90"}),
        problem(503, "file_damaged"),
        json_response(200, {"items": []}),
        httpx.Response(200, headers={"Content-Type": "text/event-stream"}, content=b""),
        httpx.Response(200, headers={"Content-Type": "text/event-stream"}, content=b"data: no json\n\n"),
    ],
)
def test_without_a_stream_the_client_asks_again_and_again(
    either: Either, waits: list[float], no_stream: httpx.Response
) -> None:
    service = Service(RUNNING, no_stream, RUNNING, RUNNING, SUCCEEDED)
    seen: list[Progress] = []
    either(service)("wait", QUEUED, progress=seen.append)
    assert [call.rpartition("/")[2] for call in service.calls] == [
        "job_1",
        "events",
        "job_1",
        "job_1",
        "job_1",
    ]
    assert waits == pytest.approx([0.2, 0.3])
    assert seen[0] == Progress("training", 3, 9, "rounds")


def test_a_wait_continues_while_the_service_restarts(either: Either, waits: list[float]) -> None:
    refused = httpx.ConnectError("refused")
    service = Service(RUNNING, events("training"), *[refused] * 12, SUCCEEDED)
    assert either(service)("wait", QUEUED).state == "succeeded"


@pytest.mark.parametrize(
    "outage",
    [httpx.ConnectError("refused"), httpx.Response(502, content=b"<html>"), problem(503, "not_ready")],
)
def test_a_wait_may_begin_during_an_outage_and_sends_each_request_once(
    either: Either, waits: list[float], outage: httpx.Response | Exception
) -> None:
    for work, n_requests in ((QUEUED, 13), (models.Dataset.from_dict(dataset("ingesting")), 12)):
        ended = json_response(200, job("succeeded") if work is QUEUED else dataset())
        service = Service(*[outage] * (n_requests - 1), ended)
        either(service)("wait", work)
        assert len(service.requests) == n_requests
    assert max(waits) == 2.0


def test_a_wait_asks_no_sooner_than_the_response_says(either: Either, waits: list[float]) -> None:
    busy = problem(429, "too_many_requests", {"Retry-After": "7"})
    either(Service(RUNNING, events(), busy, RUNNING, SUCCEEDED))("wait", QUEUED)
    assert waits == pytest.approx([7.0, 0.3])


def test_a_service_that_hangs_does_not_delay_the_end_of_a_wait(either: Either, waits: list[float]) -> None:
    def hang(request: httpx.Request) -> httpx.Response:
        assert request.extensions["timeout"]["read"] == 5.0
        raise httpx.ReadTimeout("slow")

    service = Service(hang)
    with pytest.raises(WaitTimeout):
        either(service)("wait", QUEUED, timeout=0.0)
    assert len(service.requests) == 2


def test_an_error_names_the_work_for_which_the_client_waited(either: Either) -> None:
    service = Service(json_response(202, job("queued")), problem(401, "unauthorized"))
    with pytest.raises(Unauthorized) as raised:
        either(service)("train", {"model": "helpdesk"})
    assert raised.value.__notes__ == ["The error occurred while waiting for job_1."]


def test_a_wait_ends_if_the_service_stays_away(
    either: Either, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (waiting, async_waiting):
        monkeypatch.setattr(module, "LONGEST_OUTAGE_SECONDS", 0.0)
    with pytest.raises(CoveyError, match="refused"):
        either(Service(RUNNING, events(), httpx.ConnectError("refused")))("wait", QUEUED)


def test_a_wait_does_not_hide_that_the_key_is_wrong(either: Either) -> None:
    with pytest.raises(Unauthorized):
        either(Service(problem(401, "unauthorized")))("wait", QUEUED)


def test_a_failed_job_is_an_error_with_its_code(either: Either) -> None:
    error = {
        "type": "urn:covey:problem:unsuitable_data",
        "title": "t",
        "status": 422,
        "detail": "no labels",
        "code": "unsuitable_data",
        "errors": [{"pointer": "/learner", "message": "m"}],
    }
    with pytest.raises(WorkFailed, match="job_1 failed: unsuitable_data: no labels") as raised:
        either(Service(json_response(200, job("failed", error=error))))("wait", QUEUED)
    assert raised.value.code == "unsuitable_data"
    assert [field.pointer for field in raised.value.errors] == ["/learner"]
    assert raised.value.work.state == "failed"


def test_a_cancelled_job_is_an_error(either: Either) -> None:
    with pytest.raises(WorkCancelled, match="job_1 was cancelled"):
        either(Service(json_response(200, job("cancelled"))))("wait", QUEUED)


def test_a_data_set_that_cannot_be_used_names_the_records(either: Either) -> None:
    error = {
        "type": "urn:covey:problem:bad_data",
        "title": "t",
        "status": 422,
        "detail": "1 record",
        "code": "bad_data",
        "records": [{"line": 7, "reason": "no JSON"}],
    }
    awaiting, failed = dataset("awaiting_content"), dataset("failed", error=error)
    service = Service(
        json_response(201, awaiting), json_response(202, dataset("ingesting")), json_response(200, failed)
    )
    with pytest.raises(DatasetFailed) as raised:
        either(service)("upload", b"x")
    assert [(record.line, record.reason) for record in raised.value.records] == [(7, "no JSON")]


def test_a_wait_ends_in_time(either: Either) -> None:
    started = time.monotonic()
    with pytest.raises(WaitTimeout, match="job_1") as raised:
        either(Service(json_response(202, job("queued")), RUNNING))(
            "train", {"model": "helpdesk"}, timeout=0.2
        )
    assert raised.value.work.id == "job_1", "the caller can wait again"
    assert time.monotonic() - started >= 0.2


@pytest.mark.parametrize("phase", ["training", "reading"])
def test_an_error_of_the_callers_function_reaches_the_caller(either: Either, phase: str) -> None:
    def fail(state: Progress) -> None:
        if state.phase == phase:  # of the job, or of an event
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        either(Service(RUNNING, events("reading", "succeeded"), SUCCEEDED))("wait", QUEUED, progress=fail)


def test_the_state_is_refreshed_while_the_stream_is_silent(
    either: Either, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (waiting, async_waiting):
        monkeypatch.setattr(module, "REFRESH_SECONDS", 0.01)
    seen: list[Progress] = []
    completed = iter(range(1000))

    def respond(request: httpx.Request) -> httpx.Response:
        if request.url.path != EVENTS:
            ended = len(seen) > 5
            progress = {"phase": "training", "completed": next(completed), "unit": "rounds"}
            return json_response(200, job("succeeded" if ended else "running", progress=progress))
        return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, stream=Silent(seen))

    either(Service(respond))("wait", QUEUED, progress=seen.append)
    assert len({state.completed for state in seen}) > 5


class Silent(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A stream that sends nothing until a number of states were shown."""

    def __init__(self, seen: list[Progress]) -> None:
        self._seen = seen

    def __iter__(self) -> Any:
        while len(self._seen) <= 5:
            time.sleep(0.01)
        yield events("succeeded").content

    async def __aiter__(self) -> Any:
        import asyncio

        while len(self._seen) <= 5:
            await asyncio.sleep(0.01)
        yield events("succeeded").content


def test_the_last_state_of_a_job_is_its_end(either: Either) -> None:
    last = {"phase": "saving", "completed": 0, "total": 1, "unit": "files"}
    seen: list[Progress] = []
    either(Service(json_response(200, job("succeeded", progress=last))))("wait", QUEUED, progress=seen.append)
    assert set(seen) == {Progress("succeeded", 1, 1, "steps")}


def test_progress_true_shows_a_bar(
    either: Either, waits: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    either(Service(RUNNING, events("training", "succeeded"), SUCCEEDED))("wait", QUEUED, progress=True)
    assert "steps" in capsys.readouterr().err


def test_progress_true_without_rich_says_how_to_get_it_before_anything_is_sent(
    either: Either, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    service = Service(RUNNING)
    for method in ("upload", "train", "run_experiment", "predict_batch"):
        with pytest.raises(CoveyError, match=r"pip install 'covey-client\[bar\]'"):
            either(service)(method, b"x" if method == "upload" else {}, progress=True)
    assert service.requests == []
