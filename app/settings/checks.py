"""What the values of settings must satisfy. A value that can never take effect is an error at the start.

Each check gets the text of a setting, and raises ValueError with what is wrong and an example. The text can
be a secret, so a message quotes only parts that are not secret.
"""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, urlsplit

DATABASES = ("sqlite", "sqlite+pysqlite", "postgresql", "postgresql+psycopg")
BROKERS = ("redis", "rediss", "redis+socket", "sentinel", "amqp", "amqps", "pyamqp", "memory")
LIMITS = ("redis", "rediss", "redis+socket", "unix")

DEFAULT_PORTS = {"http": 80, "https": 443}

ROOT_PATH = re.compile(r"(?:/(?!\.+(?:/|\Z))[\w.~-]+)*", re.ASCII)
"""A path prefix. It cannot be read as another host."""

_HOST_NAME = re.compile(
    r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?", re.IGNORECASE
)
_ROUTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_TOPIC = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}(\.fifo)?")


def check_origin(text: str) -> None:
    """Check an origin of web pages as browsers send it, or ``*``."""
    if text in ("*", "null"):
        return
    if "*" in text:
        raise ValueError(f"{text} contains a wildcard; name each origin, or set * for all")
    parts = _split_url(text)
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        raise ValueError(
            f"{text} is not an origin; it needs a scheme and a host, such as https://desk.example.org"
        )
    if parts.username is not None or text != f"{parts.scheme}://{parts.netloc}":
        raise ValueError(
            f"{text} is not an origin; it ends after the host or the port: {parts.scheme}://{parts.netloc}"
        )
    if parts.port == DEFAULT_PORTS[parts.scheme]:
        raise ValueError(f"{text} never matches, because browsers leave out the usual port; remove it")
    if text != text.lower() or not text.isascii():
        host = parts.hostname.encode("idna").decode()
        raise ValueError(
            f"{text} never matches, because browsers send lower-case ASCII letters, such as {host}"
        )


def check_host_name(text: str) -> None:
    """Check the name of a host without a port."""
    if "://" in text or "/" in text:
        raise ValueError(f"{text} is not a host name; write it without scheme and path: desk.example.org")
    if "*" in text:
        raise ValueError(f"{text} contains a wildcard; name each host")
    if text.startswith("["):
        raise ValueError(f"{text}: write an IPv6 address without brackets and port")
    if not _is_host(text):
        hint = "write it without the port" if ":" in text else "use letters, digits, hyphens and dots"
        raise ValueError(f"{text} is not a host name; {hint}")


def check_listening_host(text: str) -> None:
    """Check the name or address to listen on."""
    if not text:
        raise ValueError("is empty; 0.0.0.0 listens on all IPv4 addresses, and :: on all addresses")
    check_host_name(text)


def check_host_and_port(text: str) -> None:
    """Check an address ``HOST:PORT`` or ``[IPv6]:PORT``, or nothing."""
    host, _, port = text.rpartition(":")
    if text and (not port.isdecimal() or not 0 < int(port) < 65536 or not _is_host(host.strip("[]"))):
        raise ValueError(f"{text} is not an address; use HOST:PORT, such as 127.0.0.1:9100")


def check_proxy(text: str) -> None:
    """Check the address or network of a proxy, or ``*``."""
    if text == "*":
        return
    try:
        ipaddress.ip_network(text)
    except ValueError as error:
        raise ValueError(f"{error}; use an address or a network, such as 10.0.0.0/8") from error


def check_root_path(text: str) -> None:
    """Check the path below which a proxy serves Covey."""
    if not ROOT_PATH.fullmatch(text):
        raise ValueError(f"{text} is not a path such as /tools/covey")


def url_check(schemes: Sequence[str], example: str) -> Callable[[str], None]:
    """Return a check of a URL of a server, which can contain a password.

    Args:
        schemes: the schemes that it can have.
        example: shown in errors.
    """

    def check(text: str) -> None:
        if not text:
            return
        parts = _split_url(text)
        if parts.scheme not in schemes:
            # A text without scheme can begin with a secret.
            shown = f"the scheme {parts.scheme} is unknown" if "://" in text else "it has no scheme"
            raise ValueError(f"{shown}; use a URL such as {example}")
        if parts.netloc.count("@") > 1:
            raise ValueError(
                "user and password contain @ or /; write @ as %40, / as %2F and : as %3A in them"
            )
        hosts = parts.netloc.rpartition("@")[2].split(",")  # PostgreSQL can have several
        if any(not _has_valid_port(host) for host in hosts):
            raise ValueError("a port is not a number from 1 to 65535; write : as %3A in a password")
        is_local = parts.scheme in ("redis+socket", "unix", "memory") or parts.scheme.startswith("sqlite")
        in_query = "host" in dict(parse_qsl(parts.query)) or "service" in dict(parse_qsl(parts.query))
        if not is_local and not parts.hostname and not in_query:
            raise ValueError(f"it names no host; use a URL such as {example}")

    return check


def check_storage_url(text: str) -> None:
    """Check the URL of a folder or a bucket."""
    if not text:
        return
    parts = _split_url(text)
    if parts.scheme == "file":
        if parts.netloc or not parts.path.startswith("/"):
            raise ValueError(f"{text} needs three slashes and an absolute path: file:///folder")
        return
    if parts.scheme != "s3" or not parts.netloc:
        raise ValueError("it must be file:///folder or s3://bucket/prefix")
    if "@" in parts.netloc:
        raise ValueError(
            "the URL of a bucket must contain no credentials; "
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment"
        )
    options = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
    if unknown := options.keys() - {"endpoint", "region"}:
        raise ValueError(
            f"the query of a bucket's URL can contain endpoint and region, not {', '.join(sorted(unknown))}"
        )


def check_certificates(path: Path | None) -> None:
    """Check that a file with certificates can be read, and contains one."""
    if path is None:
        return
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    if b"-----BEGIN CERTIFICATE-----" not in content:
        raise ValueError(f"{path} contains no certificate in PEM format")


def check_data_dir(path: Path) -> None:
    """Check that a folder can be at a path."""
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path} is a file; name a folder")


def check_provider_entry(number: int, entry: str, check_key: Callable[[str], bool], example: str) -> None:
    """Check a key, topic or credential of an e-mail provider, and the names of routers after it.

    Args:
        number: its position in the setting, from 1. The key itself can be a secret.
        entry: the key and the names, separated by blanks.
        check_key: whether the key can be valid.
        example: what a key looks like.
    """
    key, *routers = entry.split()
    if not check_key(key):
        raise ValueError(f"entry {number} is malformed; it must be {example}")
    for name in routers:
        if not _ROUTER.fullmatch(name):
            raise ValueError(
                f"entry {number} names a router that cannot exist; entries are separated by commas"
            )


def is_public_key(text: str) -> bool:
    """Whether a text can be the public key of a policy of SendGrid: DER in base64."""
    try:
        return base64.b64decode(text, validate=True)[:1] == b"\x30"
    except ValueError:
        return False


def is_credential(text: str) -> bool:
    """Whether a text is ``user:password``."""
    user, colon, password = text.partition(":")
    return bool(user and colon and password)


def is_topic(text: str) -> bool:
    """Whether a text is the ARN of a topic of Amazon SNS."""
    return _TOPIC.fullmatch(text) is not None


def _has_valid_port(host: str) -> bool:
    try:
        return urlsplit(f"//{host}").port != 0
    except ValueError:
        return False


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        # A name of digits and dots is an address with a mistake.
        return bool(_HOST_NAME.fullmatch(text)) and not re.fullmatch(r"[\d.]+", text)
    return True


def _split_url(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        _ = parts.hostname
    except ValueError as error:
        raise ValueError("it is not a URL") from error
    return parts
