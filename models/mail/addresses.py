"""Finds domains and addresses in address fields, in time proportional to their length."""

from __future__ import annotations

import re

from models.mail.charsets import clean
from models.mail.limits import MAX_DOMAINS

_QUOTED_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.){0,200}"|\([^()]{0,200}\)')
_DOMAIN = re.compile(r"@([^\W_](?:[\w.-]*[^\W_])?)")
_NOT_LOCAL = re.compile(r"[\s<>()\[\]:;,@\"]")
"""A character that is not part of the local part of an address, if this is not quoted."""
_MAX_LOCAL_CHARS = 64
_MAX_LABEL_CHARS = 63


def find_domains(addresses: str) -> tuple[str, ...]:
    """Return the domains in an address line, ignoring quoted names and comments.

    >>> find_domains('"me@home" <Ann@Example.org>, bob@example.com (Bob), (c):')
    ('example.org', 'example.com')
    >>> find_domains("a@xn--mller-kva.example")
    ('müller.example',)
    """
    addresses = _without_names(addresses)
    if _is_plain(addresses):
        return tuple(dict.fromkeys(_DOMAIN.findall(addresses.lower())))[:MAX_DOMAINS]
    return tuple(dict.fromkeys(map(_read_domain, _DOMAIN.findall(addresses))))[:MAX_DOMAINS]


def find_addresses(addresses: str) -> tuple[str, ...]:
    """Return the addresses in an address line in lower case, ignoring quoted names and comments.

    >>> find_addresses('"me@home" <Ann@Example.org>, bob+x@example.com (Bob), Ann@example.org, @d.example')
    ('ann@example.org', 'bob+x@example.com')
    """
    addresses = _without_names(addresses)
    plain = _is_plain(addresses)
    if plain:
        addresses = addresses.lower()
    found: dict[str, None] = {}
    for match in _DOMAIN.finditer(addresses):
        at = match.start()
        before = addresses[max(0, at - _MAX_LOCAL_CHARS) : at]
        local = _NOT_LOCAL.split(before)[-1]
        if local:
            domain = match[1] if plain else _read_domain(match[1])
            found[f"{local if plain else clean(local).lower()}@{domain}"] = None
            if len(found) == MAX_DOMAINS:
                break
    return tuple(found)


def _without_names(addresses: str) -> str:
    if '"' in addresses or "(" in addresses:
        return _QUOTED_OR_COMMENT.sub(" ", addresses)
    return addresses


def _is_plain(addresses: str) -> bool:
    """Return whether no domain has another form (RFC 5890), as in most messages."""
    return addresses.isascii() and "xn--" not in addresses.lower()


def _read_domain(domain: str) -> str:
    if "xn--" in domain.lower():
        domain = ".".join(map(_decode_label, domain.split(".")))
    return clean(domain).lower()


def _decode_label(label: str) -> str:
    """Return a label of an internationalized domain name (RFC 5890) in Unicode, if it is valid."""
    if not label.lower().startswith("xn--") or len(label) > _MAX_LABEL_CHARS:
        return label
    try:
        decoded = label[4:].lower().encode("ascii").decode("punycode")
    except UnicodeError:
        return label
    return decoded if decoded.isprintable() and not decoded.isascii() and "." not in decoded else label
