"""Draw the random sample of the messages of a router that people review."""

from __future__ import annotations

import hashlib


def is_sampled(router_id: str, message_key: str, share: float) -> bool:
    """Return whether a message belongs to the sample: always the same for a message.

    The draw depends on no version: neither on what one predicts nor on which one decides. So the reviewed
    messages are a fair test of any version. If the share grows, no message leaves the sample.

    Args:
        router_id: id of the router, so that routers draw independently of each other.
        message_key: digest of the message.
        share: the share of all messages that belongs to the sample, from 0 to 1.

    >>> sum(is_sampled("rtr_1", str(i), 0.1) for i in range(1000))
    104
    """
    digest = hashlib.sha256(f"review sample\n{router_id}\n{message_key}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64
