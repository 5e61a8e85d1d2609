"""What the page about Label Studio shows works. The test of all pages runs its requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from in_process_api import InProcessApi, api

DOCS = Path(__file__).parents[4] / "docs"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[InProcessApi]:
    folder = tmp_path_factory.mktemp("protocol-pages")
    with pytest.MonkeyPatch.context() as patch, api(folder, migrated_sqlite, patch) as service:
        examples = [
            {"id": f"{label} {i}", "text": f"{text} {i}", "labels": [label]}
            for i in range(6)
            for text, label in (("my invoice is wrong", "billing"), ("the paper jams", "printer"))
        ]
        service.train(service.dataset(examples), model="helpdesk")
        router = {"model": "helpdesk", "fallback": "front@example.org"}
        service.call("PUT", "/v1/routers/frontdesk", 200, json=router)
        yield service


def test_the_project_of_the_label_studio_page_gets_predictions(service: InProcessApi) -> None:
    page = (DOCS / "label-studio.md").read_text()
    (config,) = re.findall(r"```xml\n(.*?)```", page, re.DOTALL)
    (task,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    body = {"label_config": config, "tasks": [{"id": 1, "data": json.loads(task)}]}
    for target in ("models/helpdesk", "routers/frontdesk"):
        response = service.call("POST", f"/label-studio/{target}/predict", 200, json=body)
        (region,) = response["results"][0]["result"]
        assert region["value"] == {"choices": ["billing"]}
