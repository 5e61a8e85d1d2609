"""Choose the version of a message for a router that splits its traffic between several versions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from app.routing.schemas import RouterPut, WeightedVersion
from models.mail import MailDocument


def choose(router_id: str, key: str, versions: Sequence[WeightedVersion]) -> int | str:
    """Return the reference of a version: always the same for a key, as long as the weights are the same.

    Args:
        router_id: id of the router, so that routers choose independently of each other.
        key: what gets the same version, such as a sender.
        versions: the versions with their weights, at least one of which is above 0.

    >>> versions = [WeightedVersion(version="live", weight=1), WeightedVersion(version=2, weight=0)]
    >>> choose("rtr_1", "ann@example.org", versions)
    'live'
    """
    digest = hashlib.sha256(f"{router_id}\n{key}".encode()).digest()
    total = sum(item.weight for item in versions)
    position = int.from_bytes(digest[:8], "big") * total >> 64  # from 0 to total - 1
    for item in versions:
        if position < item.weight:
            return item.version
        position -= item.weight
    raise ValueError("no weight is above 0")


def sticky_key(config: RouterPut, mail: MailDocument, message_key: str) -> str:
    """Return what gets the same version: the message, or its sender if the router says so and it has one."""
    if config.sticky_by == "sender" and (sender := mail.sender) is not None:
        return sender
    return message_key


def in_order(config: RouterPut, chosen: int | str) -> list[int | str]:
    """Return the references of a router in the order in which they are tried, the chosen one first.

    The others replace it if it cannot decide, those with the largest weight first.
    """
    others = sorted(config.versions, key=lambda item: -item.weight)
    return [chosen, *(item.version for item in others if item.version != chosen)]
