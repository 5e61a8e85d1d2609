"""Programs that tests need and that a machine may lack."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

REQUIRE = "COVEY_REQUIRE_SERVERS"
"""Environment variable that makes a missing server a failure; ``.ci/run`` sets it to 1."""


def missing(reason: str) -> NoReturn:
    """Skip the test for a reason, or fail it if every server is required."""
    if os.environ.get(REQUIRE, "") not in ("", "0"):
        pytest.fail(f"{reason} ({REQUIRE} is set)", pytrace=False)
    pytest.skip(reason)
