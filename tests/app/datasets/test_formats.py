"""The HTTP API knows every file format."""

from __future__ import annotations

from typing import get_args

from app.datasets.schemas import DatasetFormat
from models.data.readers.registry import FORMATS


def test_the_api_has_the_formats_of_the_registry() -> None:
    names, _ = get_args(DatasetFormat.__value__)
    assert set(get_args(names)) == set(FORMATS)
