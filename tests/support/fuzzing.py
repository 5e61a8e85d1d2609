"""Everything that the OpenAPI document allows and forbids, asked of a running service; every answer checked.

Schemathesis makes the requests, valid ones and broken ones, and checks the answers; this module feeds them
the names of real things, so that they get past "there is no such thing", counts, and keeps what the run
stands on.
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
from stack import Stack
from waiting import LIMIT_SECONDS

Case: TypeAlias = schemathesis.Case[Any]

LIMITED = {
    "COVEY_JOB_SECONDS": "60",
    "COVEY_JOB_MEMORY_BYTES": str(2**30),
    "COVEY_JOBS_IN_FLIGHT": "40",
    "COVEY_WORKER_CONCURRENCY": "1",
    "COVEY_LOG_LEVEL": "warning",
}
"""Settings under which whatever is asked for ends soon."""

CANNOT_BE_SAID = [404, 409, 412, 413, 416, 422, 429]
"""Answers to a request that fits the document: JSON Schema cannot say that a cursor is one that the service
gave, that exactly one of four fields is given, or that a data set has enough examples for ten folds."""

CHECKS: dict[str, Any] = {
    "not_a_server_error": {},
    "status_code_conformance": {},
    "content_type_conformance": {},
    "response_headers_conformance": {},
    "response_schema_conformance": {},
    "negative_data_rejection": {
        "expected-statuses": [400, 401, 403, 404, 405, 406, 409, 412, 413, 415, 416, 422, 429, 431]
    },
    "positive_data_acceptance": {"expected-statuses": ["2xx", *CANNOT_BE_SAID]},
    "missing_required_header": {},
    "unsupported_method": {},
    "allow_header_conformance": {},
    "ignored_auth": {},
    "use_after_free": {},
    "ensure_resource_availability": {},
    "object_level_authorization": {"enabled": False},  # keys have scopes; nothing belongs to one key alone
}

CHECKED_OTHERWISE = [
    {
        # Of the names of compressions only three are read, whatever their letters' case.
        "include-operation-id": "datasets_upload_content",
        "checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", 415, *CANNOT_BE_SAID]}},
    },
    {
        # To say 503 is what it is for, such as on a machine so busy that storage takes seconds to answer.
        "include-operation-id": "health_ready",
        "checks": {
            "not_a_server_error": {"enabled": False},
            "positive_data_acceptance": {"expected-statuses": ["2xx", 503]},
        },
    },
]

OF_ONE_THING = (EnsureResourceAvailability, UseAfterFree)
"""Failures that say what became of the thing that a request is about."""

OF_THE_SERVICE = {"internal_error", "worker_lost"}
"""Codes of jobs that ended by no fault of what was asked."""

RAW = {"datasets_upload_content", "models_import_version", "routers_route_message"}
"""Operations that take bytes."""

QUICK = {"algorithm": "mp_boost", "rounds": 3}
LINES = b'{"text": "an invoice", "labels": ["billing"]}\n{"text": "a parcel", "labels": ["shipping"]}\n'
MAIL = (
    b"From: ann@example.com\r\nSubject: Invoice 4711\r\nMessage-ID: <%d@example.com>\r\n\r\nIt is wrong.\r\n"
)


@schemathesis.serializer("message/rfc822")
def _as_it_is(context: schemathesis.SerializationContext, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@dataclass
class Tally:
    """What was asked, and what was found.

    Attributes:
        statuses: answers by operation and status.
        findings: the first request that shows it, and how often it was seen, by operation and what is wrong.
    """

    statuses: dict[str, Counter[int]] = field(default_factory=dict)
    findings: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)

    def find(self, operation: str, wrong: str, shown_by: str) -> None:
        """Note something that should not be."""
        first, times = self.findings.get((operation, wrong), (shown_by, 0))
        self.findings[operation, wrong] = first, times + 1

    def requests(self) -> int:
        """How many were answered."""
        return sum(counts.total() for counts in self.statuses.values())

    def classes(self) -> Counter[str]:
        """Answers by the first digit of their status."""
        counted: Counter[str] = Counter()
        for counts in self.statuses.values():
            for status, times in counts.items():
                counted[f"{status // 100}xx"] += times
        return counted

    def served(self) -> set[str]:
        """Operations that did what they are for at least once."""
        return {name for name, counts in self.statuses.items() if any(200 <= s < 300 for s in counts)}

    def told(self) -> str:
        """Every finding with its request."""
        return "\n\n".join(
            f"{operation}, {times} times: {wrong}\n{shown_by}"
            for (operation, wrong), (shown_by, times) in sorted(self.findings.items())
        )


class Fuzz:
    """Asks one stack.

    Args:
        stack: a stack of its own: nothing in it is safe but what :attr:`pool` keeps.
        seed: of everything that is left to chance.
    """

    def __init__(self, stack: Stack, seed: int) -> None:
        self.stack = stack
        self.tally = Tally()
        self.dice = random.Random(seed)  # noqa: S311 - decides nothing but what is asked
        self.pool = Pool(self.dice)
        self.artifact = b""
        self._redirected: set[str] = set()
        key = stack.call("POST", "/v1/api-keys", 201, json={"name": "fuzz", "scopes": ["admin"]})
        self.headers = {"Authorization": f"Bearer {key['secret']}"}
        stack.http.headers.update(self.headers)
        self.pool.keep("/v1/api-keys/{key_id}", key_id=key["id"])
        self.document: dict[str, Any] = stack.call("GET", "/openapi.json", 200)
        self.schema = self._schema(seed, 1)
        self.operations = {
            operation["operationId"]
            for operations in self.document["paths"].values()
            for operation in operations.values()
        }

    def _schema(self, seed: int, max_examples: int, without_edges: Sequence[str] = ()) -> Any:
        operations = [
            {"include-operation-id": name, "phases": {"coverage": {"enabled": False}}}
            for name in without_edges
        ]
        config = SchemathesisConfig.from_dict(
            {
                "seed": seed,
                "base-url": self.stack.url,
                "headers": self.headers,
                "continue-on-failure": True,
                "request-timeout": LIMIT_SECONDS,
                "checks": CHECKS,
                "operations": [*operations, *CHECKED_OTHERWISE],
                "generation": {"max-examples": max_examples, "no-shrink": True, "database": "none"},
                "output": {"sanitization": {"enabled": False}},
            }
        )
        config.suppress_health_check = list(HealthCheck)
        return schemathesis.openapi.from_dict(self.document, config=config)

    def ask(
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
        """Send one request as it is meant, which must be answered with the status; gives the body."""
        operation = self.schema.find_operation_by_id(operation_id)
        given = {} if body is None else {"body": body, "media_type": media_type or "application/json"}
        case = operation.Case(path_parameters=names, query=query or {}, headers=headers or {}, **given)
        response = case.call(headers=self.headers)
        assert response.status_code == status, (
            f"{operation_id}: {response.status_code} {response.text[:1000]}"
        )
        self.count(case, response)
        try:
            case.validate_response(response, headers=self.headers)
        except FailureGroup as group:
            for failure in group.exceptions:
                self.tally.find(operation_id, str(failure), case.as_curl_command(headers=self.headers))
        kind = response.headers.get("content-type", [""])[0]
        return json.loads(response.content) if "json" in kind and response.content else response.content

    def phases(self, seed: int, max_examples: int, *, without_edges: Sequence[str] = ()) -> None:
        """Every operation by its examples, the edges of its schema, and random requests; then rows of them.

        Args:
            seed: of the random requests.
            max_examples: random requests for an operation, and rows.
            without_edges: operations whose edges are passed over.
        """
        schema = self._schema(seed, max_examples, without_edges)
        self._watch(from_schema(schema).execute())

    def sequences(self, seed: int, *, n: int | None = None, seconds: int | None = None) -> None:
        """Send random sequences of requests that use the responses to earlier ones.

        Args:
            seed: seed of the sequences.
            n: number of sequences after which to stop.
            seconds: time after which to stop.
        """
        stream = from_schema(self._schema(seed, 1)).fuzz(FuzzConfig(max_time=seconds))
        self._watch(stream, n)

    def ended_by_faults(self) -> None:
        """Note every data set, job and evaluation that came to its end by a fault of the service's own."""
        paths = ["/v1/datasets", "/v1/training-jobs", "/v1/experiments"]
        paths += [f"/v1/models/fuzz/versions/{version}/evaluations" for version in (1, 2)]
        for path in paths:
            cursor: dict[str, str] = {}
            while True:
                page = self.stack.call("GET", path, 200, params={"limit": "500", **cursor})
                for item in page["items"]:
                    problem = item.get("error", {})
                    if problem.get("code") in OF_THE_SERVICE:
                        self.tally.find(path, problem["code"], json.dumps(item)[:5000])
                if "next_cursor" not in page:
                    break
                cursor = {"cursor": page["next_cursor"]}

    def _watch(self, stream: Any, n: int | None = None) -> None:
        sequences = 0
        with self._hooked():
            for event in stream:
                self._note(event)
                sequences += isinstance(event, events.FuzzScenarioFinished)
                if sequences == n:
                    stream.stop()

    def _note(self, event: events.EngineEvent) -> None:
        if isinstance(event, events.ScenarioFinished | events.FuzzScenarioFinished):
            for case_id, checks in event.recorder.checks.items():
                for check in checks:
                    if (info := check.failure_info) is not None:
                        operation = event.recorder.cases[case_id].value.operation
                        name = operation.definition.raw["operationId"]
                        self.tally.find(name, f"{check.name}: {info.failure}"[:1500], info.code_sample)
        elif isinstance(event, events.NonFatalError):
            self.tally.find(event.label, f"{type(event.value).__name__}: {event.value}"[:1500], "")
        elif isinstance(event, events.FatalError):
            raise event.exception

    @contextmanager
    def _hooked(self) -> Iterator[None]:
        def before_call(context: schemathesis.HookContext, case: Case, kwargs: dict[str, Any]) -> None:
            self.feed(case)

        def after_call(context: schemathesis.HookContext, case: Case, response: Response) -> None:
            self.count(case, response)

        def filter_failure(
            context: schemathesis.HookContext, failure: Failure, case: Case, response: Response
        ) -> bool:
            # No body at all is a body of no bytes.
            raw = case.operation.definition.raw["operationId"] in RAW
            empty = raw and "Missing request body" in failure.message
            # What was to ask for a thing that was just made asked for another.
            other = case.id in self._redirected and isinstance(failure, OF_ONE_THING)
            return not (empty or other)

        hooks = before_call, after_call, filter_failure
        for hook in hooks:
            schemathesis.hook(hook)
        try:
            yield
        finally:
            for hook in hooks:
                GLOBAL_HOOK_DISPATCHER.unregister(hook)

    def count(self, case: Case, response: Response) -> None:
        """Note an answer, and what it names."""
        operation_id = case.operation.definition.raw["operationId"]
        if case.method.lower() != case.operation.method.lower():
            operation_id = f"{operation_id} by another method"
        self.tally.statuses.setdefault(operation_id, Counter())[response.status_code] += 1
        names = dict(case.path_parameters or {})
        if case.method == "DELETE" and response.status_code == 204:
            self.pool.forget(case.operation.path, names)
        elif response.status_code < 300 and "application/json" in str(response.headers.get("content-type")):
            self.pool.learn(case.operation.path, names, json.loads(response.content))

    def feed(self, case: Case) -> None:
        """Put real names into a request that is not meant to be wrong there, and spare what is kept."""
        meta = case.meta
        path = case.operation.path
        meant = {name: unquote(str(value)) for name, value in (case.path_parameters or {}).items()}
        if meta is not None and not meta.is_negative_at(ParameterLocation.PATH) and self.dice.random() < 0.9:
            case.path_parameters = {**(case.path_parameters or {}), **self.pool.pick(path)}
        if meta is not None and meta.generation.mode.is_positive and self.dice.random() < 0.9:
            case.query = {name: value for name, value in (case.query or {}).items() if name != "cursor"}
            self._feed_body(case)
        names = {name: unquote(str(value)) for name, value in (case.path_parameters or {}).items()}
        if names != meant:
            self._redirected.add(case.id)
        ends = case.method.upper() == "DELETE" or path.endswith(("/rotate", "/cancel"))
        if ends and names and self.pool.spares(path, names):
            case.path_parameters = dict.fromkeys(names, "1")
            self._redirected.add(case.id)

    def _feed_body(self, case: Case) -> None:
        name = case.operation.definition.raw["operationId"]
        if name in RAW and case.media_type != "application/json":
            if self.dice.random() < 0.5:
                mail = MAIL % self.dice.randrange(2**32)
                case.body = {
                    "datasets_upload_content": LINES,
                    "models_import_version": self.artifact,
                    # Schemathesis knows bytes as binary for octet-stream only.
                    "routers_route_message": mail.decode() if case.media_type == "message/rfc822" else mail,
                }[name]
            return
        if not isinstance(case.body, dict):
            return
        body: dict[str, Any] = dict(case.body)
        real: Names = {**self.pool.pick("/v1/datasets/{dataset_id}")}
        version = self.pool.pick("/v1/models/{name}/versions/{version}")
        if name in {"routers_put", "models_put_alias"}:
            real |= {"model": version.get("name"), "version": version.get("version")}
        for field_name in ("dataset_id", "model", "version"):
            if field_name in body and real.get(field_name) is not None:
                body[field_name] = real[field_name]
        if name == "training_jobs_create":
            body["model"] = f"fuzzed-{self.dice.randrange(4)}"
            if self.dice.random() < 0.5:
                body["learner"] = QUICK
        if name == "models_predict" and self.dice.random() < 0.5:
            body["instances"] = [{"text": "my invoice is wrong"}]
            body["version"] = "live"
        case.body = body
