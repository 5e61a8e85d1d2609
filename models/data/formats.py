"""The formats by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from models.data.limits import IngestLimits
from models.data.options import FormatOptions
from models.data.readers.jsonl import JSONLOptions, read_jsonl
from models.data.record import Items
from models.data.source import Source

Reader = Callable[[Source, Any, IngestLimits], Items]

READERS: dict[str, tuple[type[FormatOptions], Reader]] = {"jsonl": (JSONLOptions, read_jsonl)}
