"""Whatever the OpenAPI document allows or forbids is asked; every answer is documented and fits its schema.

For an hour and with other seeds: ``benchmarks/fuzz.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fuzz_setup import call_every_operation
from fuzzing import LIMITED, Fuzz
from stack import Stack

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("fuzz")]

SEED = 20


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzz]:
    stack = Stack(tmp_path_factory.mktemp("fuzz") / "data", LIMITED).start()
    yield Fuzz(stack, SEED)
    stack.stop()


def test_no_answer_is_a_fault_undocumented_or_of_another_form(fuzz: Fuzz) -> None:
    call_every_operation(fuzz)
    assert fuzz.tally.succeeded() == fuzz.operations, "each operation succeeds at least once"
    # The edges of these three are four times those of all others; the long run has them.
    fuzz.phases(SEED, 3, without_boundaries=["datasets_create", "experiments_create", "training_jobs_create"])
    fuzz.sequences(SEED, n=40)
    fuzz.find_internal_failures()
    assert not fuzz.tally.findings, fuzz.tally.report()
    assert fuzz.tally.requests() > 1000
    assert '"event":"request.internal_error"' not in fuzz.stack.log.read_text().replace(" ", "")
