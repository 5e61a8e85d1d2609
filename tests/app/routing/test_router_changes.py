"""A router is replaced only if nobody else has changed it, if the request says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from in_process_api import InProcessApi, api

PATH = "/v1/routers/desk"
ROUTER = {"model": "m", "fallback": "front@example.org"}


@pytest.fixture
def service(tmp_path: Path, migrated_sqlite: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcessApi]:
    """The API with a model that reads texts."""
    with api(tmp_path, migrated_sqlite, monkeypatch) as started:
        started.train(started.dataset())
        yield started


def test_a_router_is_replaced_only_if_it_has_the_expected_etag(service: InProcessApi) -> None:
    problem = service.call("PUT", PATH, 412, json=ROUTER, headers={"If-Match": "*"})
    assert problem is None
    created = service.send("PUT", PATH, json=ROUTER)
    etag = created.headers["ETag"]
    assert service.send("GET", PATH).headers["ETag"] == etag
    replaced = service.send("PUT", PATH, json={**ROUTER, "at_most": 2}, headers={"If-Match": etag})
    assert replaced.status_code == 200
    assert replaced.headers["ETag"] != etag
    late = service.send("PUT", PATH, json=ROUTER, headers={"If-Match": etag})
    assert (late.status_code, late.json()["code"]) == (412, "precondition_failed")
    assert replaced.headers["ETag"] in late.json()["detail"]
    assert service.call("GET", PATH, 200)["at_most"] == 2
    service.call("PUT", PATH, 200, json=ROUTER)


def test_a_destination_of_a_label_that_no_version_has_is_a_warning(service: InProcessApi) -> None:
    body = {**ROUTER, "destinations": {"billing": "b@example.org", "biling": "c@example.org"}}
    (warning,) = service.call("PUT", PATH, 200, json=body)["warnings"]
    assert warning == "destinations of labels that no version of the router has: biling"
    assert service.call("PUT", PATH, 200, json=ROUTER)["warnings"] == []


def test_an_explained_decision_of_a_version_that_was_trained_on_texts_has_its_text(
    service: InProcessApi,
) -> None:
    service.call("PUT", PATH, 200, json=ROUTER)
    body = {"email": {"subject": "Question", "text": "the parcel of the courier is late"}}
    decision = service.call("POST", f"{PATH}/message-parts?explain=true", 200, json=body)
    places = [
        place
        for item in decision["explanation"]
        for term in item["terms"]
        for place in term.get("occurrences", ())
    ]
    assert {place["field"] for place in places} == {"text"} == set(decision["texts"])
    words = {decision["texts"]["text"][place["start"] : place["end"]] for place in places}
    assert words <= {"Question", *body["email"]["text"].split()}
    assert words
