"""Fixtures of all tests of bad input."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bad_requests import Known, expect_unchanged, stored_state
from stack import Stack, departments


@pytest.fixture(scope="session")
def known(stack: Stack) -> Known:
    """Resources to which the requests refer."""
    text = stack.dataset(departments(40), name="bad input")
    rows = [
        {"features": {"a": i - 4.0, "b": float(i % 3)}, "labels": ["odd" if i % 2 else "even"]}
        for i in range(12)
    ]
    numbers = stack.dataset(rows, name="bad input numbers")
    waiting = stack.call("POST", "/v1/datasets", 201, json={"name": "bad input waiting"})
    for model, dataset in (("bad-input", text), ("bad-input-numeric", numbers)):
        job = stack.finished(stack.train(dataset["id"], model=model)["id"])
        assert job["state"] == "succeeded", job
    router = {"model": "bad-input", "fallback": "front@example.org"}
    stack.call("PUT", "/v1/routers/bad-input", 200, json=router)
    return Known(stack, text["id"], numbers["id"], waiting["id"])


@pytest.fixture
def unchanged(known: Known) -> Iterator[Known]:
    """Resources for a test that must not change the stored state."""
    before = stored_state(known.stack)
    yield known
    expect_unchanged(known.stack, before)


@pytest.fixture
def cleared(known: Known) -> Iterator[Known]:
    """Resources for a test that must not change the stored state except for jobs."""
    before = stored_state(known.stack, history=False)
    yield known
    expect_unchanged(known.stack, before, history=False)
