"""Fuzzes the API with valid and invalid requests: every response is documented and matches its schema.

``python -m benchmarks.attack --fuzz`` does this for an hour, with other seeds.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fuzz_setup import call_every_operation
from fuzzing import LIMITED, Fuzz
from stack import Stack

pytestmark = [pytest.mark.faults, pytest.mark.system, pytest.mark.xdist_group("fuzz")]

SEED = 20

LARGE = [
    "datasets_create",
    "experiments_create",
    "routers_list_decisions",
    "routers_put",
    "training_jobs_create",
]
"""These operations have many times as many boundary cases as all others together. Only the long run includes
them."""


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzz]:
    stack = Stack(tmp_path_factory.mktemp("fuzz") / "data", LIMITED).start()
    yield Fuzz(stack, SEED)
    stack.stop()


def test_every_response_is_documented_and_none_is_an_internal_error(fuzz: Fuzz) -> None:
    call_every_operation(fuzz)
    assert fuzz.tally.succeeded() == fuzz.operations, "an operation never succeeded"
    fuzz.phases(SEED, 3, without_boundaries=LARGE)
    fuzz.sequences(SEED, n=40)
    fuzz.find_internal_failures()
    assert not fuzz.tally.findings, fuzz.tally.report()
    assert fuzz.tally.requests() > 1000
    assert '"event":"request.internal_error"' not in fuzz.stack.log.read_text().replace(" ", "")
