"""The API for tests of webhooks. Webhooks send to loopback there, and look for events often."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from in_process_api import InProcessApi, api


@pytest.fixture(scope="module")
def shared_service(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[InProcessApi]:
    """The API for all tests of a file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COVEY_WEBHOOKS_ALLOW_PRIVATE", "true")
        with api(tmp_path_factory.mktemp("service"), migrated_sqlite, patch) as service:
            yield service


@pytest.fixture
def service(shared_service: InProcessApi) -> Iterator[InProcessApi]:
    """The API without webhooks."""
    yield shared_service
    for webhook in shared_service.call("GET", "/v1/webhooks", 200)["items"]:
        shared_service.call("DELETE", f"/v1/webhooks/{webhook['id']}", 204)


@pytest.fixture(autouse=True)
def _loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COVEY_WEBHOOKS_ALLOW_PRIVATE", "true")
    monkeypatch.setattr("app.webhooks.sender.POLL_SECONDS", 0.02)
