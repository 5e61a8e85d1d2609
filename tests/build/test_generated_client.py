"""The client that openapi-python-client generates from ``openapi.json`` type-checks and works."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import generate_clients
import pytest
from stack import Stack, departments
from waiting import LIMIT_SECONDS, wait_for

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.build

MESSAGE = b"""\
From: Ann <ann@example.com>
Subject: Late parcel
Message-ID: <generated-client@example.com>

The courier says the parcel is late. Where is the delivery?
"""

PROGRAM = '''\
"""A user's program, for the type checker."""

from io import BytesIO

from covey_api import Client
from covey_api.api.models import models_predict
from covey_api.api.routers import routers_route_message, routers_route_message_parts
from covey_api.api.training_jobs import training_jobs_create
from covey_api.models import (
    AdaBoostLCParameters,
    AllOf,
    CoverRule,
    Decision,
    EachOf,
    EmailParts,
    InformationGain,
    Instance,
    MessageParts,
    MPBoostParameters,
    Negatives,
    Positives,
    PredictResponse,
    PredictRequest,
    Problem,
    RulesCovering,
    TextFeaturesParameters,
    TrainingJob,
    TrainingJobCreate,
    WhenHas,
)
from covey_api.types import File


def train(client: Client, dataset_id: str) -> TrainingJob:
    covering = RulesCovering(
        kind="rules",
        rules=[
            CoverRule(when=WhenHas(has="billing"), cover=[EachOf(each=["billing"]), AllOf(all_=["sales"])]),
            CoverRule(
                when="otherwise",
                cover=[
                    Positives(positives="all", weight=2),
                    Negatives(negatives="each"),
                ],
            ),
        ],
    )
    body = TrainingJobCreate(
        model="helpdesk",
        dataset_id=dataset_id,
        learner=AdaBoostLCParameters(algorithm="adaboost_lc", rounds=5, covering=covering),
        features=TextFeaturesParameters(kind="text", selection=InformationGain(kind="information_gain")),
    )
    job = training_jobs_create.sync(client=client, body=body)
    if not isinstance(job, TrainingJob):
        raise RuntimeError(job)
    assert job.state == "queued"
    return job


def labels(client: Client, text: str) -> list[str]:
    body = PredictRequest(instances=[Instance(text=text)], version=1, top=3)
    response = models_predict.sync("helpdesk", client=client, body=body)
    if isinstance(response, PredictResponse):
        return response.predictions[0].labels
    if isinstance(response, Problem):
        raise RuntimeError(response.code)
    return []


def route(client: Client, subject: str) -> Decision | Problem | None:
    message = MessageParts(email=EmailParts(subject=subject, from_="ann@example.com"))
    return routers_route_message_parts.sync("frontdesk", client=client, body=message)


def route_raw(client: Client, message: bytes) -> Decision | Problem | None:
    return routers_route_message.sync("frontdesk", client=client, body=File(payload=BytesIO(message)))


other = MPBoostParameters(algorithm="mp_boost", rounds=200)
'''


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("client")
    generator_output = generate_clients.python(folder)
    assert "warning" not in generator_output.lower(), generator_output
    assert "unsupported" not in generator_output.lower(), generator_output
    assert "unable" not in generator_output.lower(), generator_output
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.split(".")[0] == "covey_api"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def models(generated: Path) -> Any:
    return importlib.import_module("covey_api.models")


def operations() -> dict[str, str]:
    """Return the tag of every operation, by operation id."""
    document = json.loads((ROOT / "openapi.json").read_text())
    return {
        operation["operationId"]: operation["tags"][0]
        for path in document["paths"].values()
        for operation in path.values()
    }


def test_every_operation_becomes_a_function(generated: Path) -> None:
    for operation_id, tag in operations().items():
        module = importlib.import_module(f"covey_api.api.{tag}.{operation_id}")
        assert callable(module.sync_detailed), operation_id
        assert callable(module.asyncio_detailed), operation_id


def test_without_a_configuration_only_the_media_types_of_messages_and_results_are_unsupported(
    tmp_path: Path,
) -> None:
    generator_output = generate_clients.python(tmp_path, config=None)
    assert generator_output.count("WARNING") == 4, generator_output
    results = "Unsupported content_type application/x-ndjson, application/vnd.apache.parquet"
    assert generator_output.count(results) == 2, "one for a whole result, one for a range"
    for media_type in ("message/rfc822", "message/global"):
        assert f"Unsupported content type {media_type}" in generator_output
    source = (tmp_path / "covey_api/api/routers/routers_route_message.py").read_text()
    assert 'headers["Content-Type"] = "application/octet-stream"' in source


def test_every_schema_becomes_a_class_of_the_same_name(generated: Path, models: Any) -> None:
    document = json.loads((ROOT / "openapi.json").read_text())
    for name, schema in document["components"]["schemas"].items():
        if schema.get("type") == "object" and "properties" in schema:
            assert hasattr(models, name), name
        if "enum" in schema and len(schema["enum"]) > 1:
            assert hasattr(models, name), name


@pytest.fixture
def client(stack: Stack, generated: Path) -> Iterator[Any]:
    module = importlib.import_module("covey_api")
    with module.Client(base_url=stack.url, timeout=LIMIT_SECONDS, raise_on_unexpected_status=True) as client:
        yield client


@pytest.mark.system
def test_the_client_trains_predicts_and_routes(client: Any, models: Any) -> None:
    types = importlib.import_module("covey_api.types")

    def call(operation_id: str, *arguments: Any, **options: Any) -> Any:
        module = importlib.import_module(f"covey_api.api.{operations()[operation_id]}.{operation_id}")
        response = module.sync_detailed(*arguments, client=client, **options)
        assert response.parsed is not None or response.status_code == 204, response
        return response.parsed

    def as_file(content: bytes) -> Any:
        return types.File(payload=BytesIO(content))

    dataset = call("datasets_create", body=models.DatasetCreate(name="by the client"))
    assert dataset.state == "awaiting_content"
    early = models.TrainingJobCreate(
        model="by-the-client", dataset_id=dataset.id, learner=models.MPBoostParameters(algorithm="mp_boost")
    )
    problem = call("training_jobs_create", body=early)
    assert isinstance(problem, models.Problem)
    assert (problem.status, problem.code) == (409, "dataset_not_ready")
    content = "".join(json.dumps(example) + "\n" for example in departments(80)).encode()
    call("datasets_upload_content", dataset.id, body=as_file(content))

    def get_if_ingested() -> Any:
        current = call("datasets_get", dataset.id)
        return None if current.state == "ingesting" else current

    dataset = wait_for(get_if_ingested, what="the data set")
    assert dataset.state == "ready"
    assert (dataset.n_examples, dataset.n_labels) == (80, 4)
    assert dataset.splits.test == 20
    page = call("datasets_list_labels", dataset.id, limit=3)
    assert [item.label for item in page.items] == ["billing", "sales", "shipping"]
    rest = call("datasets_list_labels", dataset.id, cursor=page.next_cursor)
    assert isinstance(rest.next_cursor, types.Unset)

    request = models.TrainingJobCreate(
        model="by-the-client",
        dataset_id=dataset.id,
        learner=models.MPBoostParameters(algorithm="mp_boost", rounds=8),
        features=models.TextFeaturesParameters(
            kind="text",
            weighting="binary",
            analyzer=models.AnalyzerParameters(stemmer="porter"),
            selection=models.InformationGain(kind="information_gain", per_label=20),
        ),
        decision=models.AtLeastOneDecision(kind="at_least_one"),
        promote=models.PromoteIfBetter(if_better=models.IfBetter(metric="f1_micro")),
    )
    job = call("training_jobs_create", body=request, idempotency_key="by-the-client-1")
    assert call("training_jobs_create", body=request, idempotency_key="by-the-client-1").id == job.id

    types_of_events = []
    with client.get_httpx_client().stream(
        "GET", f"/v1/training-jobs/{job.id}/events", headers={"Accept": "text/event-stream"}
    ) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: "):
                event = models.JobEvent.from_dict(json.loads(line.removeprefix("data: ")))
                types_of_events.append(event.type_)
    assert (types_of_events[0], types_of_events[-1]) == ("queued", "succeeded")
    job = call("training_jobs_get", job.id)
    assert job.state == "succeeded", job
    assert job.result.metrics.test["f1_micro"] > 0.8
    assert [event.type_ for event in call("training_jobs_list_events", job.id).items][-1] == "succeeded"
    assert len(call("training_jobs_list_curve", job.id).items) == 8

    call("models_put_alias", "by-the-client", "candidate", body=models.AliasPut(version=1))
    problem = call(
        "models_put_alias", "by-the-client", "live", body=models.AliasPut(version=1), if_match='"stale"'
    )
    assert isinstance(problem, models.Problem)
    assert (problem.status, problem.code) == (412, "precondition_failed")
    response = call(
        "models_predict",
        "by-the-client",
        body=models.PredictRequest(
            instances=[models.Instance(text="parcel courier late")], version="candidate", top=2, explain=True
        ),
    )
    assert response.predictions[0].labels == ["shipping"]
    assert len(response.predictions[0].ranking) == 2
    assert response.predictions[0].explanation[0].terms

    destinations = models.RouterPutDestinations.from_dict({"shipping": "ship@example.org"})
    router = models.RouterPut(
        model="by-the-client", version=1, destinations=destinations, fallback="front@example.org"
    )
    call("routers_put", "by-the-client", body=router)
    decision = call("routers_route_message", "by-the-client", body=as_file(MESSAGE))
    assert decision.disposition == "routed"
    assert decision.destinations == ["ship@example.org"]
    assert decision.message.message_id == "generated-client@example.com"
    parts = models.MessageParts(
        email=models.EmailParts(subject="refund", text="my invoice payment was charged")
    )
    assert call("routers_route_message_parts", "by-the-client", body=parts, explain=True).explanation
    feedback = models.Feedback(labels=["shipping"])
    assert call("decisions_give_feedback", decision.decision_id, body=feedback).feedback == ["shipping"]
    listed = call("routers_list_decisions", "by-the-client").items
    assert decision.decision_id in [item.decision_id for item in listed]

    artifact = call("models_download_artifact", "by-the-client", 1)
    imported = call("models_import_version", "by-the-client-2", body=as_file(artifact.payload.read()))
    assert imported.labels == ["billing", "sales", "shipping", "support"]

    problem = call("datasets_get", "ds_nope")
    assert isinstance(problem, models.Problem)
    assert (problem.status, problem.code) == (404, "not_found")
    invalid = models.TrainingJobCreate(
        model="by-the-client",
        dataset_id=dataset.id,
        learner=models.MPBoostParameters(algorithm="mp_boost", rounds=0),
    )
    problem = call("training_jobs_create", body=invalid)
    assert isinstance(problem, models.Problem)
    assert (problem.status, problem.code) == (422, "invalid_request")
    assert [item.pointer for item in problem.errors] == ["/learner/rounds"]
    assert problem.request_id.startswith("req_")
    assert {item.algorithm for item in call("learners_list").items} >= {"mp_boost", "adaboost_lc", "mmp"}

    call("routers_delete", "by-the-client")
    for model in ("by-the-client", "by-the-client-2"):
        call("models_delete", model)
    call("datasets_delete", dataset.id)


def test_a_users_program_type_checks_and_one_with_wrong_types_does_not(
    generated: Path, tmp_path: Path
) -> None:
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(PROGRAM)
    wrong.write_text(
        PROGRAM.replace("rounds=200", 'rounds="many"').replace('algorithm="mp_boost"', 'algorithm="mp"')
    )
    options = ("--strict", "--follow-imports=silent", "--config-file=")
    completed = subprocess.run(
        [sys.executable, "-m", "mypy", *options, right, wrong],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(generated)},
        capture_output=True,
        text=True,
        check=False,
    )
    output = completed.stdout + completed.stderr
    assert completed.returncode == 1, output
    errors = re.findall(r"^(\S+):\d+: error: .*\[([a-z-]+)\]$", output, re.MULTILINE)
    assert errors == [("wrong.py", "arg-type")] * 2, output
    assert "Found 2 errors in 1 file (checked 2 source files)" in output, output
