"""The addresses to which webhooks can send.

A webhook could otherwise reach what only the network of the workers can reach: other services, and the
metadata of a cloud's machine, which contain credentials. The address is checked after the name was resolved,
and the connection goes to this very address. So a name that resolves to another address a moment later is of
no use.
"""

from __future__ import annotations

import ipaddress
from typing import TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA = {ipaddress.ip_address("168.63.129.16"), ipaddress.ip_address("192.0.0.192")}
"""Services of clouds for their machines, at addresses that are public or were until recently."""

_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
"""NAT64: the last four bytes are an IPv4 address."""


def is_public(address: str) -> bool:
    """Return whether an IP address belongs to a host in the public internet.

    IPv6 addresses that stand for an IPv4 address are judged by the latter.

    >>> is_public("93.184.215.14"), is_public("127.0.0.1"), is_public("::ffff:169.254.169.254")
    (True, False, False)
    """
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        embedded = ip.ipv4_mapped or ip.sixtofour
        if embedded is None and ip in _TRANSLATED:
            embedded = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if embedded is not None:
            return is_public(str(embedded))
        if ip.scope_id is not None:
            return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved and ip not in _METADATA


def literal_address(host: str) -> str | None:
    """Return the IP address if a URL's host is one, with all the spellings that resolvers accept for it.

    >>> literal_address("127.1"), literal_address("::1"), literal_address("example.org")
    ('127.0.0.1', '::1', None)
    """
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return _loose_ipv4(host)


def _loose_ipv4(host: str) -> str | None:
    """Return an IPv4 address in the notation of ``inet_aton``: fewer than four parts, octal, hexadecimal."""
    try:
        numbers = [_c_number(part) for part in host.rstrip(".").split(".")]
    except ValueError:
        return None
    *leading, last = numbers
    rest = 8 * (4 - len(leading))
    if len(numbers) > 4 or any(number > 255 for number in leading) or last >= 1 << rest:
        return None
    value = last
    for place, number in enumerate(leading):
        value |= number << (24 - 8 * place)
    return str(ipaddress.IPv4Address(value))


def _c_number(text: str) -> int:
    if not text.isascii() or not text.isalnum():
        raise ValueError(text)
    if text[:2] in {"0x", "0X"}:
        return int(text[2:] or "0", 16)
    return int(text, 8 if text.startswith("0") else 10)
