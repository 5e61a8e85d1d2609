"""Bad requests to models and routers, and bad paths, methods and queries are rejected."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from bad_requests import (
    ALIAS,
    DATASETS,
    DEEP,
    GOOD,
    INVALID,
    JSON,
    MALFORMED,
    MESSAGE_PARTS,
    NOT_FOUND,
    PREDICT,
    ROUTER,
    Case,
    Known,
    expect_rejected,
    predict,
)
from contract import problem_of

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("stack")]

CASES: list[Case] = [
    # -- models and routers
    ("an unknown model", "POST", "/v1/models/nope/predict", predict(), 404, NOT_FOUND, None),
    ("an unknown version", "POST", PREDICT, predict(version=99), 404, NOT_FOUND, "/version"),
    ("an unknown alias", "POST", PREDICT, predict(version="nope"), 404, NOT_FOUND, "/version"),
    ("version zero", "POST", PREDICT, predict(version=0), 422, INVALID, "/version"),
    (
        "numeric features for a model of texts",
        "POST",
        PREDICT,
        '{"instances": [{"text": "a"}, {"features": {"a": 1}}]}',
        422,
        INVALID,
        "/instances/1/features",
    ),
    (
        "a text for a model of numeric features",
        "POST",
        "/v1/models/bad-input-numeric/predict",
        predict(),
        422,
        INVALID,
        "/instances/0",
    ),
    (
        "mail that is not base64",
        "POST",
        PREDICT,
        '{"instances": [{"raw_email": "*"}]}',
        422,
        INVALID,
        "/instances/0/raw_email",
    ),
    ("no instances", "POST", PREDICT, '{"instances": []}', 422, INVALID, "/instances"),
    (
        "too many instances",
        "POST",
        PREDICT,
        json.dumps({"instances": [{"text": "a"}] * 1001}),
        413,
        "too_large",
        "/instances",
    ),
    ("an alias to a missing version", "PUT", ALIAS, '{"version": 99}', 404, NOT_FOUND, "/version"),
    (
        "a bad name of an alias",
        "PUT",
        "/v1/models/bad-input/aliases/a%20b",
        '{"version": 1}',
        422,
        INVALID,
        "/path/alias",
    ),
    (
        "a router to a missing model",
        "PUT",
        ROUTER,
        '{"model": "nope", "fallback": "f"}',
        422,
        "unknown_version",
        "/model",
    ),
    (
        "a router to a missing version",
        "PUT",
        ROUTER,
        '{"model": "bad-input", "version": 9, "fallback": "f"}',
        422,
        "unknown_version",
        "/version",
    ),
    (
        "a router to a missing shadow",
        "PUT",
        ROUTER,
        '{"model": "bad-input", "shadow": "x", "fallback": "f"}',
        422,
        "unknown_version",
        "/shadow",
    ),
    (
        "a router of a model of numbers",
        "PUT",
        ROUTER,
        '{"model": "bad-input-numeric", "fallback": "f"}',
        422,
        INVALID,
        "/model",
    ),
    (
        "a bad name of a router",
        "PUT",
        "/v1/routers/-x",
        '{"model": "bad-input", "fallback": "f"}',
        422,
        INVALID,
        "/path/name",
    ),
    ("a message that is not base64", "POST", MESSAGE_PARTS, '{"raw_email": "*"}', 422, INVALID, "/raw_email"),
    ("a message of nothing", "POST", MESSAGE_PARTS, "{}", 422, INVALID, ""),
    (
        "a message twice",
        "POST",
        MESSAGE_PARTS,
        '{"email": {"to": "a", "to": "b"}}',
        422,
        INVALID,
        "/email/to",
    ),
    ("a message cut short", "POST", MESSAGE_PARTS, '{"email"', 400, MALFORMED, ""),
    ("a message in deep brackets", "POST", MESSAGE_PARTS, DEEP, 400, MALFORMED, ""),
    ("an artifact that is none", "POST", "/v1/models/x/versions", "{}", 422, "bad_artifact", None),
    ("an artifact of nothing", "POST", "/v1/models/x/versions", "", 422, "bad_artifact", None),
    # -- ids, paths, methods, queries
    ("an unknown data set to read", "GET", "/v1/datasets/ds_nope", None, 404, NOT_FOUND, None),
    ("an unknown data set to change", "PATCH", "/v1/datasets/ds_nope", '{"name": "x"}', 404, NOT_FOUND, None),
    ("an unknown data set to delete", "DELETE", "/v1/datasets/ds_nope", None, 404, NOT_FOUND, None),
    ("an unknown data set to fill", "PUT", "/v1/datasets/ds_nope/content", "{}", 404, NOT_FOUND, None),
    (
        "the examples of an unknown data set",
        "GET",
        "/v1/datasets/ds_nope/examples",
        None,
        404,
        NOT_FOUND,
        None,
    ),
    (
        "the examples of a waiting data set",
        "GET",
        "/v1/datasets/WAITING/examples",
        None,
        409,
        "dataset_not_ready",
        None,
    ),
    ("the labels of an unknown data set", "GET", "/v1/datasets/ds_nope/labels", None, 404, NOT_FOUND, None),
    ("an unknown job", "GET", "/v1/training-jobs/job_nope", None, 404, NOT_FOUND, None),
    ("an unknown job to cancel", "POST", "/v1/training-jobs/job_nope/cancel", None, 404, NOT_FOUND, None),
    ("an unknown job's events", "GET", "/v1/training-jobs/job_nope/events", None, 404, NOT_FOUND, None),
    ("an unknown job's curve", "GET", "/v1/training-jobs/job_nope/curve", None, 404, NOT_FOUND, None),
    ("an unknown model to read", "GET", "/v1/models/nope", None, 404, NOT_FOUND, None),
    ("an unknown model to delete", "DELETE", "/v1/models/nope", None, 404, NOT_FOUND, None),
    ("an unknown version to read", "GET", "/v1/models/bad-input/versions/9", None, 404, NOT_FOUND, None),
    (
        "a version that is not a number",
        "GET",
        "/v1/models/bad-input/versions/live",
        None,
        422,
        INVALID,
        "/path/version",
    ),
    (
        "an unknown version to download",
        "GET",
        "/v1/models/bad-input/versions/9/artifact",
        None,
        404,
        NOT_FOUND,
        None,
    ),
    ("an unknown alias to delete", "DELETE", "/v1/models/bad-input/aliases/nope", None, 404, NOT_FOUND, None),
    ("an unknown router to read", "GET", "/v1/routers/nope", None, 404, NOT_FOUND, None),
    ("an unknown router to delete", "DELETE", "/v1/routers/nope", None, 404, NOT_FOUND, None),
    ("an unknown router's decisions", "GET", "/v1/routers/nope/decisions", None, 404, NOT_FOUND, None),
    (
        "an unknown router to post to",
        "POST",
        "/v1/routers/nope/message-parts",
        '{"email": {"text": "a"}}',
        404,
        NOT_FOUND,
        None,
    ),
    ("an unknown decision", "GET", "/v1/decisions/dec_nope", None, 404, NOT_FOUND, None),
    (
        "feedback to an unknown decision",
        "POST",
        "/v1/decisions/dec_nope/feedback",
        '{"labels": []}',
        404,
        NOT_FOUND,
        None,
    ),
    ("an unknown key", "DELETE", "/v1/api-keys/key_nope", None, 404, NOT_FOUND, None),
    (
        "an expiry in the past",
        "POST",
        "/v1/api-keys",
        '{"name": "x", "scopes": ["read"], "expires_at": "2001-01-01T00:00:00Z"}',
        422,
        INVALID,
        "/expires_at",
    ),
    (
        "an expiry without a time zone",
        "POST",
        "/v1/api-keys",
        '{"name": "x", "scopes": ["read"], "expires_at": "2991-01-01T00:00:00"}',
        422,
        INVALID,
        "/expires_at",
    ),
    ("a key without scopes", "POST", "/v1/api-keys", '{"name": "x", "scopes": []}', 422, INVALID, "/scopes"),
    (
        "an unknown scope",
        "POST",
        "/v1/api-keys",
        '{"name": "x", "scopes": ["root"]}',
        422,
        INVALID,
        "/scopes/0",
    ),
    ("an unknown path", "GET", "/v1/nope", None, 404, NOT_FOUND, None),
    ("an unknown path at the root", "GET", "/nope", None, 404, NOT_FOUND, None),
    ("an unknown path to post to", "POST", "/v3/datasets", "{}", 404, NOT_FOUND, None),
    ("a path to a parent folder", "GET", "/v1/datasets/..%2f..%2fetc%2fpasswd", None, 404, NOT_FOUND, None),
    ("NUL in an id", "GET", "/v1/datasets/ds_%00", None, 422, INVALID, "/path/dataset_id"),
    ("ESC in a parameter", "GET", f"{DATASETS}?limit=5%1b", None, 422, INVALID, "/query/limit"),
    ("a wrong method", "PUT", DATASETS, "{}", 405, "method_not_allowed", None),
    (
        "a wrong method on a single resource",
        "POST",
        "/v1/datasets/TEXT",
        "{}",
        405,
        "method_not_allowed",
        None,
    ),
    ("a wrong method on health", "DELETE", "/health/live", None, 405, "method_not_allowed", None),
    ("a limit of 0", "GET", f"{DATASETS}?limit=0", None, 422, INVALID, "/query/limit"),
    ("a limit of 501", "GET", f"{DATASETS}?limit=501", None, 422, INVALID, "/query/limit"),
    ("a limit that is not a number", "GET", f"{DATASETS}?limit=ten", None, 422, INVALID, "/query/limit"),
    (
        "a cursor that is not ASCII",
        "GET",
        f"{DATASETS}?cursor=%C3%A9",
        None,
        422,
        "invalid_cursor",
        "/query/cursor",
    ),
    (
        "a cursor that is not UTF-8",
        "GET",
        f"{DATASETS}?cursor=_____w==",
        None,
        422,
        "invalid_cursor",
        "/query/cursor",
    ),
    ("a cursor of NUL", "GET", f"{DATASETS}?cursor=AAAA", None, 422, "invalid_cursor", "/query/cursor"),
    (
        "a cursor of another list",
        "GET",
        "/v1/datasets/TEXT/labels?cursor=ZHNfMDE=",
        None,
        422,
        "invalid_cursor",
        "/query/cursor",
    ),
    (
        "a cursor after the last item",
        "GET",
        f"/v1/datasets/TEXT/labels?cursor={base64.urlsafe_b64encode(b'9' * 40).decode()}",
        None,
        422,
        "invalid_cursor",
        "/query/cursor",
    ),
    (
        "text instead of a Boolean",
        "POST",
        f"{MESSAGE_PARTS}?explain=perhaps",
        '{"email": {"text": "a"}}',
        422,
        INVALID,
        "/query/explain",
    ),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code", "pointer"),
    [pytest.param(*case[1:], id=case[0]) for case in CASES],
)
def test_a_bad_request_is_rejected_with_its_pointer_and_changes_nothing(
    unchanged: Known, method: str, path: str, body: str | None, status: int, code: str, pointer: str | None
) -> None:
    expect_rejected(unchanged, method, path, body, status, code, pointer)


def test_a_message_with_unpaired_surrogates_is_routed(known: Known) -> None:
    body = rb'{"email": {"subject": "parcel \ud800 late", "text": "the courier \udc00 \ud83e\udd89"}}'
    decision = known.stack.call("POST", MESSAGE_PARTS, 200, content=body, headers=JSON)
    assert decision["message"]["subject"] == "parcel \ufffd late"


def test_long_terms_and_nul_are_accepted_as_text(unchanged: Known) -> None:
    body = {"instances": [{"text": "invoice \0 " + "x" * 900_000}, {"text": ""}], "explain": True}
    response = unchanged.stack.call("POST", PREDICT, 200, json=body)
    assert len(response["predictions"]) == 2


def test_a_client_cannot_choose_storage_paths(known: Known, tmp_path: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_bytes(GOOD)
    for body in ({"name": "x", "path": str(secret)}, {"name": "x", "url": f"file://{secret}"}):
        problem_of(known.stack.http.post(DATASETS, json=body), 422, INVALID)
