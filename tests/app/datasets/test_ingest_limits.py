"""``covey data inspect`` uses the limits of a service with default settings."""

from __future__ import annotations

from app.datasets.reading_uploads import ingest_limits
from app.settings import Settings
from models.data.limits import IngestLimits


def test_the_default_limits_equal_the_default_settings() -> None:
    assert ingest_limits(Settings()) == IngestLimits()
