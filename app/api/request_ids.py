"""The ids by which a caller and the logs of other services recognize a request.

They come from the caller, so they are only used if they are short and cannot change the meaning of a log line
or a header. Anything else is ignored, as the specification of ``traceparent`` demands.
"""

from __future__ import annotations

import re

from app.api.request_head import RequestHead

_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}")
_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?"
)


def caller_request_id(head: RequestHead) -> str | None:
    """Return the ``X-Request-ID`` of the caller; None if there is none, or it is not usable."""
    value = head.get(b"x-request-id")
    return value if value is not None and _REQUEST_ID.fullmatch(value) else None


def caller_trace_id(head: RequestHead) -> str | None:
    """Return the trace id of ``traceparent`` (W3C Trace Context); None if there is no valid one."""
    value = head.get(b"traceparent")
    if value is None or len(value) > 512 or (value.startswith("00-") and len(value) != 55):
        return None
    found = _TRACEPARENT.fullmatch(value)
    return found[1] if found else None
