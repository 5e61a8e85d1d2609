"""Pages of batch predictions, webhooks, and the help."""

from __future__ import annotations

import in_process
import pytest
from console_visitors import Visitor, visitor
from in_process_api import InProcessApi


@pytest.fixture(scope="module")
def reader(api: InProcessApi) -> Visitor:
    return visitor(api, "read")


def test_a_batch_prediction_is_listed_shown_and_downloaded(api: InProcessApi, reader: Visitor) -> None:
    assert "There are no batch predictions yet." in reader.see("/console/batch-predictions")
    predictor = visitor(api, "read", "predict")
    assert "needs a model" in predictor.see("/console/batch-predictions/new")
    dataset = api.dataset()
    api.train(dataset)
    form = predictor.see("/console/batch-predictions/new")
    assert 'data-api="POST /v1/batch-predictions"' in form
    assert "<option>m</option>" in form
    reader.see("/console/batch-predictions/new", status=403)

    body = {"model": "m", "version": 1, "dataset_id": dataset}
    created = api.call("POST", "/v1/batch-predictions", 202, json=body)["id"]
    path = f"/console/batch-predictions/{created}"
    waiting = predictor.see(path)
    assert "data-live" in waiting
    assert "/cancel" in waiting
    assert "/cancel" not in reader.see(path)
    in_process.work(api.ctx)
    final = reader.see(path)
    assert "data-live" not in final
    assert f'href="/v1/batch-predictions/{created}/result"' in final
    assert f'href="{path}"' in reader.see("/console/batch-predictions")


def test_a_webhook_shows_its_deliveries_which_can_be_sent_again(api: InProcessApi, reader: Visitor) -> None:
    admin = visitor(api, "admin")
    reader.see("/console/webhooks", status=403)
    form = admin.see("/console/webhooks")
    assert "There are no webhooks yet." in form
    assert 'data-api="POST /v1/webhooks"' in form
    body = {"url": "https://receiver.example.org/<b>", "events": ["decision.review", "job.ended"]}
    webhook = api.call("POST", "/v1/webhooks", 201, json=body)["id"]
    listed = admin.see("/console/webhooks")
    assert "A person should review a message; A job has ended" in listed
    assert f"/console/webhooks/{webhook}" in listed
    path = f"/console/webhooks/{webhook}"
    assert "No event was sent yet." in admin.see(path)
    delivery = api.call("POST", f"/v1/webhooks/{webhook}/test", 202)["id"]
    shown = admin.see(path)
    assert f'data-api="POST /v1/webhooks/{webhook}/deliveries/{delivery}/redeliver"' in shown
    assert "pending" in shown
    assert "<b>" not in shown
    reader.see(path, status=403)


def test_the_header_leads_to_the_help(reader: Visitor) -> None:
    assert 'href="/console/help"' in reader.see("/console")
    assert "Overall quality (F1)" in reader.see("/console/help")
