"""Changes the header of a saved model, and makes its checksum right again."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from typing import Any

Header = dict[str, Any]

VALUES: list[Any] = [
    *(None, True, 0, -1, 1.5, 2**32, 2**63, 10**400, 1e308, float("nan"), float("inf")),
    *("", " ", "a", "\ud800", "\0", "a\nb", "\x85", "é" * 600, "x" * 2_000_000, "../../etc/passwd", "0" * 64),
    *(
        [],
        {},
        [[]],
        [None],
        ["\udfff"],
        {"\ud800": 1},
        {"\0": "a"},
        {"train": "high"},
        {"train": {"f1": "x"}},
    ),
    *({"test": {"f1_micro": 0.5}}, {"a": "b", "b": "a"}, list(range(3000))),
]


def nested(depth: int) -> Any:
    """Return lists in lists."""
    value: Any = "deep"
    for _ in range(depth):
        value = [value]
    return value


def forge(content: bytes, change: Callable[[Header, dict[str, Any]], None], tail: bytes = b"") -> bytes:
    """Return a model with a changed header and a correct checksum of the manifest."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    manifest = json.loads(header["__metadata__"]["manifest"])
    change(header, manifest)
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    header["__metadata__"]["manifest"] = text
    header["__metadata__"]["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    return len(encoded).to_bytes(8, "little") + encoded + content[8 + length :] + tail


def mutate(manifest: dict[str, Any], rng: random.Random) -> None:
    """Change one random place of a manifest, except its arrays."""
    places: list[tuple[Any, Any]] = [(manifest, name) for name in manifest if name != "arrays"]
    for container, key in places:  # grows
        inner = container[key]
        if isinstance(inner, dict | list):
            places += [(inner, k) for k in (inner if isinstance(inner, dict) else range(len(inner)))]
    container, key = rng.choice(places)
    value = rng.choice([*VALUES, nested(40), nested(900)])
    if isinstance(container, dict) and rng.random() < 0.2 and isinstance(value, str):
        container[value] = container.pop(key)
    else:
        container[key] = value
