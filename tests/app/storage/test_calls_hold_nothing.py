"""No operation and no job calls the storage while it holds a connection or a transaction of the database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import in_process
import pytest
from in_process_api import HeldConnections, InProcessApi
from new_users import new_user

from app.db.open_sessions import SessionOpenError, refuse_if_any
from app.db.session import Database
from app.maintenance import retention
from app.storage import LocalStorage
from workers.job_kinds import WORK

MESSAGE = b"Message-ID: <1@example.org>\r\nSubject: invoice\r\n\r\nmy invoice is wrong\r\n"


def use_everything(service: InProcessApi) -> None:
    """Call every operation, and run a job of every kind."""
    call, ctx = service.call, service.ctx
    dataset = service.dataset()
    path = f"/v1/datasets/{dataset}"
    uploaded = call("POST", "/v1/datasets", 201, json={"name": "uploaded"})["id"]
    call("PUT", f"/v1/datasets/{uploaded}/content", 202, content=b"bad", headers=OCTETS)
    in_process.work(ctx)
    call("PUT", f"/v1/datasets/{uploaded}/content", 202, content=b"bad again", headers=OCTETS)
    in_process.work(ctx)
    call("PUT", f"{path}/content", 409, content=b"more", headers=OCTETS)
    few = [{"text": "one more invoice", "labels": ["billing"]}]
    derived = {"name": "derived", "derive": {"datasets": [dataset]}, "examples": few}
    derived_id = call("POST", "/v1/datasets", 201, json=derived)["id"]
    in_process.work(ctx)
    assert call("GET", f"/v1/datasets/{derived_id}", 200)["state"] == "ready"
    for read in ("/v1/datasets", path, f"{path}/examples", f"{path}/labels"):
        call("GET", read, 200)
    call("PATCH", path, 200, json={"name": "renamed"})

    job = service.train(dataset)["id"]
    body = {"dataset_id": dataset, "model": "m", "learner": {"algorithm": "mp_boost", "rounds": 3}}
    boosted = call("POST", "/v1/training-jobs", 202, json=body)["id"]
    in_process.work(ctx)
    assert call("GET", f"/v1/training-jobs/{boosted}", 200)["state"] == "succeeded"
    for part in ("", f"/{job}", f"/{job}/events", f"/{job}/curve"):
        call("GET", f"/v1/training-jobs{part}", 200)
    call("POST", f"/v1/training-jobs/{job}/cancel", 202)

    cells = {"dataset_id": dataset, "configurations": [{"learner": {"algorithm": "naive_bayes"}}]}
    experiment = call("POST", "/v1/experiments", 202, json={**cells, "split": {"kind": "folds", "folds": 2}})
    in_process.work(ctx)
    cancelled = call("POST", "/v1/experiments", 202, json=cells)["id"]
    call("POST", f"/v1/experiments/{cancelled}/cancel", 202)
    for part in ("", "/{id}", "/{id}/report", "/{id}/report?format=html"):
        call("GET", f"/v1/experiments{part.format(id=experiment['id'])}", 200)
    for part in ("errors", "confusion"):
        call("GET", f"/v1/experiments/{experiment['id']}/{part}?configuration=0", 200)

    version = "/v1/models/m/versions/1"
    artifact = service.send("GET", f"{version}/artifact").content
    call("POST", "/v1/models/copy/versions", 201, content=artifact, headers=OCTETS)
    call("POST", "/v1/models/copy/versions", 422, content=b"no artifact", headers=OCTETS)
    for read in ("/v1/models", "/v1/models/m", "/v1/models/m/versions", version):
        call("GET", read, 200)
    call("GET", "/v1/models/m/versions/2/pivots", 200)
    correction = {"examples": [{"text": "an invoice", "labels": ["billing"]}]}
    call("POST", f"{version}/partial-fit", 201, json=correction)
    call("PUT", "/v1/models/m/aliases/other", 200, json={"version": 1})
    call("PUT", "/v1/models/m/aliases/other", 200, json={"version": 2})
    service.forget_versions()
    call("POST", "/v1/models/m/aliases/other/rollback", 200)
    for read in ("/v1/models/m/aliases", "/v1/models/m/aliases/other", "/v1/models/m/aliases/other/history"):
        call("GET", read, 200)
    call("DELETE", "/v1/models/m/aliases/other", 204)
    call("POST", "/v1/models/m/predict", 200, json={"instances": [{"text": "an invoice"}]})
    evaluation = call("POST", f"{version}/evaluations", 202, json={"dataset_id": dataset})["id"]
    in_process.work(ctx)
    for part in ("evaluation?texts=true", "evaluations", f"evaluations/{evaluation}?texts=true"):
        call("GET", f"{version}/{part}", 200)

    request = {"model": "m", "dataset_id": dataset}
    batch = f"/v1/batch-predictions/{call('POST', '/v1/batch-predictions', 202, json=request)['id']}"
    call("GET", f"{batch}/result", 409)
    in_process.work(ctx)
    for read in ("/v1/batch-predictions", batch):
        call("GET", read, 200)
    assert service.send("GET", f"{batch}/result").status_code == 200
    call("POST", f"{batch}/cancel", 202)

    router = {"model": "m", "fallback": "desk", "shadow": 1, "keep_messages": "all"}
    call("PUT", "/v1/routers/r", 200, json=router)
    decision = call("POST", "/v1/routers/r/messages", 200, content=MESSAGE, headers=MAIL)["decision_id"]
    call("POST", "/v1/routers/r/message-parts", 200, json={"email": {"text": "my invoice"}})
    call("GET", "/v1/routers/r/thresholds", 200)
    for read in ("/v1/routers", "/v1/routers/r", "/v1/routers/r/decisions", f"/v1/decisions/{decision}"):
        call("GET", read, 200)
    call("PUT", f"/v1/decisions/{decision}/reservation", 200)
    call("PUT", f"/v1/decisions/{decision}/review", 200, json={"note": "?"})
    call("DELETE", f"/v1/decisions/{decision}/reservation", 204)
    call("POST", f"/v1/decisions/{decision}/feedback", 200, json={"labels": ["billing"]})
    of_feedback = {"name": "corrections", "from_feedback": {"router": "r"}}
    corrections = call("POST", "/v1/datasets", 201, json=of_feedback)["id"]
    in_process.work(ctx)
    assert call("GET", f"/v1/datasets/{corrections}", 200)["n_examples"] == 1
    for by in ("department", "week", "version"):
        call("GET", f"/v1/routers/r/report?by={by}", 200)
    assert service.send("GET", f"/v1/decisions/{decision}/message").content == MESSAGE
    call("DELETE", f"/v1/decisions/{decision}", 204)
    call("DELETE", "/v1/routers/r", 204)

    key = call("POST", "/v1/api-keys", 201, json={"name": "k", "scopes": ["read"]})["id"]
    call("GET", "/v1/api-keys", 200)
    call("POST", f"/v1/api-keys/{key}/rotate", 200, json={})
    call("DELETE", f"/v1/api-keys/{key}", 204)

    user = f"/v1/users/{new_user(ctx.db)}"
    for read in ("/v1/users", user):
        call("GET", read, 200)
    call("PATCH", user, 200, json={"role": "editor"})
    call("DELETE", user, 204)

    hook = {"url": "https://hooks.invalid/covey", "events": ["job.ended"]}
    webhook = f"/v1/webhooks/{call('POST', '/v1/webhooks', 201, json=hook)['id']}"
    delivery = call("POST", f"{webhook}/test", 202)
    call("POST", f"{webhook}/deliveries/{delivery['id']}/redeliver", 202)
    call("POST", f"{webhook}/rotate", 200, json={})
    for read in ("/v1/webhooks", webhook, f"{webhook}/deliveries"):
        call("GET", read, 200)
    call("DELETE", webhook, 204)

    call("PUT", "/v1/models/m/aliases/live", 200, json={"version": 2})
    call("DELETE", "/v1/models/m/versions/1", 204)
    call("DELETE", "/v1/models/copy", 204)
    call("DELETE", path, 204)
    call("GET", "/v1/learners", 200)
    call("GET", "/health/live", 200)
    service.send("GET", "/health/ready")
    service.send("GET", "/metrics")
    retention.apply_retention(ctx)


OCTETS = {"Content-Type": "application/octet-stream"}
MAIL = {"Content-Type": "message/rfc822"}


def test_no_operation_and_no_job_calls_the_storage_while_it_holds_a_connection(service: InProcessApi) -> None:
    held = HeldConnections(service.ctx.db.engine)
    wrong: list[str] = []
    kinds: set[str] = set()
    run_job = in_process.run_job

    def run_and_note(*arguments: object) -> str:
        kind: str = run_job(*arguments)  # type: ignore[arg-type]
        kinds.add(kind)
        return kind

    def check(call: str) -> None:
        if held.any_in_this_thread():
            wrong.append(call)

    service.storage.before = check
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_process, "run_job", run_and_note)
        use_everything(service)
    assert wrong == []
    assert kinds == set(WORK)
    assert service.operations == set(service.documented), "every operation was called"
    assert service.storage.calls == {"create", "put", "local", "delete", "files", "temporary_file", "check"}


def test_a_call_to_the_storage_or_the_broker_in_a_session_is_refused(
    database: Database, tmp_path: Path
) -> None:
    storage = LocalStorage(tmp_path / "storage")
    storage.initialize()
    calls: dict[str, Callable[[], object]] = {
        "local": lambda: storage.local("uploads/x"),
        "size": lambda: storage.size("uploads/x"),
        "delete": lambda: storage.delete("uploads/x"),
        "files": lambda: list(storage.files("uploads")),
        "all_files": lambda: list(storage.all_files()),
        "create": lambda: storage.create("uploads/x").__enter__(),
        "put": lambda: storage.put("uploads/x", tmp_path / "x"),
        "temporary_file": lambda: storage.temporary_file().__enter__(),
        "check": storage.check,
    }
    for call in calls.values():
        with database.read(), pytest.raises(SessionOpenError):
            call()
        with pytest.raises(SessionOpenError), database.write():
            call()
    refuse_if_any("nothing is open any more")
    storage.check()
