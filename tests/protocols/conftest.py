"""Drivers run in environments of other projects."""

from __future__ import annotations

collect_ignore = ["drivers"]
