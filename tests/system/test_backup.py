"""A restored service is the service that was backed up, whatever it is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import bucket
import postgres
import pytest
from commands import covey
from stack import Stack, departments

pytestmark = pytest.mark.system

QUESTION = {
    "instances": [{"text": "parcel late courier"}, {"text": "refund my invoice"}, {"text": "zzz"}],
    "explain": True,
}
MESSAGE = {"email": {"subject": "Late", "text": "the courier is late with the parcel"}}


@pytest.fixture(params=["sqlite and a folder", "postgresql and a bucket"])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Settings of a service to restore into."""
    if request.param == "sqlite and a folder":
        yield {}
        return
    try:
        with postgres.server() as server, bucket.server(tmp_path / "bucket.log") as buckets:
            yield {
                "COVEY_DATABASE_URL": server.create(),
                "COVEY_STORAGE_URL": buckets.create(),
                **bucket.CREDENTIALS,
            }
    except postgres.UnavailableError as error:
        pytest.skip(f"no PostgreSQL: {error}")


def said(stack: Stack) -> dict[str, Any]:
    """What the service says of all that it has."""
    paths = ["models/kept/versions", "datasets", "training-jobs", "routers", "routers/desk/decisions"]
    return {
        **{path: stack.call("GET", f"/v1/{path}", 200) for path in paths},
        "predictions": stack.http.post("/v1/models/kept/predict", json=QUESTION).content,
        "artifact": stack.http.get("/v1/models/kept/versions/1/artifact").content,
    }


def test_a_restored_service_answers_with_the_same_bytes(
    own_stack: Stack, elsewhere: Mapping[str, str], tmp_path: Path
) -> None:
    dataset = own_stack.dataset(departments(80))
    own_stack.finished(own_stack.train(dataset["id"], model="kept")["id"])
    own_stack.call("PUT", "/v1/routers/desk", 200, json={"model": "kept", "fallback": "front@example.org"})
    decision = own_stack.call("POST", "/v1/routers/desk/messages", 200, json=MESSAGE)
    before = said(own_stack)

    file = tmp_path / "covey.tar.zst"
    made = covey("backup", str(file), "--data", str(own_stack.data))
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("backed up: "), made.stdout

    restored = covey("restore", str(file), "--data", str(tmp_path / "restored"), environment=elsewhere)
    assert restored.returncode == 0, restored.stderr
    other = Stack(tmp_path / "restored", elsewhere).start()
    try:
        assert said(other) == before
        assert other.call("POST", "/v1/routers/desk/messages", 200, json=MESSAGE) == decision
        # And it goes on from there.
        ended = other.finished(other.train(dataset["id"], model="kept")["id"])
        assert ended["result"]["version"] == 2
    finally:
        assert other.stop() == 0
    again = covey("restore", str(file), "--data", str(tmp_path / "restored"), environment=elsewhere)
    assert again.returncode == 1
    assert "the database is not empty" in again.stderr
