"""The short attacks of ``python -m benchmarks.attack`` find no regression."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from stack import Stack

from benchmarks.attack import all_attacks
from benchmarks.attack.harness import Attack, Targets, attempt

pytestmark = [pytest.mark.faults, pytest.mark.system]


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory, stack: Stack) -> Iterator[Targets]:
    targets = Targets(tmp_path_factory.mktemp("attacks"), stack)
    yield targets
    targets.close()


@pytest.mark.parametrize("attack", [one for one in all_attacks() if one.short], ids=lambda one: one.name)
def test_the_service_withstands(attack: Attack, targets: Targets) -> None:
    results = [result for result in attempt(attack, targets) if not result.timed]
    assert results
    assert [result for result in results if not result.held] == []
