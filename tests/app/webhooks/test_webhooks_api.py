"""Webhooks over HTTP: create, read, rotate, test and delete them."""

from __future__ import annotations

from typing import Any

import pytest
from contract import problem_of
from in_process_api import InProcessApi

from app.webhooks import service as webhooks

URL = "https://hooks.example.org/covey"


def create(service: InProcessApi, **fields: Any) -> Any:
    body = {"url": URL, "events": ["job.ended"], **fields}
    return service.call("POST", "/v1/webhooks", 201, json=body)


def test_only_the_first_response_contains_the_secret(service: InProcessApi) -> None:
    headers = {"Idempotency-Key": "once"}
    body = {"url": URL, "events": ["version.promoted", "job.ended", "job.ended"], "model": "m"}
    response = service.send("POST", "/v1/webhooks", json=body, headers=headers)
    created = response.json()
    assert response.headers["Location"] == f"/v1/webhooks/{created['id']}"
    assert created.pop("secret").startswith("whsec_")
    assert created["events"] == ["job.ended", "version.promoted"]
    assert created["model"] == "m"
    assert service.call("GET", f"/v1/webhooks/{created['id']}", 200) == created
    assert service.call("GET", "/v1/webhooks", 200)["items"] == [created]
    repeated = service.send("POST", "/v1/webhooks", json=body, headers=headers)
    assert problem_of(repeated, 409, "secret_already_shown")
    assert len(service.call("GET", "/v1/webhooks", 200)["items"]) == 1


def test_an_invalid_webhook_is_refused_with_the_place(service: InProcessApi) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"url": "ftp://example.org/"}, "/url"),
        ({"url": "https://user:password@example.org/"}, "/url"),
        ({"url": "https://example.org/#part"}, "/url"),
        ({"url": "https://example.org:99999/"}, "/url"),
        ({"url": "https://exa mple.org/"}, "/url"),
        ({"url": "https:///path"}, "/url"),
        ({"url": "https://[::1/"}, "/url"),
        ({"url": "https://a..example/"}, "/url"),
        ({"url": "https://.example/"}, "/url"),
        ({"url": f"https://{'a' * 64}.example/"}, "/url"),
        ({"url": "https://xn--0.example/"}, "/url"),
        ({"events": []}, "/events"),
        ({"events": ["job.started"]}, "/events/0"),
        ({"router": "desk"}, "/router"),
        ({"secret": "mine"}, "/secret"),
    ]
    for fields, pointer in wrong:
        body = {"url": URL, "events": ["job.ended"], **fields}
        problem = problem_of(service.send("POST", "/v1/webhooks", json=body), 422, "invalid_request")
        assert [error["pointer"] for error in problem["errors"]] == [pointer]


def test_there_is_a_limit_of_webhooks(service: InProcessApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "MAX_WEBHOOKS", 1)
    create(service)
    body = {"url": URL, "events": ["job.ended"]}
    assert problem_of(service.send("POST", "/v1/webhooks", json=body), 409, "too_many_webhooks")


def test_a_deleted_webhook_is_gone_with_its_deliveries(service: InProcessApi) -> None:
    path = f"/v1/webhooks/{create(service)['id']}"
    service.call("POST", f"{path}/test", 202)
    service.call("DELETE", path, 204)
    for method, suffix in (("GET", ""), ("GET", "/deliveries"), ("POST", "/test"), ("DELETE", "")):
        assert problem_of(service.send(method, path + suffix), 404, "not_found")
    assert service.call("GET", "/v1/webhooks", 200)["items"] == []


def test_a_test_that_waits_is_in_the_list_of_deliveries(
    service: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "MAX_WAITING_TESTS", 1)
    path = f"/v1/webhooks/{create(service)['id']}"
    queued = service.call("POST", f"{path}/test", 202)
    assert queued["id"].startswith("msg_")
    assert (queued["event"], queued["state"], queued["attempts"]) == ("webhook.test", "pending", 0)
    assert service.call("GET", f"{path}/deliveries", 200)["items"] == [queued]
    assert problem_of(service.send("POST", f"{path}/test"), 409, "too_many_tests")


def test_webhooks_need_an_administrator(service: InProcessApi) -> None:
    key = service.call("POST", "/v1/api-keys", 201, json={"name": "k", "scopes": ["train", "read"]})
    headers = {"Authorization": f"Bearer {key['secret']}"}
    body = {"url": URL, "events": ["job.ended"]}
    assert service.send("POST", "/v1/webhooks", json=body, headers=headers).status_code == 403
    assert service.send("GET", "/v1/webhooks", headers=headers).status_code == 403
