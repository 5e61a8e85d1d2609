"""What all tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from stack import Stack

# Machines are shared and noisy; a slow example is no failure, and what failed once must fail again.
settings.register_profile("covey", deadline=None, print_blob=True)
settings.load_profile("covey")

# Several stacks share the processors here, and whoever stands back would wait for other tests' requests.
os.environ.setdefault("COVEY_JOB_NICENESS", "0")


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One embedded stack for all tests that leave it as they found it."""
    stack = Stack(tmp_path_factory.mktemp("stack") / "data").start()
    yield stack
    stack.stop()


@pytest.fixture
def own_stack(tmp_path: Path) -> Iterator[Stack]:
    """A stack of the test's own, quick to notice what died."""
    quick = {"COVEY_LEASE_SECONDS": "3", "COVEY_HEARTBEAT_SECONDS": "0.5"}
    stack = Stack(tmp_path / "data", quick).start()
    yield stack
    stack.stop()
