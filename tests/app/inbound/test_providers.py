"""E-mail providers deliver messages over the API: signatures, repetitions, limits."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes

import httpx
import providers
import pytest
from in_process_api import InProcessApi, api
from providers import Request
from pydantic import SecretStr
from structlog.testing import capture_logs

from app.api.request_head import RequestHead
from app.errors import NotFound, ServiceError
from app.inbound.providers.delivery import Delivery
from app.inbound.providers.table import PROVIDERS
from app.settings import split

MESSAGE = (
    b"From: ann@example.com\r\nTo: desk@example.org\r\nMessage-ID: <%d@example.com>\r\n"
    b"Subject: =?utf-8?q?Rechnung_=C3=BC?=\r\nMIME-Version: 1.0\r\n"
    b'Content-Type: multipart/alternative; boundary="inner"\r\n\r\n'
    b"--inner\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nMy invoice is wrong: \xc3\xbc\r\n"
    b"--inner\r\nContent-Type: text/html\r\n\r\n<p>My invoice is wrong</p>\r\n--inner--\r\n"
)

SIGNED: dict[str, Callable[..., Request]] = {
    "sendgrid": providers.sendgrid,
    "mailgun": providers.mailgun,
    "ses": providers.ses,
    "ses, SHA-1": partial(providers.ses, version="1"),
    "ses, base64": partial(providers.ses, encoding="BASE64"),
}
ALL: dict[str, Callable[..., Request]] = {**SIGNED, "postmark": providers.postmark}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[InProcessApi]:
    folder = tmp_path_factory.mktemp("providers")
    options = {
        **providers.settings(folder),
        "max_body_bytes": 100_000,
        "max_message_bytes": 1_000_000,
    }
    with pytest.MonkeyPatch.context() as patch, api(folder, migrated_sqlite, patch, **options) as service:
        service.train(service.dataset())
        service.call("PUT", "/v1/routers/desk", 200, json={"model": "m", "fallback": "front"})
        yield service


SIGNATURE = "X-Twilio-Email-Event-Webhook-Signature"

numbers = iter(range(1000, 10**6))


def new_message() -> bytes:
    return MESSAGE % next(numbers)


def post(service: InProcessApi, request: Request, router: str = "desk") -> httpx.Response:
    """Send a request without an API key."""
    headers = {"Authorization": "", **request.headers}
    return service.send("POST", request.path(router), headers=headers, content=request.body)


def deliver(service: InProcessApi, request: Request, status: int = 200, router: str = "desk") -> Any:
    """Send a request without an API key, and return the body of the response."""
    response = post(service, request, router)
    assert response.status_code == status, response.text
    return response.json()


def decision_of(service: InProcessApi, receipt: dict[str, Any]) -> Any:
    return service.call("GET", f"/v1/decisions/{receipt['decision_id']}", 200)


def test_every_provider_has_requests_here() -> None:
    assert {provider.path for provider in PROVIDERS} == {send(b"x").provider for send in ALL.values()}


@pytest.mark.parametrize("provider", ALL)
def test_a_delivery_is_routed_like_the_raw_message(service: InProcessApi, provider: str) -> None:
    message = new_message()
    receipt = deliver(service, ALL[provider](message))
    assert receipt.keys() == {"decision_id", "disposition"}
    decision = decision_of(service, receipt)
    assert decision["message"]["subject"] == "Rechnung ü"
    assert decision["message"]["defects"] == []
    mail = {"Content-Type": "message/rfc822"}
    same = service.call("POST", "/v1/routers/desk/messages", 200, content=message, headers=mail)
    assert same["decision_id"] == receipt["decision_id"], "the bytes that arrived are those of the message"


@pytest.mark.parametrize("provider", [name for name in SIGNED if name != "mailgun"])
def test_a_changed_byte_is_refused(service: InProcessApi, provider: str) -> None:
    request = SIGNED[provider](new_message())
    place = request.body.index(b"example.com") if b"64" not in provider.encode() else len(request.body) // 2
    changed = request.body[:place] + bytes([request.body[place] ^ 1]) + request.body[place + 1 :]
    assert deliver(service, request.with_body(changed), 403)["code"] == "invalid_signature"
    deliver(service, request)


@pytest.mark.parametrize("provider", SIGNED)
@pytest.mark.parametrize("age", [86400 + 60, -600])
def test_a_signature_that_is_too_old_or_of_the_future_is_refused(
    service: InProcessApi, provider: str, age: float
) -> None:
    assert deliver(service, SIGNED[provider](new_message(), age=age), 403)["code"] == "expired_signature"
    deliver(service, SIGNED[provider](new_message(), age=80_000))


@pytest.mark.parametrize("provider", ALL)
def test_a_repeated_delivery_gets_the_first_decision(service: InProcessApi, provider: str) -> None:
    # Also if the decision was deleted meanwhile: the provider's id is enough.
    request = ALL[provider](new_message())
    first = deliver(service, request)
    service.call("DELETE", f"/v1/decisions/{first['decision_id']}", 204)
    assert deliver(service, request) == first


@pytest.mark.parametrize("provider", ["ses", "postmark"])
def test_the_id_of_the_provider_identifies_a_delivery(service: InProcessApi, provider: str) -> None:
    ids: dict[str, Callable[[bytes, str], Request]] = {
        "ses": lambda message, id_: providers.ses(message, MessageId=id_),
        "postmark": providers.postmark,
    }
    send = ids[provider]
    first = deliver(service, send(new_message(), f"{provider}-one"))
    assert deliver(service, send(new_message(), f"{provider}-one")) == first
    assert deliver(service, send(new_message(), f"{provider}-two")) != first
    service.call("PUT", "/v1/routers/other", 200, json={"model": "m", "fallback": "front"})
    assert deliver(service, send(new_message(), f"{provider}-one"), router="other") != first


def test_a_token_of_mailgun_is_valid_for_one_message_and_one_router(service: InProcessApi) -> None:
    # The signature of Mailgun does not cover the message.
    message = new_message()
    request = providers.mailgun(message, token=b"once")
    first = deliver(service, request)
    forged = providers.mailgun(new_message(), token=b"once")
    assert deliver(service, forged, 403)["code"] == "invalid_signature"
    service.call("PUT", "/v1/routers/other", 200, json={"model": "m", "fallback": "front"})
    assert deliver(service, request, 403, router="other")["code"] == "invalid_signature"
    assert deliver(service, request) == first


@pytest.mark.parametrize(
    "request_",
    [
        Request("sendgrid", providers.FORM, b""),
        providers.sendgrid(b"x").with_body(b""),
        Request("sendgrid", {**providers.sendgrid(b"x").headers, SIGNATURE: "@"}, b""),
        Request("sendgrid", {**providers.FORM, SIGNATURE: "x", SIGNATURE[:-9] + "Timestamp": "nan"}, b""),
        providers.mailgun(b"x", key="another"),
        providers.mailgun(b"x", signature=b"\xff"),
        providers.mailgun(b"x", timestamp=b""),
        providers.ses(b"x", Type="Other"),
        providers.ses(b"x", TopicArn="arn:aws:sns:eu-west-1:999999999999:of-somebody-else"),
        providers.ses(b"x", Timestamp="yesterday"),
        providers.ses(b"x", version="3"),
        providers.ses(b"x").with_body(
            providers.ses(b"x").body.replace(b'"Signature": "', b'"Signature": "@')
        ),
    ],
    ids=lambda request: request.provider,
)
def test_a_wrong_signature_is_refused(service: InProcessApi, request_: Request) -> None:
    assert deliver(service, request_, 403)["code"] == "invalid_signature"


@pytest.mark.parametrize("credentials", ["covey:pass:word2", "covey:", "", "\xff:\xff"])
def test_wrong_credentials_are_refused(service: InProcessApi, credentials: str) -> None:
    problem = deliver(service, providers.postmark(new_message(), credentials=credentials), 401)
    assert problem["code"] == "unauthorized"


@pytest.mark.parametrize(
    ("request_", "status", "detail"),
    [
        (providers.mailgun(b"x").with_body(b"--x"), 400, "not a form"),
        (Request("ses", {"Content-Type": "text/plain"}, b"hello"), 400, "not JSON"),
        (Request("ses", {"Content-Type": "text/plain"}, b"[" * 100_000), 400, "not JSON"),
        (Request("ses", {"Content-Type": "text/plain"}, b'{"Type": 5}'), 400, "not JSON"),
        # After a request is verified, the provider must keep the message: SendGrid drops it after any 4xx.
        (providers.sign_sendgrid(b"no form"), 503, "not a form"),
        (providers.sign_sendgrid(providers.multipart({"text": b"parsed"})), 503, "POST the raw"),
        (providers.mailgun(b"x", without="body-mime"), 503, "must end with /mime"),
        (Request("postmark", providers.postmark(b"x").headers, b"[]"), 503, "not an object"),
        (Request("postmark", providers.postmark(b"x").headers, b"[" * 100_000), 503, "not JSON"),
        (Request("postmark", providers.postmark(b"x").headers, b'{"RawEmail": 5}'), 503, "raw email content"),
        (providers.ses(b"x", Message='{"notificationType": "Received"}'), 503, "SNS action"),
        (providers.ses(b"x", encoding="BASE64", content="no base64!"), 503, "not base64"),
        # The option of the subscription is the reason, and no signature can be verified.
        (
            Request("ses", {"Content-Type": "text/plain", "x-amz-sns-rawdelivery": "true"}, b"{}"),
            503,
            "turn off raw message delivery",
        ),
    ],
)
def test_a_body_of_another_kind_gets_a_clear_error(
    service: InProcessApi, request_: Request, status: int, detail: str
) -> None:
    problem = deliver(service, request_, status)
    assert detail in problem["detail"]
    assert problem["code"] == ("malformed_request" if status == 400 else "not_ready")


@pytest.mark.parametrize("provider", ["sendgrid", "mailgun/mime", "postmark", "ses"])
@pytest.mark.parametrize("content_type", ["message/rfc822", "application/octet-stream", ""])
def test_another_content_type_is_unsupported(service: InProcessApi, provider: str, content_type: str) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    problem = deliver(service, Request(provider, headers, b"x"), 415)
    assert problem["code"] == "unsupported_media_type"


def test_a_form_without_parts_is_read_from_urlencoded_bytes(service: InProcessApi) -> None:
    message = new_message() + b"\xff"
    request = providers.mailgun(message, token=b"urlencoded")
    form = dict(
        part.split(b'name="')[1].rstrip(b"\r\n").split(b'"\r\n\r\n', 1)
        for part in request.body.split(b"--" + providers.BOUNDARY.encode())[1:-1]
    )
    form[b"body-mime"] = message
    body = b"&".join(b"%b=%b" % (name, quote_from_bytes(value).encode()) for name, value in form.items())
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    receipt = deliver(service, Request(request.provider, headers, body))
    assert decision_of(service, receipt)["message"]["subject"] == "Rechnung ü"


@pytest.mark.parametrize("provider", ["sendgrid", "mailgun", "postmark"])
def test_a_message_that_is_too_long_is_routed_by_its_first_bytes(
    service: InProcessApi, provider: str
) -> None:
    long = new_message() + b"more words\r\n" * 100_000
    receipt = deliver(service, ALL[provider](long))
    assert decision_of(service, receipt)["message"]["truncated"] is True


@pytest.mark.parametrize("provider", ["sendgrid", "mailgun", "postmark", "ses"])
def test_a_huge_body_is_refused_before_it_is_verified(service: InProcessApi, provider: str) -> None:
    assert deliver(service, ALL[provider](b"x" * 4_000_001), 413)["code"] == "too_large"


@pytest.mark.parametrize(
    "body",
    [
        providers.multipart({str(i): b"" for i in range(501)}),
        b"--xYzZY\r\n" + b"a: b\r\n" * 100,
        providers.multipart({"email": b"x"})[:-4],
        b"\r\n--xYzZ" * 300_000,
    ],
    ids=["fields", "headers", "end", "almost boundaries"],
)
def test_a_malicious_form_is_refused(service: InProcessApi, body: bytes) -> None:
    assert "not a form" in deliver(service, providers.sign_sendgrid(body), 503)["detail"]
    assert "not a form" in deliver(service, providers.mailgun(b"x").with_body(body), 400)["detail"]


@pytest.mark.parametrize(
    ("provider", "content_type", "body"),
    [
        ("mailgun", "application/x-www-form-urlencoded", b"body-mime=" + b"%41" * 2**20),
        ("mailgun", "application/x-www-form-urlencoded", b"&" * 2**20),
        ("mailgun", "multipart/form-data; boundary=b", b"--b\r\n\r\n" + b"\r\n--a" * 2**19 + b"\r\n--b--"),
        ("ses", "text/plain", b'{"Type": "Notification", "a": [' + b"[]," * 2**19 + b"0]}"),
    ],
)
def test_a_body_that_is_not_verified_costs_no_memory_beyond_its_own(
    service: InProcessApi, provider: str, content_type: str, body: bytes
) -> None:
    (chosen,) = [one for one in PROVIDERS if one.name == provider]
    head = RequestHead({"query_string": b"", "headers": [(b"content-type", content_type.encode())]})
    verify = chosen.check_head(service.ctx.settings, head, "desk")
    tracemalloc.start()
    try:
        with pytest.raises(ServiceError):
            verify(body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(body) / 4


def test_messages_with_one_token_of_mailgun_at_the_same_time_get_one_decision(service: InProcessApi) -> None:
    service.call("PUT", "/v1/routers/tokens", 200, json={"model": "m", "fallback": "front"})
    requests = [providers.mailgun(new_message(), token=b"at once") for _ in range(8)]
    with ThreadPoolExecutor(len(requests)) as threads:
        responses = list(threads.map(partial(post, service, router="tokens"), requests))
    assert sorted(response.status_code for response in responses) == [200] + [403] * 7
    assert len(service.call("GET", "/v1/routers/tokens/decisions", 200)["items"]) == 1


def test_a_token_whose_message_was_not_routed_stays_valid_for_this_message(service: InProcessApi) -> None:
    request = providers.mailgun(new_message(), token=b"kept")
    deliver(service, request, 503, router="later")
    deliver(service, providers.mailgun(new_message(), token=b"kept"), 403, router="later")
    service.call("PUT", "/v1/routers/later", 200, json={"model": "m", "fallback": "front"})
    assert deliver(service, request, router="later") == deliver(service, request, router="later")


def test_parts_that_look_like_boundaries_belong_to_the_message(service: InProcessApi) -> None:
    message = new_message() + b"\r\n--xYzZ\r\n\r--xYzZY\n" + b"\r" * 1000 + b"\r\n-"
    receipt = deliver(service, providers.sendgrid(message))
    mail = {"Content-Type": "message/rfc822"}
    same = service.call("POST", "/v1/routers/desk/messages", 200, content=message, headers=mail)
    assert same["decision_id"] == receipt["decision_id"]


def test_a_topic_is_confirmed_by_the_operator(service: InProcessApi) -> None:
    url = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=t"
    fields = {"Type": "SubscriptionConfirmation", "Message": "Confirm", "SubscribeURL": url, "Token": "t"}
    with capture_logs() as logs:
        assert deliver(service, providers.sns(fields)) == {"confirm_url": url}
    assert [(log["event"], log["url"]) for log in logs if "url" in log] == [
        ("inbound.confirm_subscription", url)
    ]
    deliver(service, providers.sns({**fields, "TopicArn": "arn:of:somebody"}), 403)


@pytest.mark.parametrize(
    "fields",
    [
        {"Type": "UnsubscribeConfirmation", "Message": "x", "SubscribeURL": "https://x", "Token": "t"},
        {"Type": "Notification", "Message": "Successfully validated SNS topic", "Subject": "Test"},
        {"Type": "Notification", "Message": '{"notificationType": "Bounce"}'},
    ],
)
def test_a_notification_without_a_message_is_accepted(service: InProcessApi, fields: dict[str, str]) -> None:
    assert deliver(service, providers.sns(fields)) == {}


def test_the_router_decides_about_explanations_and_kept_messages(service: InProcessApi) -> None:
    config = {"model": "m", "fallback": "front", "explain": True, "keep_messages": "all"}
    service.call("PUT", "/v1/routers/keeping", 200, json=config)
    decision = decision_of(service, deliver(service, providers.ses(new_message()), router="keeping"))
    assert decision["explanation"]
    assert decision["message_kept"] is True


def test_a_router_that_does_not_exist_lets_the_provider_try_again(service: InProcessApi) -> None:
    request = providers.sendgrid(new_message())
    response = service.send("POST", request.path("gone"), headers=dict(request.headers), content=request.body)
    assert (response.status_code, response.json()["code"]) == (503, "not_ready")
    assert response.headers["Retry-After"] == "60"
    service.call("PUT", "/v1/routers/gone", 200, json={"model": "m", "fallback": "front"})
    deliver(service, request, router="gone")


def test_certificates_that_cannot_be_read_let_the_provider_try_again(service: InProcessApi) -> None:
    file = service.ctx.settings.inbound_ses_certificates
    assert file is not None
    content = file.read_bytes()
    file.write_bytes(b"no certificate")
    problem = deliver(service, providers.ses(new_message()), 503)
    assert "COVEY_INBOUND_SES_CERTIFICATES" in problem["detail"]
    file.write_bytes(content)
    deliver(service, providers.ses(new_message()))


@pytest.mark.parametrize("provider", ALL)
def test_without_a_secret_a_provider_cannot_deliver(
    tmp_path: Path, migrated_sqlite: Path, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    with api(tmp_path, migrated_sqlite, monkeypatch) as service:
        problem = deliver(service, ALL[provider](new_message()), 404)
    assert problem["code"] == "provider_not_configured"
    assert "COVEY_INBOUND_" in problem["detail"]


@pytest.mark.parametrize("provider", ["sendgrid", "mailgun", "postmark", "ses"])
def test_a_delivery_for_a_router_cannot_be_replayed_to_another(service: InProcessApi, provider: str) -> None:
    pattern = f"inbound_{provider}_(keys|credentials|topics)"
    (name,) = [name for name in type(service.ctx.settings).model_fields if re.fullmatch(pattern, name)]
    secrets = getattr(service.ctx.settings, name)
    bound = f"{split(secrets)[-1]} desk front"
    hidden = SecretStr(bound) if isinstance(secrets, SecretStr) else bound
    settings = service.ctx.settings.model_copy(update={name: hidden})
    (chosen,) = [one for one in PROVIDERS if one.name == provider]
    message = new_message()
    request = ALL[provider](message)
    headers = [(key.lower().encode(), value.encode()) for key, value in request.headers.items()]
    head = RequestHead({"query_string": b"", "headers": headers})
    delivery = chosen.check_head(settings, head, "front")(request.body)()
    assert isinstance(delivery, Delivery)
    assert delivery.message == message
    with pytest.raises(NotFound):
        chosen.check_head(settings, head, "other")


def test_the_signature_opens_no_other_operation(service: InProcessApi) -> None:
    request = providers.postmark(new_message())
    for method, path in (("POST", "/v1/routers/desk/messages"), ("GET", "/v1/routers/desk")):
        response = service.send(method, path, headers=dict(request.headers), content=request.body)
        assert response.status_code == 401, path
    assert service.send("GET", request.path(), headers={"Authorization": ""}).status_code == 405
    assert "inbound" not in json.dumps(list(service.documented))
