"""Fuzzes a running service with valid and invalid requests, and checks every response.

Schemathesis generates the requests from the OpenAPI document, and checks the responses. This module inserts
the ids of existing resources, so that not every request gets a 404. It counts the responses, and protects the
resources that the run needs.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import unquote

import schemathesis
from fuzz_pool import Names, Pool
from schemathesis.config import FuzzConfig, HealthCheck, SchemathesisConfig
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.parameters import ParameterLocation
from schemathesis.core.transport import Response
from schemathesis.engine import events, from_schema
from schemathesis.hooks import GLOBAL_HOOK_DISPATCHER
from schemathesis.openapi.checks import EnsureResourceAvailability, UseAfterFree
from stack import Stack, cpu_seconds
from waiting import LIMIT_SECONDS

from app.api.base_route import ALSO_ACCEPTED

Case: TypeAlias = schemathesis.Case[Any]

LIMITED = {
    "COVEY_JOB_SECONDS": "60",
    "COVEY_JOB_MEMORY_BYTES": str(2**30),
    "COVEY_JOBS_IN_FLIGHT": "40",
    "COVEY_WORKER_CONCURRENCY": "1",
    "COVEY_LOG_LEVEL": "warning",
}
"""Settings with low limits, so that every job ends soon."""

BEYOND_THE_SCHEMA = [404, 409, 412, 413, 416, 422, 429]
"""Statuses that a request can get although it matches the document. JSON Schema cannot express that the
service issued a cursor, that a request has exactly one of four fields, or that a data set has enough examples
for ten folds."""

CHECKS: dict[str, Any] = {
    "not_a_server_error": {},
    "status_code_conformance": {},
    "content_type_conformance": {},
    "response_headers_conformance": {},
    "response_schema_conformance": {},
    "negative_data_rejection": {
        "expected-statuses": [400, 401, 403, 404, 405, 406, 409, 412, 413, 415, 416, 422, 429, 431]
    },
    "positive_data_acceptance": {"expected-statuses": ["2xx", *BEYOND_THE_SCHEMA]},
    "missing_required_header": {},
    "unsupported_method": {},
    "allow_header_conformance": {},
    "ignored_auth": {},
    "use_after_free": {},
    "ensure_resource_availability": {},
    "object_level_authorization": {"enabled": False},  # keys have scopes; no resource belongs to a key
}

OPERATION_OVERRIDES = [
    {
        # The service supports only three content encodings; their names are case-insensitive.
        "include-operation-id": "datasets_upload_content",
        "checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", 415, *BEYOND_THE_SCHEMA]}},
    },
    {
        # The schema of a binary body cannot say that JSON, a form or nothing is no message.
        "include-operation-id": "routers_route_message",
        "checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", 400, *BEYOND_THE_SCHEMA]}},
    },
    {
        # 503 is a valid response, for example on a busy machine where storage responds slowly.
        "include-operation-id": "health_ready",
        "checks": {
            "not_a_server_error": {"enabled": False},
            "positive_data_acceptance": {"expected-statuses": ["2xx", 503]},
        },
    },
]

EXISTENCE_FAILURES = (EnsureResourceAvailability, UseAfterFree)
"""Failures about the existence of the resource of a request."""

BASE_SECONDS = 5.0
SECONDS_PER_BYTE = 20e-6
"""CPU time of the API for one request: at most ``BASE_SECONDS``, which includes loading a model, plus this
time for each byte of the request and its response."""

INTERNAL_CODES = {"internal_error", "worker_lost"}
"""Error codes of jobs that failed because of the service, not because of the request."""

RAW = {"datasets_upload_content", "models_import_version", "routers_route_message"}
"""Operations with a binary request body."""

QUICK = {"algorithm": "mp_boost", "rounds": 3}
SIGN = {"kind": "sign"}
LINES = b'{"text": "an invoice", "labels": ["billing"]}\n{"text": "a parcel", "labels": ["shipping"]}\n'
MAIL = (
    b"From: ann@example.com\r\nSubject: Invoice 4711\r\nMessage-ID: <%d@example.com>\r\n\r\nIt is wrong.\r\n"
)


MESSAGE_TYPES = ("message/rfc822", "message/global")


@schemathesis.serializer(*MESSAGE_TYPES)
def _serialize_message(context: schemathesis.SerializationContext, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@dataclass
class Tally:
    """Counts of responses, and findings.

    Attributes:
        statuses: number of responses by operation and status.
        findings: the first request with a fault, and the number of such requests, by operation and fault.
    """

    statuses: dict[str, Counter[int]] = field(default_factory=dict)
    findings: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)

    def record(self, operation: str, fault: str, request: str) -> None:
        """Record a fault."""
        first, times = self.findings.get((operation, fault), (request, 0))
        self.findings[operation, fault] = first, times + 1

    def requests(self) -> int:
        """Return the number of responses."""
        return sum(counts.total() for counts in self.statuses.values())

    def classes(self) -> Counter[str]:
        """Return the number of responses by the first digit of their status."""
        counted: Counter[str] = Counter()
        for counts in self.statuses.values():
            for status, times in counts.items():
                counted[f"{status // 100}xx"] += times
        return counted

    def succeeded(self) -> set[str]:
        """Return the operations that succeeded at least once."""
        return {name for name, counts in self.statuses.items() if any(200 <= s < 300 for s in counts)}

    def report(self) -> str:
        """Return every finding with its request."""
        return "\n\n".join(
            f"{operation}, {times} times: {fault}\n{request}"
            for (operation, fault), (request, times) in sorted(self.findings.items())
        )


def _with_all_forms(part: Any) -> Any:
    """Return the document with the forms of values that the service accepts, and generated clients do not
    offer."""
    if isinstance(part, list):
        return [_with_all_forms(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    schema = {key: _with_all_forms(inner) for key, inner in part.items() if key != ALSO_ACCEPTED}
    if "content" in part:  # a body
        return {**schema, "content": {**schema["content"], **part.get(ALSO_ACCEPTED, {})}}
    return {"anyOf": [schema, *part[ALSO_ACCEPTED]]} if ALSO_ACCEPTED in part else schema


class Fuzz:
    """Sends requests to one stack.

    Args:
        stack: a stack for this run alone. Requests can delete every resource that the pool does not protect.
        seed: seed of all random choices.
    """

    def __init__(self, stack: Stack, seed: int) -> None:
        self.stack = stack
        self.tally = Tally()
        self.rng = random.Random(seed)  # noqa: S311 - test data
        self.pool = Pool(self.rng)
        self.artifact = b""
        self._changed: set[str] = set()
        (self._api,) = stack.api_pids()
        self._cpu_before = 0.0
        key = stack.call("POST", "/v1/api-keys", 201, json={"name": "fuzz", "scopes": ["admin"]})
        self.headers = {"Authorization": f"Bearer {key['secret']}"}
        stack.http.headers.update(self.headers)
        self.pool.protect("/v1/api-keys/{key_id}", key_id=key["id"])
        self.document: dict[str, Any] = _with_all_forms(stack.call("GET", "/openapi.json", 200))
        self.schema = self._schema(seed, 1)
        self.operations = {
            operation["operationId"]
            for operations in self.document["paths"].values()
            for operation in operations.values()
        }

    def _schema(self, seed: int, max_examples: int, without_boundaries: Sequence[str] = ()) -> Any:
        operations = [
            {"include-operation-id": name, "phases": {"coverage": {"enabled": False}}}
            for name in without_boundaries
        ]
        config = SchemathesisConfig.from_dict(
            {
                "seed": seed,
                "base-url": self.stack.url,
                "headers": self.headers,
                "continue-on-failure": True,
                "request-timeout": LIMIT_SECONDS,
                "checks": CHECKS,
                "operations": [*operations, *OPERATION_OVERRIDES],
                "generation": {"max-examples": max_examples, "no-shrink": True, "database": "none"},
                "output": {"sanitization": {"enabled": False}},
            }
        )
        config.suppress_health_check = list(HealthCheck)
        return schemathesis.openapi.from_dict(self.document, config=config)

    def send(
        self,
        operation_id: str,
        status: int,
        body: Any = None,
        *,
        media_type: str | None = None,
        query: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        **names: Any,
    ) -> Any:
        """Send a valid request, check the status of the response, and return its body."""
        operation = self.schema.find_operation_by_id(operation_id)
        body_options = {} if body is None else {"body": body, "media_type": media_type or "application/json"}
        case = operation.Case(path_parameters=names, query=query or {}, headers=headers or {}, **body_options)
        response = case.call(headers=self.headers)
        assert response.status_code == status, (
            f"{operation_id}: {response.status_code} {response.text[:1000]}"
        )
        self.count(case, response)
        try:
            case.validate_response(response, headers=self.headers)
        except FailureGroup as group:
            for failure in group.exceptions:
                self.tally.record(operation_id, str(failure), case.as_curl_command(headers=self.headers))
        kind = response.headers.get("content-type", [""])[0]
        is_json = response.content and ("/json" in kind or "+json" in kind)  # not NDJSON
        return json.loads(response.content) if is_json else response.content

    def phases(self, seed: int, max_examples: int, *, without_boundaries: Sequence[str] = ()) -> None:
        """Send examples, boundary values, random requests, and sequences of requests.

        Args:
            seed: seed of the random requests.
            max_examples: number of random requests per operation, and of sequences.
            without_boundaries: operations to which no boundary values are sent.
        """
        schema = self._schema(seed, max_examples, without_boundaries)
        self._consume(from_schema(schema).execute())

    def sequences(self, seed: int, *, n: int | None = None, seconds: int | None = None) -> None:
        """Send random sequences of requests that use the responses to earlier ones.

        Args:
            seed: seed of the sequences.
            n: number of sequences after which to stop.
            seconds: time after which to stop.
        """
        stream = from_schema(self._schema(seed, 1)).fuzz(FuzzConfig(max_time=seconds))
        self._consume(stream, n)

    def find_internal_failures(self) -> None:
        """Record every data set, job, evaluation and batch prediction that failed because of the service."""
        paths = ["/v1/datasets", "/v1/training-jobs", "/v1/experiments", "/v1/batch-predictions"]
        paths += [f"/v1/models/fuzz/versions/{version}/evaluations" for version in (1, 2)]
        for path in paths:
            cursor: dict[str, str] = {}
            while True:
                page = self.stack.call("GET", path, 200, params={"limit": "500", **cursor})
                for item in page["items"]:
                    problem = item.get("error", {})
                    if problem.get("code") in INTERNAL_CODES:
                        self.tally.record(path, problem["code"], json.dumps(item)[:5000])
                if "next_cursor" not in page:
                    break
                cursor = {"cursor": page["next_cursor"]}

    def _consume(self, stream: Any, n: int | None = None) -> None:
        sequences = 0
        with self._hooks_registered():
            for event in stream:
                self._record(event)
                sequences += isinstance(event, events.FuzzScenarioFinished)
                if sequences == n:
                    stream.stop()

    def _record(self, event: events.EngineEvent) -> None:
        if isinstance(event, events.ScenarioFinished | events.FuzzScenarioFinished):
            for case_id, checks in event.recorder.checks.items():
                for check in checks:
                    if (info := check.failure_info) is not None:
                        operation = event.recorder.cases[case_id].value.operation
                        name = operation.definition.raw["operationId"]
                        self.tally.record(name, f"{check.name}: {info.failure}"[:1500], info.code_sample)
        elif isinstance(event, events.NonFatalError):
            self.tally.record(event.label, f"{type(event.value).__name__}: {event.value}"[:1500], "")
        elif isinstance(event, events.FatalError):
            raise event.exception

    @contextmanager
    def _hooks_registered(self) -> Iterator[None]:
        def before_call(context: schemathesis.HookContext, case: Case, kwargs: dict[str, Any]) -> None:
            self.use_existing_ids(case)
            self._cpu_before = cpu_seconds(self._api)

        def after_call(context: schemathesis.HookContext, case: Case, response: Response) -> None:
            self.check_cpu_time(case, response)
            self.count(case, response)

        def filter_failure(
            context: schemathesis.HookContext, failure: Failure, case: Case, response: Response
        ) -> bool:
            # For these operations, a missing body is an empty body.
            raw = case.operation.definition.raw["operationId"] in RAW
            empty = raw and "Missing request body" in failure.message
            # The request was changed to name another resource than the one that Schemathesis expects.
            other = case.id in self._changed and isinstance(failure, EXISTENCE_FAILURES)
            return not (empty or other)

        hooks = before_call, after_call, filter_failure
        for hook in hooks:
            schemathesis.hook(hook)
        try:
            yield
        finally:
            for hook in hooks:
                GLOBAL_HOOK_DISPATCHER.unregister(hook)

    def check_cpu_time(self, case: Case, response: Response) -> None:
        """Record a request that took much more CPU time than its size and the size of its response allow."""
        body = response.request.body
        sent = body if isinstance(body, bytes | str) else b""
        n_bytes = len(sent) + len(response.content)
        seconds = cpu_seconds(self._api) - self._cpu_before
        if seconds > BASE_SECONDS + SECONDS_PER_BYTE * n_bytes:
            fault = f"{seconds:.1f} s of CPU time for {n_bytes:,} bytes"
            self.tally.record(case.operation.definition.raw["operationId"], fault, str(sent[:2000]))

    def count(self, case: Case, response: Response) -> None:
        """Count a response, and add the resources that it names to the pool."""
        operation_id = case.operation.definition.raw["operationId"]
        if case.method.lower() != case.operation.method.lower():
            operation_id = f"{operation_id} with another method"
        self.tally.statuses.setdefault(operation_id, Counter())[response.status_code] += 1
        names = dict(case.path_parameters or {})
        if case.method == "DELETE" and response.status_code == 204:
            self.pool.remove(case.operation.path, names)
        elif response.status_code < 300 and "application/json" in str(response.headers.get("content-type")):
            self.pool.add_from_response(case.operation.path, names, json.loads(response.content))

    def use_existing_ids(self, case: Case) -> None:
        """Insert ids of existing resources into a valid request, and protect those that the run needs."""
        meta = case.meta
        path = case.operation.path
        generated = {name: unquote(str(value)) for name, value in (case.path_parameters or {}).items()}
        if meta is not None and not meta.is_negative_at(ParameterLocation.PATH) and self.rng.random() < 0.9:
            case.path_parameters = {**(case.path_parameters or {}), **self.pool.choose(path)}
        if meta is not None and meta.generation.mode.is_positive and self.rng.random() < 0.9:
            case.query = {name: value for name, value in (case.query or {}).items() if name != "cursor"}
            self._use_existing_ids_in_body(case)
        names = {name: unquote(str(value)) for name, value in (case.path_parameters or {}).items()}
        if names != generated:
            self._changed.add(case.id)
        ends = case.method.upper() == "DELETE" or path.endswith(("/rotate", "/cancel"))
        if ends and names and self.pool.is_protected(path, names):
            case.path_parameters = dict.fromkeys(names, "1")
            self._changed.add(case.id)

    def _use_existing_sources(self, body: dict[str, Any], dataset_id: Any) -> None:
        """Make a data set from an existing one, or from the feedback on an existing router."""
        router = self.pool.choose("/v1/routers/{name}").get("name")
        for origin, part, value in (
            ("derive", "datasets", [dataset_id]),
            ("from_feedback", "router", router),
        ):
            if isinstance(body.get(origin), dict) and value not in (None, [None]):
                body[origin] = {**body[origin], part: value}
        if body.get("and_dataset") is not None and dataset_id is not None:
            body["and_dataset"] = dataset_id

    def _use_existing_ids_in_body(self, case: Case) -> None:
        name = case.operation.definition.raw["operationId"]
        if name in RAW and case.media_type != "application/json":
            if self.rng.random() < 0.5:
                mail = MAIL % self.rng.randrange(2**32)
                case.body = {
                    "datasets_upload_content": LINES,
                    "models_import_version": self.artifact,
                    # Schemathesis knows bytes as binary for octet-stream only.
                    "routers_route_message": mail.decode() if case.media_type in MESSAGE_TYPES else mail,
                }[name]
            return
        if not isinstance(case.body, dict):
            return
        body: dict[str, Any] = dict(case.body)
        existing: Names = {**self.pool.choose("/v1/datasets/{dataset_id}")}
        version = self.pool.choose("/v1/models/{name}/versions/{version}")
        if name in {"routers_put", "models_put_alias"}:
            existing |= {"model": version.get("name"), "version": version.get("version")}
        for field_name in ("dataset_id", "model", "version"):
            if field_name in body and existing.get(field_name) is not None:
                body[field_name] = existing[field_name]
        if name == "datasets_create":
            self._use_existing_sources(body, existing.get("dataset_id"))
        if name == "training_jobs_create":
            body["model"] = f"fuzzed-{self.rng.randrange(4)}"
            if self.rng.random() < 0.5:
                body["learner"] = QUICK
                body["decision"] = SIGN
        if name == "models_predict" and self.rng.random() < 0.5:
            body["instances"] = [{"text": "my invoice is wrong"}]
            body["version"] = "live"
        case.body = body
