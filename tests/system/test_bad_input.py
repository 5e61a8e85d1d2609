"""Whatever is wrong with what a client sends, it hears what and where; nothing is half-done or breaks."""

from __future__ import annotations

import base64
import gzip
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import zstandard
from contract import problem_of
from stack import Stack, departments
from waiting import wait_for

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("stack")]

OF_THE_WORKERS = {"workers"}
"""Tables that change by themselves: the workers' heartbeats."""

JSON = {"Content-Type": "application/json"}
RAW = {"Content-Type": "message/rfc822"}


@dataclass(frozen=True)
class Known:
    """What the requests of these tests refer to."""

    stack: Stack
    text: str
    numbers: str
    waiting: str
    model: str = "bad-input"
    numeric_model: str = "bad-input-numeric"
    router: str = "bad-input"
    training: dict[str, Any] = field(default_factory=dict)

    def fill(self, text: str) -> str:
        """A path or a body with the ids of this run."""
        names = ("TEXT", self.text), ("NUMBERS", self.numbers), ("WAITING", self.waiting)
        for name, value in names:
            text = text.replace(name, value)
        return text


@pytest.fixture(scope="module")
def known(stack: Stack) -> Iterator[Known]:
    text = stack.dataset(departments(40), name="bad input")
    rows = [
        {"features": {"a": i - 4.0, "b": float(i % 3)}, "labels": ["odd" if i % 2 else "even"]}
        for i in range(12)
    ]
    numbers = stack.dataset(rows, name="bad input numbers")
    waiting = stack.call("POST", "/v1/datasets", 201, json={"name": "bad input waiting"})
    for model, dataset in (("bad-input", text), ("bad-input-numeric", numbers)):
        job = stack.finished(stack.train(dataset["id"], model=model)["id"])
        assert job["state"] == "succeeded", job
    router = {"model": "bad-input", "fallback": "front@example.org"}
    stack.call("PUT", "/v1/routers/bad-input", 200, json=router)
    yield Known(stack, text["id"], numbers["id"], waiting["id"])
    stack.call("DELETE", "/v1/routers/bad-input", 204)
    for model in ("bad-input", "bad-input-numeric"):
        stack.call("DELETE", f"/v1/models/{model}", 204)
    for dataset in (text, numbers, waiting):
        stack.call("DELETE", f"/v1/datasets/{dataset['id']}", 204)


def kept(stack: Stack, *, history: bool = True) -> dict[str, list[Any]]:
    """Everything that the service keeps: the rows of its database and the files of its storage.

    Without ``history`` jobs are left out, which stay when the data set that they read is deleted.
    """
    passed_over = OF_THE_WORKERS if history else OF_THE_WORKERS | {"jobs", "job_events"}
    with closing(sqlite3.connect(f"file:{stack.data / 'covey.db'}?mode=ro", uri=True)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows: dict[str, list[Any]] = {
            name: sorted(map(repr, db.execute(f'SELECT * FROM "{name}"')))  # noqa: S608 - its own names
            for name in names
            if name not in passed_over
        }
    storage = stack.data / "storage"
    files = sorted(str(path.relative_to(storage)) for path in storage.rglob("*") if path.is_file())
    return {**rows, "files": files}


def expect_kept(stack: Stack, before: dict[str, list[Any]], *, history: bool = True) -> None:
    """Everything is as before; the worker may need a moment to clear its files away."""

    def same() -> bool | None:
        return kept(stack, history=history) == before or None

    try:
        wait_for(same, what="the state of before")
    except TimeoutError:
        assert kept(stack, history=history) == before


@pytest.fixture
def unchanged(known: Known) -> Iterator[Known]:
    before = kept(known.stack)
    yield known
    expect_kept(known.stack, before)


@pytest.fixture
def cleared(known: Known) -> Iterator[Known]:
    before = kept(known.stack, history=False)
    yield known
    expect_kept(known.stack, before, history=False)


def training(**changes: Any) -> str:
    request = {"model": "refused", "dataset_id": "TEXT", "learner": {"algorithm": "mp_boost", "rounds": 3}}
    return json.dumps({**request, **changes})


def predict(**changes: Any) -> str:
    return json.dumps({"instances": [{"text": "invoice"}], **changes})


def covering(spelled: Any) -> str:
    return training(learner={"algorithm": "adaboost_lc", "covering": spelled})


DATASETS, JOBS, PREDICT = "/v1/datasets", "/v1/training-jobs", "/v1/models/bad-input/predict"
ROUTER, MESSAGES, ALIAS = (
    "/v1/routers/r",
    "/v1/routers/bad-input/messages",
    "/v1/models/bad-input/aliases/live",
)
CONTENT = "/v1/datasets/WAITING/content"
INVALID, MALFORMED, NOT_FOUND = "invalid_request", "malformed_request", "not_found"
DEEP = "[" * 100_000
LONG = "9" * 5000

REFUSED: list[tuple[str, str, str, str | None, int, str, str | None]] = [
    # -- JSON itself
    ("truncated JSON", "POST", DATASETS, '{"name": "x', 400, MALFORMED, ""),
    ("no JSON", "POST", DATASETS, "name=x", 400, MALFORMED, ""),
    ("no body", "POST", DATASETS, None, 422, INVALID, ""),
    ("an empty body", "POST", DATASETS, "", 422, INVALID, ""),
    ("a list for an object", "POST", DATASETS, "[]", 422, INVALID, ""),
    ("null for an object", "POST", DATASETS, "null", 422, INVALID, ""),
    ("brackets without end", "POST", DATASETS, DEEP, 400, MALFORMED, ""),
    ("brackets in a field", "POST", DATASETS, '{"name": ' + DEEP, 400, MALFORMED, ""),
    ("closed brackets", "POST", PREDICT, '{"instances": ' + DEEP + "]" * 100_000 + "}", 400, MALFORMED, ""),
    ("a number of 5,000 digits", "POST", JOBS, '{"seed": ' + LONG + "}", 400, MALFORMED, ""),
    ("a field twice", "POST", DATASETS, '{"name": "a", "name": "b"}', 422, INVALID, "/name"),
    (
        "a field twice, deep inside",
        "POST",
        PREDICT,
        '{"instances": [{"features": {"a~/b": 1, "a~/b": 2}}]}',
        422,
        INVALID,
        "/instances/0/features/a~0~1b",
    ),
    # -- what is like a number, or like yes and no
    ("text for a number", "POST", JOBS, training(seed="5"), 422, INVALID, "/seed"),
    (
        "true for a number",
        "POST",
        JOBS,
        training(learner={"algorithm": "mp_boost", "rounds": True}),
        422,
        INVALID,
        "/learner/rounds",
    ),
    ("0 for false", "POST", PREDICT, predict(explain=0), 422, INVALID, "/explain"),
    (
        "false for a feature",
        "POST",
        PREDICT,
        predict(instances=[{"features": {"a": False}}]),
        422,
        INVALID,
        "/instances/0/features/a",
    ),
    # -- numbers
    (
        "NaN",
        "POST",
        PREDICT,
        '{"instances": [{"features": {"a": NaN}}]}',
        422,
        INVALID,
        "/instances/0/features/a",
    ),
    (
        "Infinity",
        "POST",
        PREDICT,
        '{"instances": [{"features": {"a": -Infinity}}]}',
        422,
        INVALID,
        "/instances/0/features/a",
    ),
    (
        "1e999",
        "POST",
        PREDICT,
        '{"instances": [{"features": {"a": 1e999}}]}',
        422,
        INVALID,
        "/instances/0/features/a",
    ),
    (
        "NaN as a parameter",
        "PUT",
        ROUTER,
        '{"model": "bad-input", "fallback": "f", "review_below": NaN}',
        422,
        INVALID,
        "/review_below",
    ),
    (
        "1e999 as a parameter",
        "POST",
        JOBS,
        training(learner={"algorithm": "mp_boost", "smoothing": 0.5}).replace("0.5", "1e999"),
        422,
        INVALID,
        "/learner/smoothing",
    ),
    (
        "NaN inline",
        "POST",
        DATASETS,
        '{"name": "x", "examples": [{"features": {"a": NaN}, "labels": []}]}',
        422,
        INVALID,
        "/examples/0/features/a",
    ),
    ("a huge seed", "POST", JOBS, training(seed=10**40), 422, INVALID, "/seed"),
    ("a huge version", "POST", PREDICT, predict(version=10**30), 422, INVALID, "/version"),
    (
        "a huge count",
        "POST",
        JOBS,
        training(features={"kind": "text", "selection": {"kind": "document_frequency", "count": 10**30}}),
        422,
        INVALID,
        "/features/selection/count",
    ),
    (
        "a huge k",
        "POST",
        JOBS,
        training(decision={"kind": "top_k", "k": 10**30}),
        422,
        INVALID,
        "/decision/k",
    ),
    ("a huge top", "POST", PREDICT, predict(top=10**30), 422, INVALID, "/top"),
    (
        "a huge at_most",
        "PUT",
        ROUTER,
        json.dumps({"model": "bad-input", "fallback": "f", "at_most": 10**30}),
        422,
        INVALID,
        "/at_most",
    ),
    (
        "a huge number of bad records",
        "POST",
        DATASETS,
        json.dumps({"name": "x", "max_bad_records": 10**30}),
        422,
        INVALID,
        "/max_bad_records",
    ),
    # -- text
    ("half a surrogate pair", "POST", DATASETS, r'{"name": "\ud800"}', 422, INVALID, "/name"),
    ("half a pair in an unknown name", "POST", DATASETS, r'{"name": "x", "\udc00": 1}', 422, INVALID, "/?"),
    (
        "half a pair in a text",
        "POST",
        PREDICT,
        r'{"instances": [{"text": "a\ud800"}]}',
        422,
        INVALID,
        "/instances/0/text",
    ),
    (
        "half a pair in a label",
        "POST",
        DATASETS,
        r'{"name": "x", "examples": [{"text": "a", "labels": ["\ud800"]}]}',
        422,
        INVALID,
        "/examples/0/labels/0",
    ),
    ("NUL in a name", "POST", DATASETS, r'{"name": "a\u0000b"}', 422, INVALID, "/name"),
    (
        "NUL in a label",
        "POST",
        DATASETS,
        r'{"name": "x", "examples": [{"text": "a", "labels": ["a\u0000"]}]}',
        422,
        INVALID,
        "/examples/0/labels/0",
    ),
    (
        "NUL in a destination",
        "PUT",
        ROUTER,
        r'{"model": "bad-input", "fallback": "a\u0000"}',
        422,
        INVALID,
        "/fallback",
    ),
    ("an empty name", "POST", DATASETS, '{"name": ""}', 422, INVALID, "/name"),
    ("a name without end", "POST", DATASETS, json.dumps({"name": "x" * 201}), 422, INVALID, "/name"),
    # -- fields
    ("a field missing", "POST", DATASETS, "{}", 422, INVALID, "/name"),
    ("a field unknown", "POST", DATASETS, '{"name": "x", "colour": "red"}', 422, INVALID, "/colour"),
    (
        "a field unknown, inside",
        "POST",
        JOBS,
        training(learner={"algorithm": "svm", "c": 1}),
        422,
        INVALID,
        "/learner/c",
    ),
    ("a wrong type", "POST", DATASETS, '{"name": 5}', 422, INVALID, "/name"),
    (
        "a label for a list of labels",
        "POST",
        DATASETS,
        '{"name": "x", "examples": [{"text": "a", "labels": "b"}]}',
        422,
        INVALID,
        "/examples/0/labels",
    ),
    (
        "no text",
        "POST",
        DATASETS,
        '{"name": "x", "examples": [{"labels": ["b"]}]}',
        422,
        INVALID,
        "/examples/0",
    ),
    ("no examples", "POST", DATASETS, '{"name": "x", "examples": []}', 422, INVALID, "/examples"),
    (
        "two texts",
        "POST",
        PREDICT,
        '{"instances": [{"text": "a", "raw_email": "YQ=="}]}',
        422,
        INVALID,
        "/instances/0",
    ),
    ("an unknown format", "POST", DATASETS, '{"name": "x", "format": "xlsx"}', 422, INVALID, "/format"),
    (
        "a cycle in the label tree",
        "POST",
        DATASETS,
        '{"name": "x", "label_tree": {"a": "b", "b": "a"}}',
        422,
        "invalid_parameters",
        "/label_tree",
    ),
    (
        "a label that is its own parent",
        "POST",
        DATASETS,
        '{"name": "x", "label_tree": {"a": "a"}}',
        422,
        "invalid_parameters",
        "/label_tree",
    ),
    (
        "half a pair in an example",
        "POST",
        DATASETS,
        r'{"name": "x", "examples": [{"text": "\udfff", "labels": ["y"]}]}',
        422,
        INVALID,
        "/examples/0/text",
    ),
    (
        "a key beyond the calendar",
        "POST",
        "/v1/api-keys",
        '{"name": "x", "scopes": ["read"], "expires_at": "9999-12-31T23:59:59-12:00"}',
        422,
        INVALID,
        "/expires_at",
    ),
    # -- trainings
    ("an unknown learner", "POST", JOBS, training(learner={"algorithm": "magic"}), 422, INVALID, "/learner"),
    ("a learner without its name", "POST", JOBS, training(learner={"rounds": 3}), 422, INVALID, "/learner"),
    (
        "a parameter of a wrong type",
        "POST",
        JOBS,
        training(learner={"algorithm": "mp_boost", "rounds": "many"}),
        422,
        INVALID,
        "/learner/rounds",
    ),
    (
        "a parameter out of range",
        "POST",
        JOBS,
        training(learner={"algorithm": "mp_boost", "rounds": 0}),
        422,
        INVALID,
        "/learner/rounds",
    ),
    (
        "a wrong stemmer",
        "POST",
        JOBS,
        training(features={"kind": "text", "analyzer": {"stemmer": "klingon"}}),
        422,
        INVALID,
        "/features/analyzer/stemmer",
    ),
    (
        "features of the wrong kind",
        "POST",
        JOBS,
        training(features={"kind": "numeric"}),
        422,
        "invalid_parameters",
        "/features/kind",
    ),
    (
        "features of the wrong kind, the other way",
        "POST",
        JOBS,
        training(dataset_id="NUMBERS", features={"kind": "text"}),
        422,
        "invalid_parameters",
        "/features/kind",
    ),
    (
        "a decision that makes no sense",
        "POST",
        JOBS,
        training(decision={"kind": "calibrated_label"}),
        422,
        "invalid_parameters",
        "/decision/kind",
    ),
    (
        "a selection without its count",
        "POST",
        JOBS,
        training(features={"kind": "text", "selection": {"kind": "information_gain", "policy": "max"}}),
        422,
        INVALID,
        "/features/selection",
    ),
    (
        "a split that is not given",
        "POST",
        JOBS,
        training(dataset_id="NUMBERS", split={"kind": "given"}),
        422,
        INVALID,
        "/split/kind",
    ),
    (
        "everything held out",
        "POST",
        JOBS,
        training(split={"kind": "random", "test_fraction": 1}),
        422,
        INVALID,
        "/split/test_fraction",
    ),
    ("an unknown data set", "POST", JOBS, training(dataset_id="ds_nope"), 404, NOT_FOUND, "/dataset_id"),
    (
        "a data set that is not ready",
        "POST",
        JOBS,
        training(dataset_id="WAITING"),
        409,
        "dataset_not_ready",
        "/dataset_id",
    ),
    ("a bad name of a model", "POST", JOBS, training(model="no spaces"), 422, INVALID, "/model"),
    ("a name with a line break", "POST", JOBS, training(model="x\n"), 422, INVALID, "/model"),
    (
        "rules that end before otherwise",
        "POST",
        JOBS,
        covering({"kind": "rules", "rules": [{"when": {"has": "billing"}, "cover": [{"positives": "all"}]}]}),
        422,
        INVALID,
        "/learner/covering/rules",
    ),
    (
        "an unknown condition",
        "POST",
        JOBS,
        covering({"kind": "rules", "rules": [{"when": {"hat": "x"}, "cover": [{"positives": "all"}]}]}),
        422,
        INVALID,
        "/learner/covering/rules/0/when",
    ),
    (
        "a covering that leaves labels out",
        "POST",
        JOBS,
        covering({"kind": "groups", "groups": [{"labels": ["billing", "sales"]}]}),
        422,
        "invalid_parameters",
        "/learner/covering/groups",
    ),
    (
        "a covering of unknown labels",
        "POST",
        JOBS,
        covering({"kind": "groups", "groups": [{"labels": ["nope"]}]}),
        422,
        "invalid_parameters",
        "/learner/covering/groups/0/labels/0",
    ),
    # -- models and routers
    ("an unknown model", "POST", "/v1/models/nope/predict", predict(), 404, NOT_FOUND, None),
    ("an unknown version", "POST", PREDICT, predict(version=99), 404, NOT_FOUND, "/version"),
    ("an unknown alias", "POST", PREDICT, predict(version="nope"), 404, NOT_FOUND, "/version"),
    ("version zero", "POST", PREDICT, predict(version=0), 422, INVALID, "/version"),
    (
        "numbers for a model of texts",
        "POST",
        PREDICT,
        '{"instances": [{"text": "a"}, {"features": {"a": 1}}]}',
        422,
        INVALID,
        "/instances/1/features",
    ),
    (
        "a text for a model of numbers",
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
    ("a message that is not base64", "POST", MESSAGES, '{"raw_email": "*"}', 422, INVALID, "/raw_email"),
    ("a message of nothing", "POST", MESSAGES, "{}", 422, INVALID, ""),
    ("a message twice", "POST", MESSAGES, '{"email": {"to": "a", "to": "b"}}', 422, INVALID, "/email/to"),
    ("a message cut short", "POST", MESSAGES, '{"email"', 400, MALFORMED, ""),
    ("a message in deep brackets", "POST", MESSAGES, DEEP, 400, MALFORMED, ""),
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
        "a version that is no number",
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
        "/v1/routers/nope/messages",
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
        "a key that has expired already",
        "POST",
        "/v1/api-keys",
        '{"name": "x", "scopes": ["read"], "expires_at": "2001-01-01T00:00:00Z"}',
        422,
        INVALID,
        "/expires_at",
    ),
    (
        "a key without a time zone",
        "POST",
        "/v1/api-keys",
        '{"name": "x", "scopes": ["read"], "expires_at": "2991-01-01T00:00:00"}',
        422,
        INVALID,
        "/expires_at",
    ),
    ("a key for nothing", "POST", "/v1/api-keys", '{"name": "x", "scopes": []}', 422, INVALID, "/scopes"),
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
    ("an unknown path to post to", "POST", "/v2/datasets", "{}", 404, NOT_FOUND, None),
    ("a path upwards", "GET", "/v1/datasets/..%2f..%2fetc%2fpasswd", None, 404, NOT_FOUND, None),
    ("NUL in an id", "GET", "/v1/datasets/ds_%00", None, 404, NOT_FOUND, None),
    ("a wrong method", "PUT", DATASETS, "{}", 405, "method_not_allowed", None),
    ("a wrong method on one thing", "POST", "/v1/datasets/TEXT", "{}", 405, "method_not_allowed", None),
    ("a wrong method on health", "DELETE", "/health/live", None, 405, "method_not_allowed", None),
    ("a limit of 0", "GET", f"{DATASETS}?limit=0", None, 422, INVALID, "/query/limit"),
    ("a limit of 501", "GET", f"{DATASETS}?limit=501", None, 422, INVALID, "/query/limit"),
    ("a limit in words", "GET", f"{DATASETS}?limit=ten", None, 422, INVALID, "/query/limit"),
    ("no cursor", "GET", f"{DATASETS}?cursor=%C3%A9", None, 422, "invalid_cursor", "/query/cursor"),
    ("a cursor of bytes", "GET", f"{DATASETS}?cursor=_____w==", None, 422, "invalid_cursor", "/query/cursor"),
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
        "a cursor beyond all",
        "GET",
        f"/v1/datasets/TEXT/labels?cursor={base64.urlsafe_b64encode(b'9' * 40).decode()}",
        None,
        422,
        "invalid_cursor",
        "/query/cursor",
    ),
    (
        "a word for a truth",
        "POST",
        f"{MESSAGES}?explain=perhaps",
        '{"email": {"text": "a"}}',
        422,
        INVALID,
        "/query/explain",
    ),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code", "pointer"),
    [pytest.param(*case[1:], id=case[0]) for case in REFUSED],
)
def test_what_cannot_be_done_is_refused_with_its_place(
    unchanged: Known, method: str, path: str, body: str | None, status: int, code: str, pointer: str | None
) -> None:
    content = None if body is None else unchanged.fill(body).encode()
    headers = JSON if content is not None else {}
    answer = unchanged.stack.http.request(method, unchanged.fill(path), content=content, headers=headers)
    problem = problem_of(answer, status, code, pointer)
    assert len(answer.content) < 5000, "what was sent is not sent back"
    if status == 405:
        takes = {DATASETS: "GET, POST", "/v1/datasets/TEXT": "DELETE, GET, PATCH", "/health/live": "GET"}
        assert answer.headers["Allow"] == takes[path]
    if pointer:
        assert pointer in problem["detail"] or problem["errors"][0]["message"] in problem["detail"]


HEADERS: list[tuple[str, str, str, bytes, dict[str, str], int, str]] = [
    (
        "text for JSON",
        "POST",
        DATASETS,
        b'{"name": "x"}',
        {"Content-Type": "text/plain"},
        415,
        "unsupported_media_type",
    ),
    (
        "a form for JSON",
        "POST",
        DATASETS,
        b"name=x",
        {"Content-Type": "application/x-www-form-urlencoded"},
        415,
        "unsupported_media_type",
    ),
    ("JSON that does not say so", "POST", DATASETS, b'{"name": "x"}', {}, 415, "unsupported_media_type"),
    (
        "XML for JSON",
        "PUT",
        ROUTER,
        b"<a/>",
        {"Content-Type": "application/xml"},
        415,
        "unsupported_media_type",
    ),
    (
        "HTML for a message",
        "POST",
        MESSAGES,
        b"<p>",
        {"Content-Type": "text/html"},
        415,
        "unsupported_media_type",
    ),
    (
        "a form for a message",
        "POST",
        MESSAGES,
        b"a=b",
        {"Content-Type": "multipart/form-data; boundary=x"},
        415,
        "unsupported_media_type",
    ),
    (
        "a form for content",
        "PUT",
        CONTENT,
        b"--x--",
        {"Content-Type": "multipart/form-data; boundary=x"},
        415,
        "unsupported_media_type",
    ),
    (
        "compressed JSON",
        "POST",
        DATASETS,
        gzip.compress(b'{"name": "x"}'),
        {**JSON, "Content-Encoding": "gzip"},
        415,
        "unsupported_media_type",
    ),
    (
        "a compressed message",
        "POST",
        MESSAGES,
        gzip.compress(b"a: b\n\nc"),
        {**RAW, "Content-Encoding": "gzip"},
        415,
        "unsupported_media_type",
    ),
    (
        "a compressed artifact",
        "POST",
        "/v1/models/x/versions",
        gzip.compress(b"x"),
        {"Content-Encoding": "gzip"},
        415,
        "unsupported_media_type",
    ),
    (
        "an encoding that is not read",
        "PUT",
        CONTENT,
        b"x",
        {"Content-Encoding": "br"},
        415,
        "unsupported_media_type",
    ),
    (
        "two encodings",
        "PUT",
        CONTENT,
        b"x",
        {"Content-Encoding": "gzip, gzip"},
        415,
        "unsupported_media_type",
    ),
    ("no UTF-8", "POST", DATASETS, b'{"name": "\xff"}', JSON, 400, MALFORMED),
    (
        "an empty idempotency key",
        "POST",
        DATASETS,
        b'{"name": "x"}',
        {**JSON, "Idempotency-Key": ""},
        422,
        INVALID,
    ),
    (
        "an endless idempotency key",
        "POST",
        DATASETS,
        b'{"name": "x"}',
        {**JSON, "Idempotency-Key": "x" * 256},
        422,
        INVALID,
    ),
    (
        "an old revision",
        "PUT",
        ALIAS,
        b'{"version": 1}',
        {**JSON, "If-Match": '"77"'},
        412,
        "precondition_failed",
    ),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "code"),
    [pytest.param(*case[1:], id=case[0]) for case in HEADERS],
)
def test_what_headers_say_is_minded(
    unchanged: Known, method: str, path: str, body: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    answer = unchanged.stack.http.request(method, unchanged.fill(path), content=body, headers=headers)
    problem_of(answer, status, code)


@pytest.mark.parametrize("value", ["-1", "x", "99999999999999999999"])
def test_an_event_id_that_the_stream_never_gave_is_refused(unchanged: Known, value: str) -> None:
    job = unchanged.stack.call("GET", f"{JOBS}?limit=1", 200)["items"][0]["id"]
    headers = {"Accept": "text/event-stream", "Last-Event-ID": value}
    answer = unchanged.stack.http.get(f"{JOBS}/{job}/events", headers=headers)
    problem_of(answer, 422, INVALID, "/header/Last-Event-ID")


@pytest.mark.parametrize("bytes_range", ["bytes=999999999-", "bytes=x", "bytes=5-2"])
def test_a_range_that_is_none(unchanged: Known, bytes_range: str) -> None:
    answer = unchanged.stack.http.get(
        "/v1/models/bad-input/versions/1/artifact", headers={"Range": bytes_range}
    )
    problem_of(answer, 416, "range_not_satisfiable")


def test_a_part_of_an_artifact_can_be_asked_for(unchanged: Known) -> None:
    path = "/v1/models/bad-input/versions/1/artifact"
    whole = unchanged.stack.http.get(path)
    part = unchanged.stack.http.get(path, headers={"Range": "bytes=4-9"})
    assert part.status_code == 206
    assert part.content == whole.content[4:10]


def line(**changes: Any) -> bytes:
    return json.dumps({"text": "a word", "labels": ["x"], **changes}).encode() + b"\n"


GOOD = line() * 3

CONTENTS: list[tuple[str, bytes, dict[str, str], int | None]] = [
    ("truncated JSON", GOOD + b'{"text": "a', {}, 4),
    ("a label for a list", line() + line(labels="x"), {}, 2),
    ("a label that is a number", line(labels=[1]), {}, 1),
    ("NaN", b'{"features": {"a": 1}, "labels": ["x"]}\n{"features": {"a": NaN}, "labels": ["x"]}\n', {}, 2),
    ("Infinity", b'{"features": {"a": Infinity}, "labels": ["x"]}\n', {}, 1),
    ("1e999", b'{"features": {"a": 1e999}, "labels": ["x"]}\n', {}, 1),
    ("an empty file", b"", {}, None),
    ("a file of white space", b"\n \r\n\n", {}, None),
    ("a file without labels", line(labels=[]) * 4, {}, None),
    ("no UTF-8", GOOD + b'{"text": "\xff\xfe", "labels": ["x"]}\n', {}, 4),
    ("UTF-16", GOOD.decode().encode("utf-16"), {}, None),
    ("deep brackets", GOOD + DEEP.encode() + b"\n", {}, 4),
    ("half a surrogate pair", GOOD + rb'{"text": "\ud800", "labels": ["x"]}' + b"\n", {}, 4),
    ("half a surrogate pair in a label", GOOD + rb'{"text": "a", "labels": ["\ud800"]}' + b"\n", {}, 4),
    ("NUL in a label", GOOD + rb'{"text": "a", "labels": ["\u0000"]}' + b"\n", {}, 4),
    (
        "a number of 5,000 digits",
        line() + b'{"features": {"a": ' + LONG.encode() + b'}, "labels": []}\n',
        {},
        2,
    ),
    ("a field twice", GOOD + b'{"text": "a", "text": "b", "labels": ["x"]}\n', {}, 4),
    ("a field unknown", GOOD + line(colour="red"), {}, 4),
    ("two kinds", GOOD + b'{"features": {"a": 1}, "labels": ["x"]}\n', {}, 4),
    ("an id twice", line(id="a") + line(id="b") + line(id="a"), {}, 3),
    ("a list", b'["a"]\n', {}, 1),
    ("an unknown split", line(split="dev"), {}, 1),
    ("mail that is not base64", b'{"raw_email": "*", "labels": ["x"]}\n', {}, 1),
    ("gzip cut short", gzip.compress(GOOD * 200)[:-20], {"Content-Encoding": "gzip"}, None),
    ("zstd cut short", zstandard.compress(GOOD * 200)[:-5], {"Content-Encoding": "zstd"}, None),
    ("gzip that is none", GOOD, {"Content-Encoding": "gzip"}, None),
    ("zstd that is gzip", gzip.compress(GOOD), {"Content-Encoding": "zstd"}, None),
    ("a gzip bomb", gzip.compress(bytes(48 * 2**20)), {"Content-Encoding": "gzip"}, None),
    ("a zstd bomb", zstandard.compress(bytes(48 * 2**20)), {"Content-Encoding": "zstd"}, None),
]


@pytest.mark.parametrize(
    ("content", "headers", "place"), [pytest.param(*case[1:], id=case[0]) for case in CONTENTS]
)
def test_content_that_cannot_be_read_fails_with_its_line(
    cleared: Known, content: bytes, headers: dict[str, str], place: int | None
) -> None:
    stack = cleared.stack
    failed = stack.upload(content, headers, format="jsonl")
    path = f"/v1/datasets/{failed['id']}"
    try:
        assert failed["state"] == "failed", failed
        assert "n_examples" not in failed
        assert "sha256" not in failed
        error = failed["error"]
        assert error["code"] == "bad_data"
        assert error["type"] == "urn:covey:problem:bad_data"
        assert error["status"] == 422
        assert "Traceback" not in json.dumps(error)
        if place is not None:
            assert error["records"][0]["line"] == place
            assert error["records"][0]["reason"]
            assert len(json.dumps(error)) < 10_000
        problem_of(stack.http.get(f"{path}/examples"), 409, "dataset_not_ready")
        assert stack.call("GET", f"{path}/labels", 200) == {"items": []}
        answer = stack.http.post(JOBS, json=json.loads(training(dataset_id=failed["id"])))
        problem_of(answer, 409, "dataset_not_ready", "/dataset_id")
    finally:
        # With the data set everything goes: the upload, and whatever the worker had begun to write.
        stack.call("DELETE", path, 204)


def test_bad_records_are_listed_up_to_twenty(cleared: Known) -> None:
    content = b"".join(line(labels="x") if i % 2 else line() for i in range(100))
    failed = cleared.stack.upload(content, format="jsonl")
    assert [record["line"] for record in failed["error"]["records"]] == list(range(2, 42, 2))
    cleared.stack.call("DELETE", f"/v1/datasets/{failed['id']}", 204)


def test_a_failed_data_set_takes_other_content(cleared: Known) -> None:
    stack = cleared.stack
    failed = stack.upload(b"{", format="jsonl")
    path = f"/v1/datasets/{failed['id']}"
    stack.call("PUT", f"{path}/content", 202, content=GOOD)
    settled = ready(stack, path)
    assert settled["state"] == "ready"
    assert "error" not in settled
    problem_of(stack.http.put(f"{path}/content", content=GOOD), 409, "dataset_has_content")
    stack.call("DELETE", path, 204)


def ready(stack: Stack, path: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        now: dict[str, Any] = stack.call("GET", path, 200)
        return None if now["state"] == "ingesting" else now

    return wait_for(look, what=path)


WRITTEN: list[tuple[str, Callable[[bytes], bytes], dict[str, str]]] = [
    ("CRLF", lambda content: content.replace(b"\n", b"\r\n"), {}),
    ("a byte order mark", lambda content: b"\xef\xbb\xbf" + content, {}),
    ("no last line break", lambda content: content.rstrip(b"\n"), {}),
    ("empty lines", lambda content: content.replace(b"\n", b"\n\n"), {}),
    ("gzip", gzip.compress, {"Content-Encoding": "gzip"}),
    ("zstd", zstandard.compress, {"Content-Encoding": "ZSTD"}),
    ("gzip unsaid", gzip.compress, {}),
    ("identity", bytes, {"Content-Encoding": "identity"}),
]


@pytest.mark.parametrize(("write", "headers"), [pytest.param(*case[1:], id=case[0]) for case in WRITTEN])
def test_what_is_clear_is_accepted(
    cleared: Known, write: Callable[[bytes], bytes], headers: dict[str, str]
) -> None:
    stack = cleared.stack
    made = stack.upload(write(line(text="né", labels=["x, y", '"', "🦉"]) + GOOD), headers, format="jsonl")
    path = f"/v1/datasets/{made['id']}"
    assert made["state"] == "ready", made
    assert (made["n_examples"], made["n_labels"]) == (4, 4)
    first = stack.call("GET", f"{path}/examples?limit=1", 200)["items"][0]
    assert first["text"] == "né"
    assert first["labels"] == sorted(["x, y", '"', "🦉"])
    stack.call("DELETE", path, 204)


def test_negative_numbers_fail_naive_bayes_with_the_reason(known: Known) -> None:
    stack = known.stack
    job = stack.finished(
        stack.train(known.numbers, model="refused", learner={"algorithm": "naive_bayes"})["id"]
    )
    assert job["state"] == "failed"
    assert job["error"]["code"] == "unsuitable_data"
    assert "negative" in job["error"]["detail"]
    assert "result" not in job
    problem_of(stack.http.get("/v1/models/refused"), 404, NOT_FOUND)


def test_what_only_the_training_part_can_tell_fails_the_job_with_its_place(known: Known) -> None:
    stack = known.stack
    learner = {"algorithm": "adaboost_lc", "template": [["nope"]]}
    job = stack.finished(stack.train(known.text, model="refused", learner=learner)["id"])
    assert job["state"] == "failed", job
    assert job["error"]["code"] == "invalid_parameters"
    assert "'nope'" in job["error"]["detail"]
    assert [error["pointer"] for error in job["error"]["errors"]] == ["/learner/template/0/0"]
    problem_of(stack.http.get("/v1/models/refused"), 404, NOT_FOUND)


def test_a_message_with_halves_of_characters_is_routed(known: Known) -> None:
    body = rb'{"email": {"subject": "parcel \ud800 late", "text": "the courier \udc00 \ud83e\udd89"}}'
    decision = known.stack.call("POST", MESSAGES, 200, content=body, headers=JSON)
    assert decision["message"]["subject"] == "parcel \ufffd late"


def test_huge_terms_and_nul_are_only_text(unchanged: Known) -> None:
    body = {"instances": [{"text": "invoice \0 " + "x" * 1_000_000}, {"text": ""}], "explain": True}
    answer = unchanged.stack.call("POST", PREDICT, 200, json=body)
    assert len(answer["predictions"]) == 2


# ------------------------------------------------------------------------------------------------ limits


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A service with small limits."""
    limits = {
        "COVEY_MAX_BODY_BYTES": "3000",
        "COVEY_MAX_UPLOAD_BYTES": "20000",
        "COVEY_MAX_ARTIFACT_BYTES": "20000",
        "COVEY_MAX_CONTENT_BYTES": "60000",
        "COVEY_MAX_RECORD_BYTES": "5000",
        "COVEY_MAX_EXAMPLES": "50",
        "COVEY_MAX_LABELS": "10",
        "COVEY_MAX_MESSAGE_BYTES": "2000",
        "COVEY_WORKER_CONCURRENCY": "1",
    }
    stack = Stack(tmp_path_factory.mktemp("small") / "data", limits).start()
    yield stack
    stack.stop()


def chunks(content: bytes) -> Iterator[bytes]:
    """Sent in pieces, without a declared length."""
    for start in range(0, len(content), 500):
        yield content[start : start + 500]


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(
    ("method", "path", "size"),
    [
        pytest.param("POST", DATASETS, 3001, id="JSON"),
        pytest.param("PUT", CONTENT, 20_001, id="content"),
        pytest.param("POST", "/v1/models/x/versions", 20_001, id="artifact"),
    ],
)
def test_a_body_over_the_limit_is_refused(
    small: Stack, method: str, path: str, size: int, declared: bool
) -> None:
    waiting = small.call("POST", DATASETS, 201, json={"name": "waiting"})
    before = kept(small)
    body = b"{" + b" " * (size - 1)
    answer = small.http.request(
        method,
        path.replace("WAITING", waiting["id"]),
        content=body if declared else chunks(body),
        headers=JSON,
    )
    problem = problem_of(answer, 413, "too_large")
    assert "limit of" in problem["detail"]
    expect_kept(small, before)
    small.call("DELETE", f"/v1/datasets/{waiting['id']}", 204)


def test_a_body_at_the_limit_is_read(small: Stack) -> None:
    body = b'{"name": "x"' + b" " * 2987 + b"}"
    assert len(body) == 3000
    made = small.call("POST", DATASETS, 201, content=chunks(body), headers=JSON)
    small.call("DELETE", f"/v1/datasets/{made['id']}", 204)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        pytest.param(gzip.compress(GOOD * 1500), "60,000", id="decompressed bytes"),
        pytest.param(line(text="x" * 6000), "5,000", id="one record"),
        pytest.param(line() * 51, "50", id="examples"),
        pytest.param(b"".join(line(labels=[f"l{i}"]) for i in range(11)), "10", id="labels"),
    ],
)
def test_content_over_a_limit_fails_and_says_which(small: Stack, content: bytes, word: str) -> None:
    failed = small.upload(content, format="jsonl")
    assert failed["state"] == "failed"
    told = json.dumps(failed["error"])
    assert word in told or word.replace(",", "") in told, told
    small.call("DELETE", f"/v1/datasets/{failed['id']}", 204)
    storage = small.data / "storage"
    wait_for(lambda: not any(path.is_file() for path in storage.rglob("*")) or None, what="an empty storage")


def test_a_message_over_the_limit_is_routed_all_the_same(small: Stack) -> None:
    examples = [{"text": f"{word} word", "labels": [word]} for word in ("late", "wrong") for _ in range(8)]
    dataset = small.dataset(examples)
    assert small.finished(small.train(dataset["id"], model="m")["id"])["state"] == "succeeded"
    small.call("PUT", "/v1/routers/r", 200, json={"model": "m", "fallback": "front"})
    message = b"Subject: late\n\nlate " + b"x " * 5000
    decision = small.call("POST", "/v1/routers/r/messages", 200, content=message, headers=RAW)
    assert decision["message"]["truncated"] is True
    assert decision["message"]["defects"]


def test_storage_paths_never_come_from_a_client(known: Known, tmp_path: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_bytes(GOOD)
    for body in ({"name": "x", "path": str(secret)}, {"name": "x", "url": f"file://{secret}"}):
        problem_of(known.stack.http.post(DATASETS, json=body), 422, INVALID)
