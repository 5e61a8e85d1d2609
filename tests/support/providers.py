"""Requests of e-mail providers, signed with keys of the test, for tests of the inbound operations."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

MAILGUN_KEY = "key-of-mailgun"
POSTMARK_CREDENTIALS = "covey:pass:word"
TOPIC = "arn:aws:sns:eu-west-1:123456789012:mail"
BOUNDARY = "xYzZY"
_STARTED = time.time()


@dataclass(frozen=True)
class Request:
    """A request to the operation of a provider.

    Attributes:
        provider: the part of the path after ``inbound/``.
        headers: its headers.
        body: its body.
    """

    provider: str
    headers: Mapping[str, str]
    body: bytes

    def path(self, router: str = "desk") -> str:
        """Return the path of the operation."""
        return f"/v1/routers/{router}/inbound/{self.provider}"

    def with_body(self, body: bytes) -> Request:
        """Return the request with another body, and the same signature."""
        return replace(self, body=body)


@cache
def _ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@cache
def _rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def settings(folder: Path) -> dict[str, Any]:
    """Return the settings of a service that accepts messages of every provider.

    Args:
        folder: for the file of certificates.
    """
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, _rsa_key().public_key(), x509.random_serial_number())
    certificate = (
        builder.not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(_rsa_key(), hashes.SHA256())
    )
    file = folder / "sns.pem"
    file.write_bytes(certificate.public_bytes(Encoding.PEM))
    public = _ec_key().public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return {
        "inbound_sendgrid_keys": base64.b64encode(public).decode(),
        "inbound_mailgun_keys": f"an-older-key, {MAILGUN_KEY}",
        "inbound_postmark_credentials": POSTMARK_CREDENTIALS,
        "inbound_ses_certificates": file,
        "inbound_ses_topics": TOPIC,
    }


def multipart(fields: Mapping[str, bytes]) -> bytes:
    """Return a body of ``multipart/form-data``."""
    parts = [
        b'--%b\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n'
        % (BOUNDARY.encode(), name.encode(), value)
        for name, value in fields.items()
    ]
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def sendgrid(message: bytes, age: float = 0.0, **fields: bytes) -> Request:
    """Return a request of SendGrid. ``fields`` replace those of the form."""
    form = {"to": b"desk@example.org", "email": message, "subject": b"Hello", "charsets": b"{}", **fields}
    return sign_sendgrid(multipart(form), age)


def sign_sendgrid(body: bytes, age: float = 0.0) -> Request:
    """Return a request with any body that SendGrid has signed."""
    timestamp = str(int(time.time() - age))
    signature = _ec_key().sign(timestamp.encode() + body, ec.ECDSA(hashes.SHA256()))
    headers = {
        **FORM,
        "X-Twilio-Email-Event-Webhook-Signature": base64.b64encode(signature).decode(),
        "X-Twilio-Email-Event-Webhook-Timestamp": timestamp,
    }
    return Request("sendgrid", headers, body)


def mailgun(
    message: bytes,
    age: float = 0.0,
    token: bytes | None = None,
    key: str = MAILGUN_KEY,
    without: str | None = None,
    **fields: bytes,
) -> Request:
    """Return a request of Mailgun. ``fields`` replace those of the form; the field ``without`` is missing."""
    # Requests with one token have one timestamp, too.
    timestamp = str(int((time.time() if token is None else _STARTED) - age))
    token = token or uuid4().hex.encode()
    signature = hmac.new(key.encode(), timestamp.encode() + token, hashlib.sha256).hexdigest()
    form = {
        "recipient": b"desk@example.org",
        "timestamp": timestamp.encode(),
        "token": token,
        "signature": signature.encode(),
        "body-mime": message,
        **fields,
    }
    form.pop(without or "", None)
    return Request("mailgun/mime", FORM, multipart(form))


def postmark(message: bytes, id_: str | None = None, credentials: str = POSTMARK_CREDENTIALS) -> Request:
    """Return a request of Postmark."""
    body = {
        "FromName": "Ann",
        "MessageID": id_ or str(uuid4()),
        "Attachments": [],
        "RawEmail": message.decode(),
    }
    encoded = base64.b64encode(credentials.encode()).decode()
    headers = {"Content-Type": "application/json; charset=utf-8", "Authorization": f"Basic {encoded}"}
    return Request("postmark", headers, json.dumps(body).encode())


def ses(
    message: bytes,
    age: float = 0.0,
    *,
    encoding: str = "UTF8",
    version: str = "2",
    content: str | None = None,
    **fields: str | None,
) -> Request:
    """Return a notification of Amazon SES.

    ``fields`` replace those of the SNS message; None removes one. ``content`` replaces the encoded message.
    """
    encoded = (base64.b64encode(message) if encoding == "BASE64" else message).decode()
    notification = {
        "notificationType": "Received",
        "receipt": {"action": {"type": "SNS", "topicArn": TOPIC, "encoding": encoding}},
        "content": encoded if content is None else content,
    }
    return sns({"Type": "Notification", "Message": json.dumps(notification), **fields}, age, version)


def sns(fields: Mapping[str, str | None], age: float = 0.0, version: str = "2") -> Request:
    """Return a signed message of Amazon SNS."""
    moment = datetime.fromtimestamp(time.time() - age, UTC)
    body = {
        "MessageId": str(uuid4()),
        "TopicArn": TOPIC,
        "Timestamp": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "SignatureVersion": version,
        "SigningCertURL": "https://127.0.0.1:9/never-fetched.pem",
        **fields,
    }
    body = {name: value for name, value in body.items() if value is not None}
    signed = ["Message", "MessageId", "Subject", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"]
    text = "".join(f"{name}\n{body[name]}\n" for name in signed if name in body)
    algorithm = hashes.SHA1() if version == "1" else hashes.SHA256()  # noqa: S303 - the provider's choice
    body["Signature"] = base64.b64encode(
        _rsa_key().sign(text.encode(), padding.PKCS1v15(), algorithm)
    ).decode()
    return Request("ses", {"Content-Type": "text/plain; charset=UTF-8"}, json.dumps(body).encode())
