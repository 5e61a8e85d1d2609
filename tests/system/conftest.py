"""Fixtures of the tests of a running service."""

from __future__ import annotations

import pytest
from commands import covey
from shared_stacks import STACKS
from stack import Stack
from waiting import wait_for


@pytest.fixture(scope="session")
def secured_stack(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> tuple[Stack, str]:
    """A service with every limit of keys and one key, which the command line created, and its secret."""
    settings = {
        "COVEY_RATE_PER_MINUTE": "400",
        "COVEY_REQUESTS_AT_ONCE": "3",
        "COVEY_JOBS_IN_FLIGHT": "2",
        "COVEY_CORS_ORIGINS": "https://desk.example.org, https://other.example.org",
        "COVEY_KEEP_DECISION_TEXT": "false",
        "COVEY_LOG_LEVEL": "debug",
    }
    stack = Stack(tmp_path_factory.mktemp("secured") / "data", settings).start()
    pytestconfig.stash[STACKS]["secured_stack"] = stack
    assert stack.http.get("/v1/datasets").status_code == 200, (
        "the API requires a key on loopback although there is none"
    )
    created = covey("keys", "create", "--name", "first", "--scope", "admin", "--data", str(stack.data))
    assert created.returncode == 0, created.stderr
    secret = created.stdout.strip()
    assert secret.startswith("cov_")
    assert secret not in created.stderr
    # The process sees the key, which a command has created, when it looks for changes.
    wait_for(lambda: stack.http.get("/v1/datasets").status_code == 401, what="the first key")
    return stack, secret
