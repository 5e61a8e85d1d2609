"""When a failed request is sent again."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import uniform

import httpx

from covey_client.errors import ConnectionFailed, CoveyError, ProblemError

ONCE = "covey_once"
"""Request extension: the body can only be read once; a function that returns whether it was read."""

STREAM = "covey_stream"
"""Request extension: the caller reads the body of the response."""

RETRY = "covey_retry"
"""Request extension: when to send this request again."""

REPEATABLE_POSTS = re.compile(
    r"/v1/(models/[^/]+/predict"
    r"|routers/[^/]+/(messages|message-parts)"
    r"|decisions/[^/]+/feedback"
    r"|(training-jobs|experiments|batch-predictions)/[^/]+/cancel)"
)
"""Paths of the POSTs without `Idempotency-Key` that have the same effect if they are sent twice."""

LASTING = {
    "artifact_unavailable",
    "database_damaged",
    "database_full",
    "encryption_key_missing",
    "file_damaged",
    "file_missing",
}
"""Codes of problems with status 503 that last until an administrator acts."""

# A request that failed like this was never sent.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

_BROKEN = (httpx.NetworkError, httpx.RemoteProtocolError, httpx.ProxyError)

_RETRIED_STATUSES = {429, 502, 503, 504}


@dataclass(frozen=True)
class Retry:
    """When to send a failed request again.

    Attributes:
        attempts: how often a request is sent at most.
        first_wait: wait before the second attempt, in seconds; each further wait is twice as long. The waits
            are random, between half of this and this, so that clients do not all come back at once.
        longest_wait: the longest wait, in seconds. If `Retry-After` asks for a longer one, the error is
            raised.
        only_broken: whether to send a request again only if its connection broke, and then at once. For
            callers that try again later themselves.
    """

    attempts: int = 5
    first_wait: float = 0.5
    longest_wait: float = 60.0
    only_broken: bool = False

    def wait_before(self, attempt: int, retry_after: float | None) -> float | None:
        """Return how long to wait before an attempt, counted from 1; None if there is none."""
        if attempt > self.attempts:
            return None
        if self.only_broken:
            return 0.0
        if retry_after is not None:
            return retry_after if retry_after <= self.longest_wait else None
        wait = min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 2))
        return uniform(wait / 2, wait)  # noqa: S311 - not a secret


AT_ONCE = Retry(attempts=2, only_broken=True)
"""A kept connection can be closed at any time. For everything else, the caller tries again later."""


def is_temporary(error: CoveyError) -> bool:
    """Whether the service, or a proxy before it, may respond when it is asked later.

    >>> is_temporary(ProblemError(502, "error", "Bad Gateway"))
    True
    >>> is_temporary(ProblemError(503, "file_damaged", "")), is_temporary(ProblemError(404, "not_found", ""))
    (False, False)
    """
    if isinstance(error, ProblemError):
        return error.status in _RETRIED_STATUSES and error.code not in LASTING
    return isinstance(error, ConnectionFailed)


def is_repeatable(request: httpx.Request) -> bool:
    """Whether a request has the same effect if the service gets it twice.

    A conditional PUT is: after the first, the second one does nothing and returns 412.

    >>> is_repeatable(httpx.Request("PUT", "http://covey/v1/routers/desk"))
    True
    >>> is_repeatable(httpx.Request("POST", "http://covey/v1/datasets"))
    False
    >>> is_repeatable(httpx.Request("POST", "http://covey/v1/datasets", headers={"Idempotency-Key": "1"}))
    True
    >>> is_repeatable(httpx.Request("POST", "http://covey/v1/routers/desk/messages"))
    True
    """
    if request.method != "POST":
        return True
    if "Idempotency-Key" in request.headers or "If-Match" in request.headers:
        return True
    return REPEATABLE_POSTS.fullmatch(request.url.path.removeprefix(_prefix(request))) is not None


def _prefix(request: httpx.Request) -> str:
    """Return what stands before ``/v1`` in the path, for a service behind a proxy."""
    return request.url.path.partition("/v1/")[0]


def may_repeat(request: httpx.Request, error: CoveyError, *, only_broken: bool) -> bool:
    """Whether a request that failed is sent again, if attempts are left."""
    if _is_consumed(request):
        return False
    if isinstance(error, ConnectionFailed):
        cause = error.__cause__
        if "CERTIFICATE_VERIFY_FAILED" in str(cause):  # the name of the error in OpenSSL
            return False
        if only_broken and isinstance(cause, (*_NOT_SENT, httpx.TimeoutException)):
            return False
        if not isinstance(cause, (*_BROKEN, httpx.TimeoutException)):
            return False
    elif only_broken or not is_temporary(error):
        return False
    return is_refused(error) or is_repeatable(request)


def is_refused(error: CoveyError) -> bool:
    """Whether the request certainly had no effect."""
    if isinstance(error, ProblemError):
        return error.status == 429
    return isinstance(error.__cause__, _NOT_SENT)


def _is_consumed(request: httpx.Request) -> bool:
    """Whether the body cannot be sent again."""
    is_consumed: Callable[[], bool] | None = request.extensions.get(ONCE)
    return is_consumed() if is_consumed is not None else not isinstance(request.stream, httpx.ByteStream)


def retry_after(value: str | None) -> float | None:
    """Return the seconds of a ``Retry-After`` header; None without a valid one.

    >>> retry_after("2"), retry_after("Thu, 01 Jan 1970 00:00:00 GMT"), retry_after("soon")
    (2.0, 0.0, None)
    """
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        time = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (time.replace(tzinfo=time.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
