"""Protect a service that accepts anonymous requests from the web pages that its user visits.

A browser on the same machine reaches a loopback address for every page. A page can name the address directly
(the browser then sends its ``Origin`` or ``Sec-Fetch-Site``), or let its own host name resolve to the address
(DNS rebinding; the browser then sends that name as ``Host``). A service with API keys needs no such check,
because a page does not know a key.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from urllib.parse import urlsplit

from app.api.request_head import RequestHead
from app.errors import Forbidden
from app.settings import Settings, split


class WebPageFilter:
    """Recognize requests that may come from a foreign web page.

    Args:
        settings: the names of hosts and the origins of pages that are allowed.
    """

    def __init__(self, settings: Settings) -> None:
        self._hosts = {name.lower() for name in split(settings.allowed_hosts)}
        self._origins = set(split(settings.cors_origins))

    def reason_to_refuse(self, method: str, head: RequestHead) -> Forbidden | None:
        """Return the error for a request that an open service must refuse; None for any other request."""
        for host in head.hosts():
            if not self._is_own(_host_name(host)):
                return Forbidden(
                    f"while this service accepts requests without an API key, it does not accept the host "
                    f"{host[:100]}; use 127.0.0.1 or localhost, create a key, or set COVEY_ALLOWED_HOSTS",
                    code="untrusted_host",
                )
        origin = head.get(b"origin")
        if origin is not None and (origin in self._origins or "*" in self._origins):
            return None
        if (origin is not None and not self._is_own(_origin_name(origin))) or (
            head.get(b"sec-fetch-site") in {"cross-site", "same-site"} and not _is_navigation(method, head)
        ):
            return Forbidden(
                "while this service accepts requests without an API key, it does not accept requests of web "
                "pages from other origins; create a key, or set COVEY_CORS_ORIGINS",
                code="foreign_origin",
            )
        return None

    def _is_own(self, hostname: str | None) -> bool:
        """Whether only this machine, or the administrator, can give a service this name."""
        if hostname is None:
            return False
        return hostname == "localhost" or hostname in self._hosts or _is_loopback(hostname)


# Most requests have the same host, and parsing it takes longer than the rest of the filter.


@lru_cache(maxsize=64)
def _host_name(host: str) -> str | None:
    return _origin_name(f"//{host}")


@lru_cache(maxsize=64)
def _is_loopback(hostname: str) -> bool:
    try:
        return ipaddress.ip_address(hostname).is_loopback
    except ValueError:
        return False


def _origin_name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _is_navigation(method: str, head: RequestHead) -> bool:
    """Whether a user follows a link to a page of the service. The other page cannot read the response."""
    return (
        method == "GET"
        and head.get(b"sec-fetch-mode") == "navigate"
        and head.get(b"sec-fetch-dest") == "document"
    )
