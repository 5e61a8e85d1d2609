"""The Python client: its methods, pages, errors, and documentation."""

from __future__ import annotations

import doctest
import gzip
import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import covey_client
import httpx
import pytest
from covey_client import (
    AsyncCovey,
    Covey,
    CoveyError,
    NotFound,
    Router,
    ServerError,
    UnexpectedResponse,
    errors,
    models,
)
from covey_client.generated.api.datasets import datasets_get, datasets_list, datasets_update
from either_client import Blocking, Either, Service, dataset, job, json_response, problem

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "clients" / "python"


def decision() -> models.RecordedDecision:
    fields = {"decision_id": "dec_1", "router": "r", "model": "m", "disposition": "fallback"}
    lists: dict[str, Any] = {"departments": [], "destinations": [], "ranking": []}
    message = {"automated": False, "defects": [], "truncated": False}
    return models.RecordedDecision.from_dict(
        {**fields, **lists, "message": message, "created_at": "2026-01-05T10:00:00Z"}
    )


def public(kind: type) -> dict[str, Any]:
    return {name: value for name, value in inspect.getmembers(kind, callable) if not name.startswith("_")}


def test_both_clients_have_the_same_methods_with_the_same_arguments_and_texts() -> None:
    blocking, asynchronous = public(Covey), public(AsyncCovey)
    assert set(blocking) == set(asynchronous)
    for name in set(blocking) - {"call", "iterate"}:
        assert (
            inspect.signature(blocking[name]).parameters == inspect.signature(asynchronous[name]).parameters
        )
        assert inspect.getdoc(blocking[name]) == inspect.getdoc(asynchronous[name]), name


def test_the_items_of_all_pages_are_read_only_as_far_as_they_are_needed() -> None:
    first = json_response(200, {"items": [dataset(), dataset()], "next_cursor": "c"})
    service = Service(first, json_response(200, {"items": [dataset()]}))
    items = Blocking(service).covey.datasets()
    next(items), next(items)
    assert len(service.requests) == 1
    assert len(list(items)) == 1
    assert [request.url.params.get("cursor") for request in service.requests] == [None, "c"]


def test_any_operation_of_the_generated_client_can_be_called() -> None:
    service = Service(json_response(200, dataset(description="new")))
    covey = Blocking(service).covey
    body = models.DatasetPatch(description="new")
    changed = covey.call(datasets_update.sync_detailed, "ds_1", client=covey.api, body=body)
    assert changed.description == "new"
    pages = Service(json_response(200, {"items": [dataset()]}))
    covey = Blocking(pages).covey
    assert len(list(covey.iterate(datasets_list.sync_detailed, client=covey.api, limit=7))) == 1
    assert pages.requests[0].url.params["limit"] == "7"


class OneStream(httpx.SyncByteStream):
    """A body that can be read once, like that of a connection."""

    def __init__(self, content: bytes) -> None:
        self._parts = [content]

    def __iter__(self) -> Iterator[bytes]:
        yield self._parts.pop()


def test_the_body_of_a_response_is_read_once() -> None:
    content = gzip.compress(json.dumps(dataset()).encode())

    def respond(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=OneStream(content))

    with Covey(transport=httpx.MockTransport(respond)) as covey:
        assert covey.get_dataset("ds_1").id == "ds_1"
        assert covey.call(datasets_get.sync_detailed, "ds_1", client=covey.api).id == "ds_1"


def test_documents_of_a_prediction_are_texts_messages_or_instances(either: Either) -> None:
    service = Service(json_response(200, {"model": "helpdesk", "version": 1, "predictions": []}))
    instance = models.Instance(text="c")
    either(service)(
        "predict", "helpdesk", ["a", b"b", instance, {"features": {"x": 1}}], thresholds={"l": 0.5}
    )
    assert json.loads(service.bodies[0]) == {
        "instances": [{"text": "a"}, {"raw_email": "Yg=="}, {"text": "c"}, {"features": {"x": 1}}],
        "version": "live",
        "explain": False,
        "thresholds": {"l": 0.5},
    }


def test_conditions_of_a_search_are_written_as_in_the_api(either: Either) -> None:
    service = Service(json_response(200, {"items": []}))
    either(service)("decisions", "frontdesk", disposition="review", feedback="none", order="oldest_first")
    assert dict(service.requests[0].url.params) == {
        "disposition": "review",
        "feedback": "none",
        "order": "oldest_first",
        "limit": "500",
    }


def test_the_key_and_the_address_come_from_the_arguments_or_the_environment(
    either: Either, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COVEY_URL", "https://covey.example.org/base")
    monkeypatch.setenv("COVEY_API_KEY", "cov_1")
    service = Service(json_response(200, dataset()))
    either(service)("get_dataset", "ds_1")
    assert str(service.requests[0].url) == "https://covey.example.org/base/v1/datasets/ds_1"
    assert service.requests[0].headers["Authorization"] == "Bearer cov_1"
    assert service.requests[0].headers["User-Agent"] == f"covey-client/{covey_client.__version__}"


def test_every_status_of_the_document_has_its_exception() -> None:
    document = json.loads((ROOT / "openapi.json").read_text())
    statuses = {
        int(status)
        for operations in document["paths"].values()
        for operation in operations.values()
        for status in operation["responses"]
        if int(status) >= 400
    }
    classes = {errors.class_for(status) for status in statuses}
    assert len(classes) == len(statuses)
    assert errors.ProblemError not in classes
    exported = set(covey_client.__all__)
    assert {kind.__name__ for kind in classes} <= exported
    defined = {
        name
        for name, value in inspect.getmembers(errors, inspect.isclass)
        if value.__module__ == errors.__name__
    }
    assert defined <= exported


def test_a_problem_has_its_code_fields_and_request(either: Either) -> None:
    fields = [{"pointer": "/learner/rounds", "message": "too small"}]
    with pytest.raises(NotFound) as raised:
        either(Service(problem(404, "not_found", errors=fields)))("get_dataset", "ds_1")
    error = raised.value
    assert (error.status, error.code, error.detail, error.request_id) == (
        404,
        "not_found",
        "what is wrong",
        "req_1",
    )
    assert error.errors == [errors.FieldError("/learner/rounds", "too small")]


@pytest.mark.parametrize(
    "content", [b"<html>", b"[1]", b"", b'{"errors": 3}', b'{"errors": [{"pointer": 1}]}']
)
def test_an_error_that_is_not_from_the_service_is_still_an_exception(either: Either, content: bytes) -> None:
    with pytest.raises(ServerError) as raised:
        either(Service(httpx.Response(500, content=content)))("get_dataset", "ds_1")
    assert (raised.value.status, raised.value.code, raised.value.request_id) == (500, "error", "")


@pytest.mark.parametrize(
    "response", [httpx.Response(200, content=b"<html>"), json_response(200, {"a": 1}), httpx.Response(302)]
)
def test_a_response_of_something_else_is_an_error(either: Either, response: httpx.Response) -> None:
    with pytest.raises(UnexpectedResponse):
        either(Service(response))("get_dataset", "ds_1")


METHODS: dict[str, tuple[Any, ...]] = {
    "get_dataset": ("ds_1",),
    "datasets": (),
    "predict": ("helpdesk", ["a"]),
    "route": ("frontdesk", b"a"),
    "promote": ("helpdesk", 1),
    "roll_back": ("helpdesk",),
    "feedback": ("dec_1", ["a"]),
    "put_router": ("frontdesk", {}),
    "get_report": ("exp_1",),
    "cancel": (models.TrainingJob.from_dict(job("running")),),
    "train": ({},),
    "create_dataset": ({},),
    "from_feedback": ("frontdesk", "d"),
    "update_dataset": ("ds_1", {}),
    "get_model": ("helpdesk",),
    "get_version": ("helpdesk", 1),
    "get_router": ("frontdesk",),
    "get_router_report": ("frontdesk",),
    "get_decision": ("dec_1",),
    "get_message": (decision(),),
    "review_queue": ("frontdesk",),
    "upload": (b"x",),
}


@pytest.mark.parametrize("status", [200, 201, 202, 203, 204, 206])
def test_no_response_makes_a_method_raise_anything_else_or_return_nothing(
    either: Either, status: int
) -> None:
    contents = [b"", b"null", b"5", b'"text"', b"[]", b"{}", b'{"items": [null]}', b'{"id": 1, "state": []}']
    for method, arguments in METHODS.items():
        for content in contents:
            with pytest.raises(UnexpectedResponse):
                either(Service(httpx.Response(status, content=content)))(method, *arguments)


def test_wrong_arguments_of_an_operation_are_the_callers_error() -> None:
    service = Service(json_response(200, dataset()))
    covey = Blocking(service).covey
    with pytest.raises(TypeError, match="missing a required argument: 'dataset_id'"):
        covey.call(datasets_get.sync_detailed, id="ds_1", client=covey.api)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing a required argument: 'client'"):
        list(covey.iterate(datasets_list.sync_detailed))  # type: ignore[call-arg]
    assert service.requests == []


def test_a_single_item_is_not_taken_for_a_list_and_text_not_for_a_message(either: Either) -> None:
    service = Service(json_response(200, {}))
    for document in ("Where is my parcel?", b"Subject: parcel", {"text": "parcel"}):
        with pytest.raises(TypeError, match="documents must be a list"):
            either(service)("predict", "helpdesk", document)
    with pytest.raises(TypeError, match="labels must be a list"):
        either(service)("feedback", "dec_1", "shipping", allow_new_labels=True)
    with pytest.raises(TypeError, match="the message must be bytes"):
        either(service)("route", "frontdesk", "Subject: parcel")
    assert service.requests == []


def test_every_error_can_be_sent_to_another_process() -> None:
    here, there = Pipe()
    failed = models.Dataset.from_dict(dataset("failed"))
    reason = models.Problem.from_dict(problem(422, "bad_data").json())
    samples = [
        errors.NotFound(404, "not_found", "d", errors=[errors.FieldError("/a", "b")], retry_after=2.0),
        errors.DatasetFailed(failed, reason),
        errors.WorkCancelled(failed),
        errors.WaitTimeout(failed),
        errors.NotRouted("why"),
    ]
    for error in samples:
        error.attempts = 3
        error.add_note("a note")
        here.send(error)
        copy = there.recv()
        assert (type(copy), str(copy)) == (type(error), str(error))
        assert (copy.attempts, copy.__notes__) == (3, ["a note"])
        fields = ("status", "code", "detail", "errors", "request_id", "retry_after")
        for field in fields:
            assert getattr(copy, field, None) == getattr(error, field, None)
        assert hasattr(copy, "work") == hasattr(error, "work")
        if hasattr(error, "work"):
            assert copy.work == error.work


@pytest.mark.parametrize("url", ["localhost:8000", "127.0.0.1", "ftp://example.org"])
def test_a_wrong_address_is_refused_at_once(url: str) -> None:
    for client in (Covey, AsyncCovey):
        with pytest.raises(ValueError, match="must start with http:// or https://"):
            client(url)


def test_a_key_that_cannot_be_one_is_refused_and_not_shown() -> None:
    with pytest.raises(ValueError, match="contains characters that no key contains") as raised:
        Covey(key="cov_secret…")
    assert "secret" not in str(raised.value)
    with pytest.raises(errors.NotRouted, match="the API key"):
        Router("frontdesk", key="cov secret").route(b"")


def test_the_end_of_the_line_of_a_key_is_ignored(either: Either, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COVEY_API_KEY", "cov_1\n")
    service = Service(json_response(200, dataset()))
    either(service)("get_dataset", "ds_1")
    assert service.requests[0].headers["Authorization"] == "Bearer cov_1"


def test_work_is_cancelled(either: Either) -> None:
    service = Service(json_response(202, job("cancelled")))
    cancelled = either(service)("cancel", models.TrainingJob.from_dict(job("running")))
    assert cancelled.state == "cancelled"
    assert service.calls == ["POST /v1/training-jobs/job_1/cancel"]
    with pytest.raises(CoveyError):
        either(Service(problem(409, "job_finished")))("cancel", cancelled)


def test_a_description_is_removed(either: Either) -> None:
    service = Service(json_response(200, dataset()))
    either(service)("update_dataset", "ds_1", {"description": None})
    assert service.bodies == [b'{"description":null}']


def test_what_can_be_deleted_is_deleted_by_its_path(either: Either) -> None:
    service = Service(httpx.Response(204))
    time = "2026-01-05T10:00:00Z"
    named = {
        "name": "a b/c",
        "model": "a b/c",
        "alias": "live",
        "version": 3,
        "created_at": time,
        "updated_at": time,
    }
    for resource in (
        models.Dataset.from_dict(dataset()),
        models.Model.from_dict({**named, "versions": 1, "last_version": 1, "aliases": {}}),
        models.Alias.from_dict({**named, "revision": 1}),
        decision(),
    ):
        either(service)("delete", resource)
    assert [f"{request.method} {request.url.raw_path.decode()}" for request in service.requests] == [
        "DELETE /v1/datasets/ds_1",
        "DELETE /v1/models/a%20b%2Fc",
        "DELETE /v1/models/a%20b%2Fc/aliases/live",
        "DELETE /v1/decisions/dec_1",
    ]
    with pytest.raises(UnexpectedResponse):
        either(Service(json_response(200, {})))("delete", decision())


def test_a_message_is_raw_or_an_object(either: Either) -> None:
    raw = httpx.Response(200, content=b"Subject: a", headers={"Content-Type": "message/rfc822"})
    assert either(Service(raw))("get_message", decision()) == b"Subject: a"
    parts = {"email": {"text": "a"}}
    assert either(Service(json_response(200, parts)))("get_message", decision()) == parts


def test_the_review_queue_has_what_waits_for_a_person(either: Either) -> None:
    service = Service(json_response(200, {"items": []}))
    assert either(service)("review_queue", "frontdesk") == []
    (request,) = service.requests
    assert dict(request.url.params) == {
        "review": "any", "feedback": "none", "order": "oldest_first", "limit": "500"
    }  # fmt: skip


def test_a_data_set_of_corrections_is_requested_with_another_data_set(either: Either) -> None:
    first = models.Dataset.from_dict(dataset())
    for given in (first, first.id):
        service = Service(json_response(201, dataset()), json_response(200, dataset()))
        either(service)("from_feedback", "frontdesk", "corrections", and_dataset=given)
        assert json.loads(service.bodies[0]) == {
            "name": "corrections", "from_feedback": {"router": "frontdesk"}, "and_dataset": "ds_1"
        }  # fmt: skip


def test_users_read_plain_strings_and_none() -> None:
    found = decision()
    assert f"{found.disposition!r} {found.version}" == "'fallback' None"
    assert (found.version, found.explanation, found.feedback) == (None, None, None)
    assert found.to_dict() == decision().to_dict()
    assert "version" not in found.to_dict()
    body = models.RouterPut(model="m", fallback="f", at_most=None, keep_messages="all")
    assert body.to_dict() == models.RouterPut(model="m", fallback="f", keep_messages="all").to_dict()
    assert "at_most" not in body.to_dict()
    sources = [path.read_text("utf-8") for path in (PACKAGE / "src").rglob("*.py")]
    assert [text for text in sources if re.search(r"\b(UNSET|Unset|Enum)\b", text)] == []
    assert "UNSET" not in (PACKAGE / "README.md").read_text("utf-8")


def test_the_examples_in_docstrings_run() -> None:
    elsewhere = {"generated", "_async", "_sync"}  # these need a service
    modules = [name for _, name, _ in pkgutil.iter_modules(covey_client.__path__) if name not in elsewhere]
    n_examples = 0
    for name in modules:
        result = doctest.testmod(importlib.import_module(f"covey_client.{name}"), raise_on_error=True)
        n_examples += result.attempted
    assert n_examples > 5


def test_the_generated_part_is_that_of_the_current_document() -> None:
    generate = sys.modules["covey_client_generate"]
    assert generate.is_up_to_date()


def test_the_blocking_client_is_generated_from_the_asynchronous_one() -> None:
    unasync = sys.modules["covey_client_unasync"]
    generated = unasync.generate()
    assert unasync.contents(unasync.TARGET) == generated, "run: python clients/python/unasync.py"
    assert {"client.py", "routing.py"} <= set(generated)
    words = re.compile(r"\b(async|await|Async\w+|Awaitable|a(?:close|read|iter)\w*)\b")
    for name, text in generated.items():
        code = re.sub(r'""".*?"""|#[^\n]*', "", text, flags=re.DOTALL)
        assert words.findall(code) == [], name


def test_the_examples_of_the_generator_run() -> None:
    for name, n_examples in (("covey_client_unasync", 1), ("covey_client_generate", 3)):
        assert doctest.testmod(sys.modules[name], raise_on_error=True).attempted == n_examples


def test_the_wheel_contains_everything_and_needs_nothing_of_covey(tmp_path: Path) -> None:
    build = "import hatchling.build, sys; print(hatchling.build.build_wheel(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=PACKAGE, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("covey_client-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (archive.read(name).decode() for name in names if name.endswith("/METADATA"))
    assert {
        "covey_client/py.typed",
        "covey_client/generated/models/dataset.py",
        "covey_client/_sync/client.py",
    } <= set(names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"covey_client"}
    assert "Requires-Dist: httpx" in metadata
    program = (
        f"import sys; sys.path.insert(0, {str(wheel)!r}); import covey_client;"
        "print(covey_client.__file__, [name for name in ('app', 'models', 'covey') if name in sys.modules])"
    )
    completed = subprocess.run(
        [sys.executable, "-I", "-c", program], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    assert completed.stdout.split() == [f"{wheel}/covey_client/__init__.py", "[]"]


@pytest.mark.long
def test_the_package_installs_in_an_empty_environment(tmp_path: Path) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", f"{PACKAGE}[bar]"], check=True)
    program = "import covey_client, rich; print(covey_client.Covey('http://127.0.0.1:9').api)"
    subprocess.run([python, "-I", "-c", program], check=True, cwd=tmp_path)
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format", "json"], check=True, capture_output=True, text=True
    )
    installed = {package["name"].lower() for package in json.loads(listed.stdout)}
    assert "covey-client" in installed
    assert not installed & {"covey", "numpy", "fastapi", "sqlalchemy"}
