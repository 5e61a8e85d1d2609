"""Calls every operation of the API with valid requests, and creates the resources that a fuzzer needs."""

from __future__ import annotations

import json
from typing import Any

from fuzzing import MAIL, QUICK, SIGN, Fuzz
from new_users import new_user
from stack import departments
from waiting import wait_for

from app.db.session import Database

SUCCESSFUL = {"ready", "succeeded"}
UNSUCCESSFUL = {"failed", "cancelled"}


def call_every_operation(fuzz: Fuzz) -> None:
    """Create a data set, a model with two versions, a router and other resources, and read all of them."""
    dataset_id = _datasets(fuzz)
    _trainings(fuzz, dataset_id)
    _versions(fuzz)
    _evaluations(fuzz, dataset_id)
    _batch_predictions(fuzz, dataset_id)
    _experiments(fuzz, dataset_id)
    _routers(fuzz)
    _keys(fuzz)
    _users(fuzz)
    _webhooks(fuzz)
    fuzz.send("learners_list", 200)
    for operation_id in ("health_live", "health_ready", "health_metrics"):
        fuzz.send(operation_id, 200)


def _wait_until_ended(fuzz: Fuzz, operation_id: str, **names: Any) -> Any:
    def final_state() -> Any:
        resource = fuzz.send(operation_id, 200, **names)
        assert resource["state"] not in UNSUCCESSFUL, resource
        return resource if resource["state"] in SUCCESSFUL else None

    return wait_for(final_state, what=operation_id)


def _datasets(fuzz: Fuzz) -> str:
    created = fuzz.send("datasets_create", 201, {"name": "fuzz"})
    content = "".join(json.dumps(example) + "\n" for example in departments(40)).encode()
    fuzz.send(
        "datasets_upload_content",
        202,
        content,
        media_type="application/octet-stream",
        dataset_id=created["id"],
    )
    dataset_id: str = created["id"]
    _wait_until_ended(fuzz, "datasets_get", dataset_id=dataset_id)
    fuzz.send("datasets_update", 200, {"description": "kept"}, dataset_id=dataset_id)
    for operation_id in ("datasets_list_examples", "datasets_list_labels"):
        fuzz.send(operation_id, 200, dataset_id=dataset_id, query={"limit": 3})
    fuzz.send("datasets_list", 200)
    few = {"name": "few", "examples": [{"text": "an invoice", "labels": ["billing"]}]}
    small = fuzz.send("datasets_create", 201, few, headers={"Idempotency-Key": "once"})
    _wait_until_ended(fuzz, "datasets_get", dataset_id=small["id"])
    derived = fuzz.send("datasets_create", 201, {"name": "derived", "derive": {"datasets": [small["id"]]}})
    _wait_until_ended(fuzz, "datasets_get", dataset_id=derived["id"])
    for made in (derived, small):
        fuzz.send("datasets_delete", 204, dataset_id=made["id"])
    numbers = [{"features": {"a": i - 4.0, "b": float(i % 3)}, "labels": ["odd"][: i % 2]} for i in range(12)]
    numeric = fuzz.send("datasets_create", 201, {"name": "numbers", "examples": numbers})
    _wait_until_ended(fuzz, "datasets_get", dataset_id=numeric["id"])
    for kept in (dataset_id, numeric["id"]):
        fuzz.pool.protect("/v1/datasets/{dataset_id}", dataset_id=kept)
    return dataset_id


def _trainings(fuzz: Fuzz, dataset_id: str) -> None:
    request = {"model": "fuzz", "dataset_id": dataset_id, "learner": QUICK, "decision": SIGN}
    for number in (1, 2):
        job = fuzz.send("training_jobs_create", 202, request)
        _wait_until_ended(fuzz, "training_jobs_get", job_id=job["id"])
        fuzz.pool.protect("/v1/training-jobs/{job_id}", job_id=job["id"])
        fuzz.pool.protect("/v1/models/{name}/versions/{version}", name="fuzz", version=number)
    bayes = {**request, "model": "bayes", "learner": {"algorithm": "naive_bayes"}}
    trained = fuzz.send("training_jobs_create", 202, bayes)
    _wait_until_ended(fuzz, "training_jobs_get", job_id=trained["id"])
    corrections = {"examples": [{"text": "an invoice", "labels": ["billing"]}]}
    fuzz.send("models_partial_fit", 201, corrections, name="bayes", version=1)
    fuzz.send("training_jobs_list_events", 200, job_id=job["id"])
    fuzz.send("training_jobs_list_curve", 200, job_id=job["id"])
    fuzz.send("training_jobs_list", 200)
    long = fuzz.send("training_jobs_create", 202, request, headers={"Idempotency-Key": "a training"})
    fuzz.send("training_jobs_cancel", 202, job_id=long["id"])
    fuzz.pool.protect("/v1/models/{name}/aliases/{alias}", name="fuzz", alias="live")
    fuzz.pool.protect("/v1/models/{name}", name="fuzz")


def _versions(fuzz: Fuzz) -> None:
    one: dict[str, Any] = {"name": "fuzz", "version": 1}
    fuzz.send("models_list", 200)
    fuzz.send("models_get", 200, name="fuzz")
    fuzz.send("models_list_versions", 200, name="fuzz")
    fuzz.send("models_get_version", 200, **one)
    fuzz.send("models_list_pivots", 200, **one)
    fuzz.artifact = fuzz.send("models_download_artifact", 200, **one)
    fuzz.send("models_download_artifact", 206, headers={"Range": "bytes=0-9"}, **one)
    fuzz.send("models_predict", 200, {"instances": [{"text": "an invoice"}], "explain": True}, name="fuzz")
    octets = "application/octet-stream"
    for _ in range(2):
        fuzz.send("models_import_version", 201, fuzz.artifact, media_type=octets, name="imported")
    fuzz.send("models_put_alias", 200, {"version": 2}, name="imported", alias="candidate")
    for operation_id in ("models_get_alias", "models_list_alias_history"):
        fuzz.send(operation_id, 200, name="imported", alias="candidate")
    fuzz.send("models_list_aliases", 200, name="imported")
    fuzz.send("models_put_alias", 200, {"version": 1}, name="imported", alias="candidate")
    fuzz.send("models_roll_back_alias", 200, {}, name="imported", alias="candidate")
    fuzz.send("models_delete_alias", 204, name="imported", alias="candidate")
    fuzz.send("models_delete_version", 204, name="imported", version=2)
    fuzz.send("models_delete", 204, name="imported")


def _evaluations(fuzz: Fuzz, dataset_id: str) -> None:
    one: dict[str, Any] = {"name": "fuzz", "version": 1}
    fuzz.send("evaluations_get_of_training", 200, **one)
    created = fuzz.send("evaluations_create", 202, {"dataset_id": dataset_id}, **one)
    _wait_until_ended(fuzz, "evaluations_get", evaluation_id=created["id"], **one)
    fuzz.send("evaluations_list", 200, **one)
    path = "/v1/models/{name}/versions/{version}/evaluations/{evaluation_id}"
    fuzz.pool.protect(path, evaluation_id=created["id"], **one)


def _batch_predictions(fuzz: Fuzz, dataset_id: str) -> None:
    request = {"model": "fuzz", "dataset_id": dataset_id, "top": 2}
    for kind in ("ndjson", "parquet"):
        created = fuzz.send("batch_predictions_create", 202, {**request, "format": kind})
        names = {"batch_prediction_id": created["id"]}
        _wait_until_ended(fuzz, "batch_predictions_get", **names)
        fuzz.send("batch_predictions_download_result", 200, **names)
        fuzz.pool.protect("/v1/batch-predictions/{batch_prediction_id}", **names)
    fuzz.send("batch_predictions_list", 200)
    stopped = fuzz.send("batch_predictions_create", 202, request)
    fuzz.send("batch_predictions_cancel", 202, batch_prediction_id=stopped["id"])


def _experiments(fuzz: Fuzz, dataset_id: str) -> None:
    request = {
        "dataset_id": dataset_id,
        "configurations": [
            {"learner": QUICK, "decision": SIGN},
            {"learner": QUICK, "decision": SIGN, "name": "b"},
        ],
    }
    created = fuzz.send("experiments_create", 202, request)
    names = {"experiment_id": created["id"]}
    _wait_until_ended(fuzz, "experiments_get", **names)
    for kind in ("json", "csv", "html"):
        fuzz.send("experiments_get_report", 200, query={"format": kind}, **names)
    fuzz.send("experiments_list_errors", 200, query={"configuration": 0}, **names)
    fuzz.send("experiments_get_confusion", 200, query={"configuration": 1}, **names)
    fuzz.send("experiments_list", 200)
    stopped = fuzz.send("experiments_create", 202, request)
    fuzz.send("experiments_cancel", 202, experiment_id=stopped["id"])
    fuzz.pool.protect("/v1/experiments/{experiment_id}", **names)


def _routers(fuzz: Fuzz) -> None:
    router = {"model": "fuzz", "fallback": "front@example.org", "explain": True, "keep_messages": "all"}
    for name in ("fuzz", "gone"):
        fuzz.send("routers_put", 200, router, name=name)
    fuzz.send("routers_delete", 204, name="gone")
    fuzz.send("routers_get", 200, name="fuzz")
    fuzz.send("routers_get_thresholds", 200, name="fuzz")
    fuzz.send("routers_list", 200)
    for number, kind in enumerate(("application/octet-stream", "message/rfc822", "message/global")):
        decision = fuzz.send("routers_route_message", 200, MAIL % number, media_type=kind, name="fuzz")
    parts = {"email": {"subject": "Invoice", "text": "It is wrong."}}
    other = fuzz.send("routers_route_message_parts", 200, parts, name="fuzz")
    fuzz.send("routers_list_decisions", 200, name="fuzz")
    names = {"decision_id": decision["decision_id"]}
    fuzz.send("decisions_get", 200, **names)
    fuzz.send("decisions_get_message", 200, **names)
    fuzz.send("decisions_reserve", 200, **names)
    fuzz.send("decisions_put_review", 200, {"assigned_to": "Ann", "note": "?"}, **names)
    fuzz.send("decisions_release", 204, **names)
    fuzz.send("decisions_give_feedback", 200, {"labels": ["billing"]}, **names)
    for by in ("department", "week", "version"):
        fuzz.send("routers_get_report", 200, query={"by": by}, name="fuzz")
    fuzz.send("decisions_delete", 204, decision_id=other["decision_id"])
    fuzz.pool.protect("/v1/routers/{name}", name="fuzz")
    fuzz.pool.protect("/v1/decisions/{decision_id}", **names)


def _keys(fuzz: Fuzz) -> None:
    created = fuzz.send("api_keys_create", 201, {"name": "another", "scopes": ["read"]})
    fuzz.send("api_keys_list", 200)
    fuzz.send("api_keys_rotate", 200, {"grace_seconds": 0}, key_id=created["id"])
    fuzz.send("api_keys_delete", 204, key_id=created["id"])


def _users(fuzz: Fuzz) -> None:
    db = Database(f"sqlite:///{fuzz.stack.data}/covey.db")
    for _ in range(2):
        user_id = new_user(db)
    db.close()
    fuzz.send("users_list", 200)
    fuzz.send("users_get", 200, user_id=user_id)
    fuzz.send("users_update", 200, {"role": "editor"}, user_id=user_id)
    fuzz.send("users_delete", 204, user_id=user_id)


def _webhooks(fuzz: Fuzz) -> None:
    body = {"url": "https://hooks.invalid/covey", "events": ["decision.review"], "router": "fuzz"}
    for _ in range(2):
        created = fuzz.send("webhooks_create", 201, body)
    names = {"webhook_id": created["id"]}
    fuzz.send("webhooks_list", 200)
    fuzz.send("webhooks_get", 200, **names)
    delivery = fuzz.send("webhooks_test", 202, **names)
    fuzz.send("webhooks_redeliver", 202, delivery_id=delivery["id"], **names)
    fuzz.send("webhooks_list_deliveries", 200, **names)
    fuzz.send("webhooks_rotate", 200, {"grace_seconds": 60}, **names)
    fuzz.send("webhooks_delete", 204, **names)
