"""The OpenAPI document of the API is valid, complete and up to date."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.openapi.models import OpenAPI
from openapi_python_client.schema import OpenAPI as GeneratorsOpenAPI
from pydantic import BaseModel, TypeAdapter
from stack import Stack

from app.api.base_route import ALSO_ACCEPTED
from app.api.openapi import HEADERS, TAGS, to_json
from app.batch_predictions.schemas import BatchPredictionCreate
from app.datasets.schemas import DatasetCreate, DatasetPatch
from app.evaluations.schemas import EvaluationCreate
from app.experiments.schemas import ExperimentCreate
from app.keys.schemas import ApiKeyCreate, ApiKeyRotate
from app.main import create_app
from app.registry.partial_fit_schemas import PartialFit
from app.registry.schemas import AliasPut, AliasRollback
from app.routing.schemas import Feedback, MessageParts, RouterPut
from app.serving.schemas import PredictRequest
from app.settings import Settings
from app.training.schemas import TrainingJobCreate
from app.users.schemas import UserPatch
from app.webhooks.schemas import WebhookCreate, WebhookRotate

ROOT = Path(__file__).parents[2]
DOCUMENT: dict[str, Any] = json.loads((ROOT / "openapi.json").read_text())
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]

OPERATIONS = {
    "api_keys_create": "POST /v1/api-keys",
    "api_keys_delete": "DELETE /v1/api-keys/{key_id}",
    "api_keys_list": "GET /v1/api-keys",
    "api_keys_rotate": "POST /v1/api-keys/{key_id}/rotate",
    "batch_predictions_cancel": "POST /v1/batch-predictions/{batch_prediction_id}/cancel",
    "batch_predictions_create": "POST /v1/batch-predictions",
    "batch_predictions_download_result": "GET /v1/batch-predictions/{batch_prediction_id}/result",
    "batch_predictions_get": "GET /v1/batch-predictions/{batch_prediction_id}",
    "batch_predictions_list": "GET /v1/batch-predictions",
    "datasets_create": "POST /v1/datasets",
    "datasets_delete": "DELETE /v1/datasets/{dataset_id}",
    "datasets_get": "GET /v1/datasets/{dataset_id}",
    "datasets_list": "GET /v1/datasets",
    "datasets_list_examples": "GET /v1/datasets/{dataset_id}/examples",
    "datasets_list_labels": "GET /v1/datasets/{dataset_id}/labels",
    "datasets_update": "PATCH /v1/datasets/{dataset_id}",
    "datasets_upload_content": "PUT /v1/datasets/{dataset_id}/content",
    "decisions_delete": "DELETE /v1/decisions/{decision_id}",
    "decisions_get": "GET /v1/decisions/{decision_id}",
    "decisions_get_message": "GET /v1/decisions/{decision_id}/message",
    "decisions_give_feedback": "POST /v1/decisions/{decision_id}/feedback",
    "decisions_put_review": "PUT /v1/decisions/{decision_id}/review",
    "decisions_release": "DELETE /v1/decisions/{decision_id}/reservation",
    "decisions_reserve": "PUT /v1/decisions/{decision_id}/reservation",
    "evaluations_create": "POST /v1/models/{name}/versions/{version}/evaluations",
    "evaluations_get": "GET /v1/models/{name}/versions/{version}/evaluations/{evaluation_id}",
    "evaluations_get_of_training": "GET /v1/models/{name}/versions/{version}/evaluation",
    "evaluations_list": "GET /v1/models/{name}/versions/{version}/evaluations",
    "experiments_cancel": "POST /v1/experiments/{experiment_id}/cancel",
    "experiments_create": "POST /v1/experiments",
    "experiments_get": "GET /v1/experiments/{experiment_id}",
    "experiments_get_confusion": "GET /v1/experiments/{experiment_id}/confusion",
    "experiments_get_report": "GET /v1/experiments/{experiment_id}/report",
    "experiments_list": "GET /v1/experiments",
    "experiments_list_errors": "GET /v1/experiments/{experiment_id}/errors",
    "health_live": "GET /health/live",
    "health_metrics": "GET /metrics",
    "health_ready": "GET /health/ready",
    "learners_list": "GET /v1/learners",
    "models_delete": "DELETE /v1/models/{name}",
    "models_get_alias": "GET /v1/models/{name}/aliases/{alias}",
    "models_list_alias_history": "GET /v1/models/{name}/aliases/{alias}/history",
    "models_list_aliases": "GET /v1/models/{name}/aliases",
    "models_roll_back_alias": "POST /v1/models/{name}/aliases/{alias}/rollback",
    "models_partial_fit": "POST /v1/models/{name}/versions/{version}/partial-fit",
    "models_delete_alias": "DELETE /v1/models/{name}/aliases/{alias}",
    "models_delete_version": "DELETE /v1/models/{name}/versions/{version}",
    "models_download_artifact": "GET /v1/models/{name}/versions/{version}/artifact",
    "models_get": "GET /v1/models/{name}",
    "models_get_version": "GET /v1/models/{name}/versions/{version}",
    "models_import_version": "POST /v1/models/{name}/versions",
    "models_list": "GET /v1/models",
    "models_list_pivots": "GET /v1/models/{name}/versions/{version}/pivots",
    "models_list_versions": "GET /v1/models/{name}/versions",
    "models_predict": "POST /v1/models/{name}/predict",
    "models_put_alias": "PUT /v1/models/{name}/aliases/{alias}",
    "routers_delete": "DELETE /v1/routers/{name}",
    "routers_get": "GET /v1/routers/{name}",
    "routers_get_thresholds": "GET /v1/routers/{name}/thresholds",
    "routers_get_report": "GET /v1/routers/{name}/report",
    "routers_list": "GET /v1/routers",
    "routers_list_decisions": "GET /v1/routers/{name}/decisions",
    "routers_put": "PUT /v1/routers/{name}",
    "routers_route_message": "POST /v1/routers/{name}/messages",
    "routers_route_message_parts": "POST /v1/routers/{name}/message-parts",
    "training_jobs_cancel": "POST /v1/training-jobs/{job_id}/cancel",
    "training_jobs_create": "POST /v1/training-jobs",
    "training_jobs_get": "GET /v1/training-jobs/{job_id}",
    "training_jobs_list": "GET /v1/training-jobs",
    "training_jobs_list_curve": "GET /v1/training-jobs/{job_id}/curve",
    "training_jobs_list_events": "GET /v1/training-jobs/{job_id}/events",
    "users_delete": "DELETE /v1/users/{user_id}",
    "users_get": "GET /v1/users/{user_id}",
    "users_list": "GET /v1/users",
    "users_update": "PATCH /v1/users/{user_id}",
    "webhooks_create": "POST /v1/webhooks",
    "webhooks_delete": "DELETE /v1/webhooks/{webhook_id}",
    "webhooks_get": "GET /v1/webhooks/{webhook_id}",
    "webhooks_list": "GET /v1/webhooks",
    "webhooks_list_deliveries": "GET /v1/webhooks/{webhook_id}/deliveries",
    "webhooks_redeliver": "POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver",
    "webhooks_rotate": "POST /v1/webhooks/{webhook_id}/rotate",
    "webhooks_test": "POST /v1/webhooks/{webhook_id}/test",
}
"""Operation ids, which clients use as function names: add lines, but never change or remove one."""

REQUESTS: list[type[BaseModel]] = [
    AliasPut,
    AliasRollback,
    ApiKeyCreate,
    ApiKeyRotate,
    BatchPredictionCreate,
    DatasetCreate,
    DatasetPatch,
    EvaluationCreate,
    ExperimentCreate,
    Feedback,
    MessageParts,
    PartialFit,
    PredictRequest,
    RouterPut,
    TrainingJobCreate,
    UserPatch,
    WebhookCreate,
    WebhookRotate,
]


MAPS = {"properties", "schemas", "paths", "responses", "headers", "content"}
"""Keys of objects whose keys are names, not keywords of the specification."""
UNTYPED = {"/schemas/AdaBoostLCParameters/properties/template"}
"""Values that are words or lists of lists and objects. Java has no type for such a union."""
VALUES = {"example", "examples", "default", "enum", "const", "mapping"}


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def parts(part: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(part, dict):
        yield place, part
        for key, value in part.items():
            if key in MAPS and isinstance(value, dict):
                for name, inner in value.items():
                    yield from parts(inner, f"{place}/{key}/{name}")
            elif key not in VALUES:
                yield from parts(value, f"{place}/{key}")
    elif isinstance(part, list):
        for i, value in enumerate(part):
            yield from parts(value, f"{place}/{i}")


def references(part: Any) -> Iterator[str]:
    for _, node in parts(part):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        mapping = node.get("discriminator", {})
        if isinstance(mapping, dict):
            yield from mapping.get("mapping", {}).values()


def resolved(reference: str) -> Any:
    node: Any = DOCUMENT
    for key in reference.removeprefix("#/").split("/"):
        node = node[key]
    return node


def reachable(roots: list[str]) -> set[str]:
    pending, seen = list(roots), set[str]()
    while pending:
        if (reference := pending.pop()) not in seen:
            seen.add(reference)
            pending += references(resolved(reference))
    return seen


def response(operation: dict[str, Any], status: str) -> dict[str, Any]:
    documented: dict[str, Any] = operation["responses"][status]
    return resolved(documented["$ref"]) if "$ref" in documented else documented


def test_the_committed_document_is_up_to_date() -> None:
    generated = to_json(create_app(Settings()))
    assert generated == (ROOT / "openapi.json").read_text(), "run `make openapi` and look at the difference"


@pytest.mark.system
@pytest.mark.xdist_group("stack")
def test_the_service_serves_the_committed_document(stack: Stack) -> None:
    assert stack.call("GET", "/openapi.json", 200) == DOCUMENT


@pytest.mark.system
@pytest.mark.xdist_group("stack")
def test_the_documentation_page_needs_no_other_host(stack: Stack) -> None:
    page = stack.http.get("/docs")
    parts = re.findall(r"""(?:src|href)="([^"]+)\"""", page.text)
    assert sorted(part.rpartition(".")[2] for part in parts) == ["css", "js", "png"]
    assert not re.search(r"https?://", page.text), "absolute URLs fail behind a proxy"
    for part in parts:
        response = stack.http.get(part)
        assert response.status_code == 200
        assert len(response.content) > 500
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    assert stack.http.get("/docs/parts/main.py").status_code == 404
    assert stack.http.get("/docs/parts/..%2Fmain.py").status_code == 404


def test_the_document_is_valid() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    OpenAPI.model_validate(DOCUMENT)
    GeneratorsOpenAPI.model_validate(DOCUMENT)


def test_every_reference_resolves_and_every_component_is_used() -> None:
    used = reachable(list(references(DOCUMENT["paths"])))
    defined = {
        f"#/components/{kind}/{name}"
        for kind in ("schemas", "responses", "headers")
        for name in DOCUMENT["components"][kind]
    }
    assert used == defined


def test_every_schema_uses_only_keywords_of_json_schema() -> None:
    keywords = {
        *("$ref", "type", "title", "description", "default", "examples", "enum", "const", "format"),
        *("properties", "required", "additionalProperties", "propertyNames", "discriminator"),
        *("minProperties", "maxProperties", "x-enum-varnames"),
        *(ALSO_ACCEPTED, "items", "minItems", "maxItems", "oneOf", "anyOf"),
        *("minLength", "maxLength", "pattern"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    }
    types = {"string", "number", "integer", "boolean", "object", "array", "null"}
    for place, schema in parts({"schemas": SCHEMAS}):
        if place == "" or place in UNTYPED or place.endswith(("/discriminator", "/propertyNames")):
            continue
        assert schema.keys() <= keywords, place
        assert schema.get("type", "object") in types, place
        for bound in ("minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength"):
            assert isinstance(schema.get(bound, 0), int), place
        if schema.get("type") == "integer":
            for bound in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
                assert isinstance(schema.get(bound, 0), int), (
                    f"{place}: {bound} of an integer is not an integer"
                )
        assert schema.keys() & {"$ref", "type", "oneOf", "anyOf", "enum", "const"}, f"{place} has no type"
        required = set(schema.get("required", ()))
        assert required <= schema.get("properties", {}).keys(), place


def test_operation_ids_are_unique_and_frozen() -> None:
    listed = [(operation["operationId"], place) for place, operation in operations()]
    assert len(listed) == len({name for name, _ in listed})
    assert dict(listed) == OPERATIONS
    for name, place in OPERATIONS.items():
        assert re.fullmatch(r"[a-z]+(_[a-z]+)+", name), place


def test_operations_are_named_after_their_only_tag() -> None:
    tags = {tag["name"]: tag["description"] for tag in DOCUMENT["tags"]}
    assert tags == TAGS
    used = set()
    for _, operation in operations():
        (tag,) = operation["tags"]
        assert operation["operationId"].startswith(f"{tag}_")
        used.add(tag)
    assert used == set(tags)


def test_schema_names_have_no_generated_parts() -> None:
    for name, schema in SCHEMAS.items():
        assert re.fullmatch(r"[A-Z][A-Za-z0-9]*", name), name
        assert not re.search(r"(Input|Output|Union|Type\d|Inner|Model\d|Validation|Body_)", name), name
        assert "title" not in schema, f"{name} has a title in addition to its name"
    for place, schema in parts({"schemas": SCHEMAS}):
        assert "title" not in schema, f"{place} has a generated title"


def test_every_schema_operation_and_parameter_has_a_description() -> None:
    undescribed = [f"schema {name}" for name, schema in SCHEMAS.items() if not schema.get("description")]
    undescribed += [
        f"{name}.{field}"
        for name, schema in SCHEMAS.items()
        for field, inner in schema.get("properties", {}).items()
        if not inner.get("description")
    ]
    for place, operation in operations():
        if not operation.get("description") or not operation.get("summary"):
            undescribed.append(place)
        undescribed += [
            f"{place}: {parameter['name']}"
            for parameter in operation.get("parameters", ())
            if not parameter.get("description")
        ]
        undescribed += [
            f"{place}: {status}"
            for status in operation["responses"]
            if not response(operation, status).get("description")
        ]
    assert undescribed == []
    summaries = [operation["summary"] for _, operation in operations()]
    assert len(summaries) == len(set(summaries))


def test_all_errors_have_the_same_schema() -> None:
    for place, operation in operations():
        for status in operation["responses"]:
            content = response(operation, status).get("content", {})
            if status >= "400":
                assert content == {
                    "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
                }, f"{place}: {status}"
            else:
                assert "application/problem+json" not in content
    problem = SCHEMAS["Problem"]
    assert set(problem["required"]) == {"type", "title", "status", "detail", "code"}
    assert set(problem["properties"]) >= {*problem["required"], "errors", "records", "request_id"}


def test_operations_document_their_errors() -> None:
    for place, operation in operations():
        statuses = set(operation["responses"])
        assert "422" in statuses, f"{place} rejects unknown query parameters"
        if not place.split(" ")[1].startswith("/v1"):
            continue
        assert {"401", "403", "500", "503"} <= statuses, place
        good = {status for status in statuses if status < "400"}
        assert len(good) == 1 or good == {"200", "206"}, place
        assert ({"400", "413", "415"} <= statuses) == ("requestBody" in operation), place
        creates = place in {"PUT /v1/routers/{name}", "POST /v1/models/{name}/versions"}
        assert "404" in statuses or "{" not in place or creates, place


def test_responses_document_their_headers() -> None:
    for place, operation in operations():
        for status in operation["responses"]:
            headers = set(response(operation, status)["headers"])
            assert "X-Request-ID" in headers, place
            assert ("WWW-Authenticate" in headers) == (status == "401"), place
            assert ("Retry-After" in headers) == (status in {"429", "503"}), place
    location = {
        operation["operationId"]
        for _, operation in operations()
        if any("Location" in response(operation, status)["headers"] for status in operation["responses"])
    }
    assert location == {
        *("api_keys_create", "datasets_create", "webhooks_create"),
        *("models_import_version", "models_partial_fit"),
        *("evaluations_create", "experiments_create", "training_jobs_create", "batch_predictions_create"),
    }
    for operation_id in (
        *("models_get_alias", "models_put_alias", "models_roll_back_alias", "models_download_artifact"),
        "batch_predictions_download_result",
    ):
        _, operation = next(pair for pair in operations() if pair[1]["operationId"] == operation_id)
        assert "ETag" in response(operation, "200")["headers"]
    assert set(DOCUMENT["components"]["headers"]) == set(HEADERS)


def test_operations_that_create_accept_an_idempotency_key() -> None:
    accepting = {
        operation["operationId"]
        for _, operation in operations()
        if any(parameter["name"] == "Idempotency-Key" for parameter in operation.get("parameters", ()))
    }
    assert accepting == {
        "api_keys_create",
        "api_keys_rotate",
        "batch_predictions_create",
        "datasets_create",
        "evaluations_create",
        "experiments_create",
        "models_import_version",
        "models_partial_fit",
        "training_jobs_create",
        "webhooks_create",
        "webhooks_rotate",
    }


def test_a_key_is_documented_and_optional() -> None:
    assert DOCUMENT["security"] == [{}, {"ApiKey": []}]
    scheme = DOCUMENT["components"]["securitySchemes"]["ApiKey"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    scopes = {}
    for place, operation in operations():
        if place.split(" ")[1].startswith("/v1"):
            assert "security" not in operation, f"{place} has its own security requirement"
            text: str = operation["description"].rpartition("\n\nScope: ")[2]
            # tests/app/api/test_guards.py lists what the scope review permits.
            (scope,) = set(re.findall(r"`(\w+)`", text)) - {"review"}
            scopes[operation["operationId"]] = scope
        else:
            assert operation["security"] == []
    for operation_id, scope in scopes.items():
        place = OPERATIONS[operation_id]
        if operation_id.startswith(("api_keys_", "users_", "webhooks_")):
            assert scope == "admin", place
        elif place.startswith("GET "):
            # The scope to read gives no access to the text of messages.
            assert scope == ("train" if operation_id == "decisions_get_message" else "read"), place
        else:
            assert scope in {"predict", "train"}, place


def test_fields_with_the_same_name_can_have_different_schemas() -> None:
    numbers = SCHEMAS["Instance"]["properties"]["features"]
    assert {"$ref": "#/components/schemas/FeatureValues"} in numbers["anyOf"]
    settings = SCHEMAS["ModelVersion"]["properties"]["features"]
    assert (settings["type"], settings["additionalProperties"]) == ("object", True)


def test_every_union_of_objects_can_be_discriminated() -> None:
    for place, schema in parts({"schemas": SCHEMAS}):
        branches = [*schema.get("oneOf", ()), *schema.get("anyOf", ())]
        objects = [SCHEMAS[b["$ref"].rsplit("/", 1)[-1]] for b in branches if "$ref" in b]
        objects = [branch for branch in objects if branch.get("type") == "object"]
        if len(objects) < 2:
            continue
        if "discriminator" in schema:
            key, mapping = schema["discriminator"]["propertyName"], schema["discriminator"]["mapping"]
            assert sorted(mapping.values()) == sorted(branch["$ref"] for branch in branches), place
            for literal, reference in mapping.items():
                branch = resolved(reference)
                assert branch["properties"][key]["const"] == literal, place
                assert key in branch["required"], f"{place}: {literal} is optional"
        else:
            # Without a common literal each branch has a required field that no other branch has.
            for branch in objects:
                others = [set(other["properties"]) for other in objects if other is not branch]
                assert set(branch["required"]) - set().union(*others), place
                assert branch["additionalProperties"] is False, place


def test_a_literal_is_always_required() -> None:
    for name, schema in SCHEMAS.items():
        for field, inner in schema.get("properties", {}).items():
            if "const" in inner:
                assert field in schema["required"], f"{name}.{field}"
                assert "default" not in inner, f"{name}.{field}"


def test_responses_have_no_null_and_defaults_are_not_objects() -> None:
    bodies = [operation["requestBody"] for _, operation in operations() if "requestBody" in operation]
    sent = reachable(list(references(bodies)))
    for name, schema in SCHEMAS.items():
        if f"#/components/schemas/{name}" in sent:
            continue
        assert {"type": "null"} not in [inner for _, inner in parts(schema)], name
    for place, schema in parts(DOCUMENT):
        assert not isinstance(schema.get("default"), dict), (
            f"{place}: client generators fail on an object as default"
        )
        assert "default" not in schema or schema["default"] is not None, place


def test_bodies_of_bytes_have_the_format_binary() -> None:
    binary = {"schema": {"type": "string", "format": "binary"}}
    content = {
        operation["operationId"]: operation["requestBody"]["content"]
        for _, operation in operations()
        if "requestBody" in operation
    }
    octets = {name for name, kinds in content.items() if "application/octet-stream" in kinds}
    assert octets == {"datasets_upload_content", "models_import_version", "routers_route_message"}
    assert all(content[name]["application/octet-stream"] == binary for name in octets)
    route = content["routers_route_message"]
    assert route["message/rfc822"] == route["message/global"] == binary
    parts_content = content["routers_route_message_parts"]
    assert parts_content == {"application/json": {"schema": {"$ref": "#/components/schemas/MessageParts"}}}
    _, download = next(p for p in operations() if p[1]["operationId"] == "models_download_artifact")
    assert response(download, "200")["content"] == {"application/octet-stream": binary}
    assert not [place for place, schema in parts(DOCUMENT) if "contentMediaType" in schema]


def test_every_list_has_a_page_schema() -> None:
    for place, operation in operations():
        names = {parameter["name"] for parameter in operation.get("parameters", ())}
        if "cursor" not in names:
            continue
        assert "limit" in names
        page = resolved(response(operation, "200")["content"]["application/json"]["schema"]["$ref"])
        assert page["properties"].keys() == {"items", "next_cursor"}, place
        assert page["required"] == ["items"], place


@pytest.mark.parametrize("request_class", REQUESTS)
def test_the_examples_of_requests_are_valid(request_class: type[BaseModel]) -> None:
    examples = SCHEMAS[request_class.__name__]["examples"]
    assert examples
    for example in examples:
        TypeAdapter(request_class).validate_python(example)


def test_the_examples_of_every_json_request_are_tested() -> None:
    sent = {
        content["application/json"]["schema"]["$ref"].rsplit("/", 1)[-1]
        for _, operation in operations()
        if "application/json" in (content := operation.get("requestBody", {}).get("content", {}))
    }
    assert sent == {request.__name__ for request in REQUESTS}


def test_no_schema_repeats_a_named_enumeration() -> None:
    seen: dict[tuple[str, ...], str] = {}
    for place, schema in parts({"schemas": SCHEMAS}):
        values = schema.get("enum")
        if isinstance(values, list) and "/properties/" in place and len(values) > 1:
            key = tuple(map(str, values))
            named = [name for name, other in SCHEMAS.items() if other.get("enum") == values]
            assert not named, f"{place} repeats {named}"
            seen[key] = place
    assert seen
