"""Routers keep messages if they are told to: compressed, encrypted with a key, and for a number of days."""

from __future__ import annotations

import base64
import errno
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import in_process
import pytest
from contract import problem_of
from httpx import Response
from in_process_api import InProcessApi, api
from new_decisions import decision as new_decision
from pydantic import SecretStr
from sqlalchemy import delete, update
from waiting import LIMIT_SECONDS

from app.context import AppContext
from app.db import tables
from app.errors import FileDamaged, NotReady
from app.keys import service as keys
from app.keys.schemas import ApiKeyCreate
from app.maintenance import retention
from app.routing import kept_messages, message_search
from app.routing.kept_messages import MAX_KEPT_BYTES, OriginalMessage, pack, read, read_email, unpack
from app.routing.message_cipher import DamagedError, MessageCipher, UnknownKeyError
from models.mail.email import Email

RAW = b"Message-ID: <%d@example.org>\r\nSubject: Rechnung \xe4\r\n\r\nmy secret invoice is wrong\r\n"
PARTS = {"email": {"subject": "Invoice", "from": "ann@example.org", "text": "my secret invoice"}}


def key(number: int) -> bytes:
    return bytes([number]) * 32


def with_keys(ctx: AppContext, *keys: bytes) -> AppContext:
    secret = SecretStr(",".join(base64.b64encode(key).decode() for key in keys))
    return replace(ctx, settings=ctx.settings.model_copy(update={"encryption_key": secret}))


@pytest.fixture(scope="module")
def service_with_model(
    tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path
) -> Iterator[InProcessApi]:
    """The API with a model."""
    with (
        pytest.MonkeyPatch.context() as patch,
        api(tmp_path_factory.mktemp("kept"), migrated_sqlite, patch) as service,
    ):
        patch.setattr(kept_messages, "WRITE_SECONDS", LIMIT_SECONDS)  # the machine can be slow
        examples = [
            {"text": f"my {word} {n}", "labels": [label]}
            for n in range(4)
            for label, word in (("billing", "invoice"), ("legal", "contract"))
        ]
        service.train(service.dataset(examples))
        yield service


@pytest.fixture
def desk(service_with_model: InProcessApi) -> InProcessApi:
    """The API without decisions, and with a router that keeps all messages for ten days."""
    service = service_with_model
    for path in kept_files(service):
        path.unlink()
    with service.ctx.db.write() as tx:
        tx.session.execute(delete(tables.Decision))
    service.app.state.message_router._archive._slow_until = 0.0
    put_router(service, keep_messages="all", keep_days=10)
    return service


def put_router(service: InProcessApi, **fields: Any) -> Any:
    body = {"model": "m", "fallback": "front@example.org", **fields}
    return service.call("PUT", "/v1/routers/desk", 200, json=body)


def route(service: InProcessApi, number: int = 1, content: bytes | None = None) -> Any:
    headers = {"Content-Type": "message/rfc822"}
    content = RAW % number if content is None else content
    return service.call("POST", "/v1/routers/desk/messages", 200, content=content, headers=headers)


def message_of(service: InProcessApi, decision: Any) -> Response:
    return service.send("GET", f"/v1/decisions/{decision['decision_id']}/message")


def kept_files(service: InProcessApi) -> list[Path]:
    return sorted((service.ctx.settings.data_dir / "storage" / "messages").glob("*/*"))


def row_of(ctx: AppContext, decision: Any) -> tables.Decision:
    with ctx.db.read() as session:
        return session.get_one(tables.Decision, decision["decision_id"])


def test_decisions_are_found_by_subject_sender_and_kept_text(
    desk: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n, (subject, sender, text) in enumerate(
        (
            ("Straße", "Ann@Example.org", "the parcel is late"),
            ("Invoice", "bob@example.org", "the PARCEL came"),
            ("Other", "cleo@example.com", "nothing"),
        )
    ):
        raw = f"Message-ID: <{n}@x>\r\nFrom: {sender}\r\nSubject: {subject}\r\n\r\n{text}\r\n"
        route(desk, content=raw.encode())

    def found(**query: str) -> list[str]:
        """Return the subjects of all pages of one decision each."""
        subjects, params = [], {**query, "limit": "1"}
        while True:
            page = desk.call("GET", "/v1/routers/desk/decisions", 200, params=params)
            subjects += [item["message"]["subject"] for item in page["items"]]
            if "next_cursor" not in page:
                return subjects
            params["cursor"] = page["next_cursor"]

    assert found(subject="STRASSE") == ["Straße"]
    assert found(sender="example.ORG") == ["Invoice", "Straße"]
    assert found(text="parcel") == ["Invoice", "Straße"]
    assert found(text="parcel", sender="ann@") == ["Straße"]
    assert found(text="strasse") == ["Straße"], "the subject belongs to the text"
    monkeypatch.setattr(message_search, "MAX_BYTES", 1)
    assert found(text="parcel", order="oldest_first") == ["Straße", "Invoice"]
    kept_files(desk)[0].unlink()
    kept_files(desk)[-1].write_bytes(b"damaged")
    assert found(text="parcel") == ["Invoice"]
    page = desk.send("GET", "/console/routers/desk/decisions?subject=invoi&text=parcel").text
    assert ("Invoice" in page, "Straße" in page) == (True, False)


def test_only_who_may_read_messages_finds_them_by_their_text(desk: InProcessApi) -> None:
    secret = keys.create(desk.ctx.db, ApiKeyCreate(name="reader", scopes=["read"])).secret
    headers = {"Authorization": f"Bearer {secret}"}
    path = "/v1/routers/desk/decisions"
    problem_of(desk.send("GET", path, params={"text": "a"}, headers=headers), 403, "forbidden")
    assert desk.send("GET", path, params={"subject": "a"}, headers=headers).status_code == 200


def test_a_router_keeps_the_messages_that_its_setting_names(
    service: InProcessApi, desk: InProcessApi
) -> None:
    router = put_router(desk)
    assert (router["keep_messages"], router["keep_days"]) == ("none", 30)
    decision = route(desk, 1)
    assert "message_kept" not in decision
    problem_of(message_of(desk, decision), 404, "message_not_kept")
    put_router(desk, keep_messages="review", review_sample=0)
    assert "message_kept" not in route(desk, 2), "it was routed without a review"
    assert kept_files(desk) == []
    put_router(desk, keep_messages="all")
    decision = route(desk, 3)
    assert decision["message_kept"] is True
    response = message_of(desk, decision)
    assert (response.content, response.headers["content-type"]) == (RAW % 3, "message/rfc822")
    assert response.headers["cache-control"] == "no-store"
    for disposition, sampled, kept in (
        ("routed", False, False),
        ("routed", True, True),
        ("review", False, True),
        ("fallback", False, True),
    ):
        assert kept_messages.is_kept("review", new_decision(disposition=disposition, sampled=sampled)) is kept
    for fields in ({"keep_messages": "some"}, {"keep_days": 0}):
        body = {"model": "m", "fallback": "front@example.org", **fields}
        problem_of(desk.send("PUT", "/v1/routers/desk", json=body), 422, "invalid_request")


def test_a_message_sent_as_json_is_kept(desk: InProcessApi) -> None:
    path = "/v1/routers/desk/message-parts"
    decision = desk.call("POST", path, 200, json=PARTS)
    response = message_of(desk, decision)
    assert (response.json(), response.headers["content-type"]) == (PARTS, "application/json")
    email = read_email(desk.ctx, row_of(desk.ctx, decision))
    assert email is not None
    assert (email.subject, email.from_, email.raw) == ("Invoice", "ann@example.org", None)
    raw = base64.b64encode(RAW % 7).decode()
    decision = desk.call("POST", path, 200, json={"raw_email": raw})
    response = message_of(desk, decision)
    assert (response.content, response.headers["content-type"]) == (RAW % 7, "message/rfc822")
    assert read_email(desk.ctx, row_of(desk.ctx, decision)) == Email(raw=RAW % 7)
    decision = route(desk, 8)
    assert read_email(desk.ctx, row_of(desk.ctx, decision)) == Email(raw=RAW % 8)


def test_the_same_message_is_kept_once(desk: InProcessApi) -> None:
    assert route(desk) == route(desk)
    assert len(kept_files(desk)) == 1


def test_a_message_can_be_read_with_the_scope_train_only(desk: InProcessApi) -> None:
    decision = route(desk)
    body = {"name": "reader", "scopes": ["read", "predict"]}
    secret = desk.call("POST", "/v1/api-keys", 201, json=body)["secret"]
    path = f"/v1/decisions/{decision['decision_id']}/message"
    headers = {"Authorization": f"Bearer {secret}"}
    problem_of(desk.send("GET", path, headers=headers), 403, "forbidden")


@pytest.mark.parametrize("reason", ["full", "slow"])
def test_a_message_is_routed_although_the_storage_fails(
    desk: InProcessApi, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    released = threading.Event()

    def fail(call: str) -> None:
        if call != "create":
            return
        if reason == "full":
            raise OSError(errno.ENOSPC, "full")
        released.wait()

    if reason == "slow":
        monkeypatch.setattr(kept_messages, "WRITE_SECONDS", 0.1)
    desk.storage.before = fail
    decision = route(desk)
    assert decision["disposition"] == "routed"
    assert decision["message_kept"] is False
    unavailable = "the storage is unavailable"
    assert decision["not_kept_reason"] == (unavailable if reason == "full" else "the storage is slow")
    problem_of(message_of(desk, decision), 404, "message_not_kept")
    if reason == "slow":
        calls = len(desk.storage.calls)
        assert route(desk, 2)["not_kept_reason"] == "the storage is slow"
        assert len(desk.storage.calls) == calls, "the next message does not wait again"
    released.set()
    desk.storage.before = lambda _call: None
    monkeypatch.setattr(kept_messages, "WRITE_SECONDS", LIMIT_SECONDS)
    desk.app.state.message_router._archive._slow_until = 0.0
    assert route(desk, 3)["message_kept"] is True


def test_a_message_that_is_too_large_is_not_kept(desk: InProcessApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_messages, "MAX_KEPT_BYTES", 1000)
    decision = route(desk, content=RAW % 1 + b"word " * 200)
    assert decision["not_kept_reason"] == "the message is longer than 1,000 bytes"
    assert kept_files(desk) == []


def test_a_deleted_decision_leaves_no_message(desk: InProcessApi) -> None:
    decision, other = route(desk, 1), route(desk, 2)
    desk.call("DELETE", f"/v1/decisions/{decision['decision_id']}", 204)
    assert [path.stem for path in kept_files(desk)] == [other["decision_id"]]


def test_a_message_is_deleted_after_its_days(desk: InProcessApi) -> None:
    put_router(desk, keep_messages="all", keep_days=0.5)
    short = route(desk, 1)
    put_router(desk, keep_messages="all", keep_days=5)
    long = route(desk, 2)
    until = desk.call("GET", f"/v1/decisions/{short['decision_id']}", 200)["kept_until"]
    left = datetime.fromisoformat(until) - datetime.now(UTC)
    assert timedelta(hours=11) < left <= timedelta(hours=12)
    retention.apply_retention(desk.ctx)
    assert len(kept_files(desk)) == 2
    grace = desk.ctx.settings.model_copy(update={"collect_seconds": 1e-9})
    with desk.ctx.db.write() as tx:
        tx.session.execute(
            update(tables.Decision)
            .where(tables.Decision.id == short["decision_id"])
            .values(kept_until=tx.now - timedelta(seconds=1))
        )
    retention.apply_retention(replace(desk.ctx, settings=grace))
    assert [path.stem for path in kept_files(desk)] == [long["decision_id"]]
    decision = desk.call("GET", f"/v1/decisions/{short['decision_id']}", 200)
    assert decision["message_kept"] is False
    assert "kept_until" not in decision
    problem_of(message_of(desk, short), 404, "message_not_kept")
    assert message_of(desk, long).content == RAW % 2


def test_a_message_whose_decision_expires_is_deleted(desk: InProcessApi) -> None:
    decision = route(desk)
    changes = {"collect_seconds": 1e-9, "keep_decisions_days": 1e-9}
    settings = desk.ctx.settings.model_copy(update=changes)
    retention.apply_retention(replace(desk.ctx, settings=settings))
    assert kept_files(desk) == []
    problem_of(message_of(desk, decision), 404, "not_found")


def files_with(ctx: AppContext, text: bytes) -> list[str]:
    """Return the files of the database that contain a text."""
    return [path.name for path in ctx.settings.data_dir.glob("covey.db*") if text in path.read_bytes()]


@pytest.mark.parametrize("by", ["request", "retention"])
def test_no_file_of_the_database_contains_the_subject_of_a_deleted_decision(
    desk: InProcessApi, by: str
) -> None:
    subject = f"Divorce-of-{by}".encode()
    decision = route(desk, content=b"Subject: %s\r\n\r\nmy contract\r\n" % subject)
    assert files_with(desk.ctx, subject)
    if by == "request":
        desk.call("DELETE", f"/v1/decisions/{decision['decision_id']}", 204)
    else:
        settings = desk.ctx.settings.model_copy(update={"keep_decisions_days": 1e-9})
        retention.apply_retention(replace(desk.ctx, settings=settings))
    assert files_with(desk.ctx, subject) == []


@pytest.fixture
def encrypted(desk: InProcessApi, monkeypatch: pytest.MonkeyPatch) -> InProcessApi:
    """The API with the key 1."""
    archive = desk.app.state.message_router._archive
    monkeypatch.setattr(archive, "_cipher", MessageCipher([key(1)]))
    return desk


def test_a_kept_message_is_encrypted_with_the_first_key(encrypted: InProcessApi) -> None:
    ctx = encrypted.ctx
    decision = route(encrypted)
    row = row_of(ctx, decision)
    (path,) = kept_files(encrypted)
    stored = path.read_bytes()
    with pytest.raises(UnknownKeyError):
        unpack(stored, f"messages/{path.name}", None)
    for known in ([key(1)], [key(2), key(1)]):
        message = read(with_keys(ctx, *known), row)
        assert message == OriginalMessage("message/rfc822", RAW % 1)
    for known in ([], [key(2)]):
        with pytest.raises(NotReady, match="COVEY_ENCRYPTION_KEY") as refused:
            read(with_keys(ctx, *known), row)
        assert refused.value.code == "encryption_key_missing"
    problem_of(message_of(encrypted, decision), 503, "encryption_key_missing")
    # Nobody can exchange or change files unnoticed.
    other = row_of(ctx, route(encrypted, 2))
    assert other.kept_message is not None
    (path.parent / Path(other.kept_message).name).write_bytes(stored)
    path.write_bytes(stored[:-1] + bytes([stored[-1] ^ 1]))
    for damaged in (row, other):
        with pytest.raises(FileDamaged, match="restore the storage"):
            read(with_keys(ctx, key(1)), damaged)


def test_a_message_that_should_be_encrypted_and_is_not_is_refused(encrypted: InProcessApi) -> None:
    row = row_of(encrypted.ctx, route(encrypted))
    (path,) = kept_files(encrypted)
    assert row.kept_message is not None
    forged = OriginalMessage("message/rfc822", b"Subject: forged\r\n\r\nPay at once.")
    path.write_bytes(pack(forged, row.kept_message, None))
    with pytest.raises(FileDamaged):
        read(with_keys(encrypted.ctx, key(1)), row)


def test_a_file_that_becomes_longer_than_any_message_is_damaged() -> None:
    bomb = pack(OriginalMessage("message/rfc822", bytes(MAX_KEPT_BYTES + 1)), "messages/a", None)
    assert len(bomb) < 10_000
    with pytest.raises(DamagedError):
        unpack(bomb, "messages/a", None)
    longest = OriginalMessage("message/rfc822", os.urandom(MAX_KEPT_BYTES))
    cipher = MessageCipher([key(3)])
    assert unpack(pack(longest, "messages/a.aes", cipher), "messages/a.aes", cipher) == longest


def test_messages_from_before_the_first_key_can_be_read(desk: InProcessApi) -> None:
    row = row_of(desk.ctx, route(desk))
    assert read(with_keys(desk.ctx, key(1)), row) == OriginalMessage("message/rfc822", RAW % 1)


def test_a_damaged_file_is_reported(desk: InProcessApi) -> None:
    decision = route(desk)
    (path,) = kept_files(desk)
    path.write_bytes(path.read_bytes()[:-9])
    problem_of(message_of(desk, decision), 503, "file_damaged")
    path.unlink()
    problem_of(message_of(desk, decision), 503, "file_missing")
    content = pack(OriginalMessage("message/rfc822", b"x" * 100), "messages/a", None)
    for damaged in (b"", b"CM1rx", b"CM1rp" + b"\0" * 9, content.replace(b"CM1r", b"CM9r")):
        with pytest.raises(DamagedError):
            unpack(damaged, "messages/a", None)


def test_a_file_contains_the_compressed_message() -> None:
    message = OriginalMessage("application/json", json.dumps({"email": {"text": "word " * 1000}}).encode())
    for cipher in (None, MessageCipher([key(3)])):
        content = pack(message, "messages/a", cipher)
        assert len(content) < 200
        assert unpack(content, "messages/a", cipher) == message


def test_kept_messages_and_their_feedback_make_a_data_set(encrypted: InProcessApi) -> None:
    desk = encrypted
    raw = route(desk, 1)
    parts = desk.call("POST", "/v1/routers/desk/message-parts", 200, json=PARTS)
    route(desk, 2)
    for decision, labels in ((raw, ["legal"]), (parts, ["billing"])):
        path = f"/v1/decisions/{decision['decision_id']}/feedback"
        desk.call("POST", path, 200, json={"labels": labels})
    body = {"name": "corrections", "from_feedback": {"router": "desk"}}
    dataset = desk.call("POST", "/v1/datasets", 201, json=body)["id"]
    in_process.work(with_keys(desk.ctx, key(1)))
    stored = desk.call("GET", f"/v1/datasets/{dataset}", 200)
    assert (stored["state"], stored["n_examples"]) == ("ready", 2), stored
    examples = desk.call("GET", f"/v1/datasets/{dataset}/examples", 200)["items"]
    assert sorted(example["labels"] for example in examples) == [["billing"], ["legal"]]
