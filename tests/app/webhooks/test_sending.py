"""Events reach their receivers: signed, at least once, and without delaying each other."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from certificates import write_certificate
from contract import problem_of
from in_process_api import InProcessApi
from pydantic import SecretStr
from standardwebhooks import Webhook, WebhookVerificationError
from waiting import wait_for
from webhook_receiver import Received, Receiver, receiver, sender

from app.context import AppContext
from app.db import tables
from app.webhooks import deliveries as webhook_deliveries
from app.webhooks import sender as webhook_sender
from app.webhooks.deliveries import Attempt


@pytest.fixture
def target() -> Iterator[Receiver]:
    with receiver() as state:
        yield state


def create(service: InProcessApi, url: str, *events: str, **fields: Any) -> Any:
    body = {"url": url, "events": events or ["job.ended"], **fields}
    return service.call("POST", "/v1/webhooks", 201, json=body)


def deliveries(service: InProcessApi, webhook: Any) -> list[dict[str, Any]]:
    page = service.call("GET", f"/v1/webhooks/{webhook['id']}/deliveries", 200)
    items: list[dict[str, Any]] = page["items"]
    return items


def wait_until_attempted(service: InProcessApi, webhook: Any, delivery_id: str) -> dict[str, Any]:
    """Wait until an attempt to send an event has ended, and return the delivery."""

    def attempted() -> dict[str, Any] | None:
        (item,) = [item for item in deliveries(service, webhook) if item["id"] == delivery_id]
        return item if "error" in item or item["state"] == "delivered" else None

    return wait_for(attempted, what="an attempt to send an event")


def send_test(service: InProcessApi, webhook: Any, ctx: AppContext | None = None) -> dict[str, Any]:
    """Send a test, and return its delivery."""
    queued = service.call("POST", f"/v1/webhooks/{webhook['id']}/test", 202)
    with sender(ctx or service.ctx):
        return wait_until_attempted(service, webhook, queued["id"])


def verified(secret: str, request: Received) -> Any:
    """Return the content of a request if its signature is right."""
    return Webhook(secret).verify(request.body, request.headers)


def test_a_training_sends_that_it_ended_and_that_its_version_was_promoted(
    service: InProcessApi, target: Receiver
) -> None:
    webhook = create(service, target.url, "job.ended", "version.promoted", model="m")
    other = create(service, target.url, "job.ended", model="other")
    job = service.train(service.dataset())
    with sender(service.ctx):
        for item in deliveries(service, webhook):
            wait_until_attempted(service, webhook, item["id"])
    content = {json.loads(request.body)["type"]: request for request in target.requests}
    ended = verified(webhook["secret"], content["job.ended"])
    assert ended["data"] == {
        "job_id": job["id"],
        "kind": "train",
        "state": "succeeded",
        "model": "m",
        "version": 1,
    }
    promoted = verified(webhook["secret"], content["version.promoted"])
    assert promoted["data"] == {"model": "m", "alias": "live", "version": 1, "reason": "training"}
    assert len(target.requests) == 2
    assert deliveries(service, other) == []
    for item in deliveries(service, webhook):
        assert (item["state"], item["attempts"], item["response_status"]) == ("delivered", 1, 204)
        assert content[item["event"]].headers["webhook-id"] == item["id"]
        assert json.loads(content[item["event"]].body)["timestamp"] == item["created_at"]


def test_the_headers_are_those_of_the_example_in_the_specification() -> None:
    """So that the library of the service need not be the one that the other tests verify with."""
    at = datetime.fromtimestamp(1_614_265_330.9, UTC)
    attempt = Attempt(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "wh_1",
        "https://receiver.test",
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",),
        "webhook.test",
        {},
        at,
    )
    assert webhook_sender.signed_headers(attempt, at, b'{"test": 2432232314}') == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_a_request_that_others_have_changed_does_not_verify(service: InProcessApi, target: Receiver) -> None:
    webhook = create(service, target.url)
    send_test(service, webhook)
    (request,) = target.requests
    assert verified(webhook["secret"], request)["type"] == "webhook.test"
    changed = Received(request.path, request.headers, request.body.replace(b"webhook.test", b"webhook.tset"))
    with pytest.raises(WebhookVerificationError):
        verified(webhook["secret"], changed)


def test_both_secrets_sign_during_a_rotation(service: InProcessApi, target: Receiver) -> None:
    old = create(service, target.url)
    path = f"/v1/webhooks/{old['id']}/rotate"
    new = service.call("POST", path, 200, json={"grace_seconds": 3600})
    send_test(service, old)
    for secret in (old["secret"], new["secret"]):
        assert verified(secret, target.requests[-1])
    service.call("POST", path, 200, json={"grace_seconds": 0})
    send_test(service, old)
    with pytest.raises(WebhookVerificationError):
        verified(new["secret"], target.requests[-1])


def test_a_failed_event_is_sent_again_with_the_same_id(
    service: InProcessApi, target: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_deliveries, "RETRY_SECONDS", (0.0,) * 10)
    target.respond = lambda _: (500 if len(target.requests) < 3 else 200, {})
    webhook = create(service, target.url)
    service.dataset()
    with sender(service.ctx):
        wait_for(lambda: len(target.requests) >= 3 or None, what="three attempts")
        wait_for(lambda: deliveries(service, webhook)[0]["state"] == "delivered" or None, what="a delivery")
    (item,) = deliveries(service, webhook)
    assert item["attempts"] == 3
    assert "error" not in item
    assert {request.headers["webhook-id"] for request in target.requests} == {item["id"]}
    for request in target.requests:
        verified(webhook["secret"], request)


def test_an_event_is_sent_again_on_request_and_the_response_is_shown(
    service: InProcessApi, target: Receiver
) -> None:
    target.respond = lambda _: (500 if len(target.requests) == 1 else 200, {})
    target.body = b"the queue \x00 is full: " + b"\xfc" * 100_000
    webhook = create(service, target.url)
    failed = send_test(service, webhook)
    assert (failed["state"], failed["response_status"]) == ("failed", 500)
    assert failed["response_body"].startswith("the queue   is full: ")
    assert len(failed["response_body"]) == 2_000
    path = f"/v1/webhooks/{webhook['id']}/deliveries"
    for _ in range(2):  # also if the receiver has accepted it
        target.body = b""
        again = service.call("POST", f"{path}/{failed['id']}/redeliver", 202)
        assert (again["id"], again["state"], again["attempts"]) == (failed["id"], "pending", 0)
        n = len(target.requests)
        with sender(service.ctx):
            wait_for(lambda n=n: len(target.requests) > n or None, what="the event")  # type: ignore[misc]
            done = wait_for(lambda: _delivered(service, webhook), what="its outcome")
    assert {request.headers["webhook-id"] for request in target.requests} == {failed["id"]}
    assert "response_body" not in done
    problem_of(service.send("POST", f"{path}/msg_unknown/redeliver"), 404, "not_found")
    other = create(service, target.url)
    url = f"/v1/webhooks/{other['id']}/deliveries/{failed['id']}/redeliver"
    problem_of(service.send("POST", url), 404, "not_found")
    with service.ctx.db.write() as tx:
        tx.session.get_one(tables.Webhook, webhook["id"]).disabled_at = tx.now
    problem_of(service.send("POST", f"{path}/{failed['id']}/redeliver"), 409, "webhook_disabled")


def _delivered(service: InProcessApi, webhook: Any) -> dict[str, Any] | None:
    (item,) = deliveries(service, webhook)
    return item if item["state"] == "delivered" else None


def test_the_status_counts_although_the_body_does_not_end(
    service: InProcessApi, target: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_sender, "BODY_SECONDS", 0.05)
    target.respond = lambda _: (200, {"Content-Length": "1000"})
    target.body = b"half"
    done = send_test(service, create(service, target.url))
    assert (done["state"], done["response_body"]) == ("delivered", "half")


def test_secrets_are_encrypted_with_the_key_of_kept_messages(
    service: InProcessApi, target: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = create(service, target.url)
    assert secret_of(service, plain) == plain["secret"]
    old = with_keys(service.ctx, 1)
    monkeypatch.setattr(service.app.state, "context", old)
    webhook = create(service, target.url)
    assert secret_of(service, webhook).startswith("aes:")
    assert webhook["secret"] not in secret_of(service, webhook)
    assert send_test(service, webhook, with_keys(service.ctx, 2, 1))["state"] == "delivered"
    verified(webhook["secret"], target.requests[-1])
    for keys in ([2], []):
        refused = send_test(service, webhook, with_keys(service.ctx, *keys))
        assert (refused["state"], "COVEY_ENCRYPTION_KEY" in refused["error"]) == ("failed", True)
    send_test(service, plain, old)
    verified(plain["secret"], target.requests[-1])
    rotated = service.call("POST", f"/v1/webhooks/{webhook['id']}/rotate", 200, json={"grace_seconds": 60})
    assert send_test(service, webhook, old)["state"] == "delivered"
    for secret in (webhook["secret"], rotated["secret"]):
        verified(secret, target.requests[-1])


def with_keys(ctx: AppContext, *keys: int) -> AppContext:
    text = ",".join(base64.b64encode(bytes([key]) * 32).decode() for key in keys)
    return replace(ctx, settings=ctx.settings.model_copy(update={"encryption_key": SecretStr(text)}))


def secret_of(service: InProcessApi, webhook: Any) -> str:
    with service.ctx.db.read() as session:
        return session.get_one(tables.Webhook, webhook["id"]).secret


def test_a_receiver_that_does_not_respond_delays_no_other(service: InProcessApi, target: Receiver) -> None:
    release = threading.Event()
    with receiver() as stuck:
        stuck.respond = lambda _: ((release.wait() and 204) or 204, {})
        slow = create(service, stuck.url)
        for _ in range(webhook_deliveries.MAX_AT_ONCE + 2):
            service.call("POST", f"/v1/webhooks/{slow['id']}/test", 202)
        with sender(service.ctx):
            wait_for(
                lambda: len(stuck.requests) == webhook_deliveries.MAX_AT_ONCE or None,
                what="attempts that hang",
            )
            fast = create(service, target.url)
            service.call("POST", f"/v1/webhooks/{fast['id']}/test", 202)
            wait_for(lambda: target.requests or None, what="the other receiver")
            assert len(stuck.requests) == webhook_deliveries.MAX_AT_ONCE
            release.set()
            wait_for(
                lambda: len(stuck.requests) == webhook_deliveries.MAX_AT_ONCE + 2 or None,
                what="the other events",
            )


def test_an_attempt_ends_although_the_receiver_sends_a_byte_now_and_then(
    service: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_sender, "ATTEMPT_SECONDS", 0.5)
    stop = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        with connection, suppress(ConnectionError):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not stop.wait(0.05):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip)
        thread.start()
        webhook = create(service, f"http://127.0.0.1:{listener.getsockname()[1]}/")
        item = send_test(service, webhook)
        stop.set()
        thread.join()
    assert item["state"] == "failed"
    assert "no response" in item["error"]


def test_a_redirect_is_not_followed(service: InProcessApi, target: Receiver) -> None:
    target.respond = lambda _: (307, {"Location": "/elsewhere"})
    item = send_test(service, create(service, target.url))
    assert [request.path for request in target.requests] == ["/hook"]
    assert "redirects are not followed" in item["error"]


def test_a_name_that_resolves_to_a_private_address_is_refused(
    service: InProcessApi, monkeypatch: pytest.MonkeyPatch, target: Receiver
) -> None:
    settings = service.ctx.settings.model_copy(update={"webhooks_allow_private": False})
    monkeypatch.setattr(webhook_sender, "_addresses", lambda _: ["93.184.215.14", "127.0.0.1"])
    webhook = create(service, f"http://receiver.example.org:{target.port}/")
    item = send_test(service, webhook, replace(service.ctx, settings=settings))
    assert target.requests == []
    assert "receiver.example.org has the address 127.0.0.1" in item["error"]


def test_the_connection_goes_to_the_address_that_was_checked(
    service: InProcessApi, monkeypatch: pytest.MonkeyPatch, target: Receiver
) -> None:
    resolved: list[str] = []

    def resolve(host: str) -> list[str]:
        resolved.append(host)
        return ["127.0.0.1"]

    monkeypatch.setattr(webhook_sender, "_addresses", resolve)
    # No resolver knows this name, so a second resolution would fail.
    item = send_test(service, create(service, f"http://receiver.invalid:{target.port}/a?b=c"))
    assert item["state"] == "delivered"
    assert resolved == ["receiver.invalid"]
    assert target.requests[0].path == "/a?b=c"
    assert target.requests[0].headers["host"] == f"receiver.invalid:{target.port}"


def test_an_unreachable_address_is_skipped_if_the_name_has_others(
    service: InProcessApi, monkeypatch: pytest.MonkeyPatch, target: Receiver
) -> None:
    monkeypatch.setattr(webhook_sender, "_addresses", lambda _: ["::1", "127.0.0.1"])
    item = send_test(service, create(service, f"http://receiver.invalid:{target.port}/"))
    assert item["state"] == "delivered"


def test_a_name_that_cannot_be_resolved_is_an_error(
    service: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_host: str) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(webhook_sender, "_addresses", fail)
    item = send_test(service, create(service, "https://receiver.invalid/"))
    assert item["error"] == "the name receiver.invalid cannot be resolved"


def test_every_exception_is_an_outcome(service: InProcessApi, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_host: str) -> list[str]:
        raise UnicodeError("label empty or too long")

    monkeypatch.setattr(webhook_sender, "_addresses", fail)
    item = send_test(service, create(service, "https://receiver.invalid/"))
    assert item["error"] == "UnicodeError: label empty or too long"


def test_the_certificate_must_have_the_name_of_the_url(
    service: InProcessApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = write_certificate(tmp_path, "receiver.invalid")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    monkeypatch.setattr(webhook_sender, "_addresses", lambda _: ["127.0.0.1"])

    def wrap(listener: socket.socket) -> ssl.SSLSocket:
        return context.wrap_socket(listener, server_side=True, do_handshake_on_connect=False)

    with receiver(wrap) as target:
        webhook = create(service, f"https://receiver.invalid:{target.port}/")
        assert "CERTIFICATE_VERIFY_FAILED" in send_test(service, webhook)["error"]
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        assert send_test(service, webhook)["state"] == "delivered"
        other = create(service, f"https://other.invalid:{target.port}/")
        assert "CERTIFICATE_VERIFY_FAILED" in send_test(service, other)["error"]
        assert len(target.requests) == 1
