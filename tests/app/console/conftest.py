"""One API for all tests of a file of the console."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import in_process_api
import pytest
from in_process_api import InProcessApi


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[InProcessApi]:
    """The API in the process of the tests. Its tests do not rely on what other tests leave behind."""
    with (
        pytest.MonkeyPatch.context() as patch,
        in_process_api.api(tmp_path_factory.mktemp("console"), migrated_sqlite, patch) as opened,
    ):
        yield opened
