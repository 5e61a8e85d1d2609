"""Settings and fixtures of all tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import corpora
import durations
import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from stack import Stack

# Container images often set this variable. Every process that a test starts would compile the whole program.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# `make test` draws the same examples everywhere, every time. `make test-long` draws others, and many more.
# A slow example is not a failure, because machines are shared. Pin each failing example that `make test-long`
# finds with `@example`.
settings.register_profile(
    "covey",
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("covey")

LONG_FACTOR = 10
"""`make test-long` tests each property on this many times as many examples as `make test`."""

settings.register_profile(
    "long", settings.get_profile("covey"), derandomize=False, max_examples=100 * LONG_FACTOR
)

# Several stacks share the processors. A job of a lower priority would wait for the requests of other tests.
os.environ.setdefault("COVEY_JOB_NICENESS", "0")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of ``make durations``."""
    parser.addoption(
        "--store-durations",
        action="store_true",
        help="store how long the tests take, which orders later runs",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Store durations in the main process, which receives the reports of all processes."""
    if config.getoption("store_durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(durations.StoreDurations())


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let one process run all tests of a unit."""
    return durations.scheduler(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.hookimpl(trylast=True)  # after pytest-xdist has added the groups to the ids
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest tests first, and raise the number of examples in `make test-long`.

    The number is raised also for tests that set their own.
    """
    durations.longest_first(items)
    if settings.get_current_profile_name() != "long":
        return
    tests = {item.obj for item in items if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)}
    for test in tests:
        default = test._hypothesis_internal_use_settings
        test._hypothesis_internal_use_settings = settings(
            default, max_examples=LONG_FACTOR * default.max_examples
        )


@pytest.hookimpl(tryfirst=True)  # before the fixtures: they may start servers, or read the corpora
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose corpora are missing."""
    for mark in item.iter_markers("corpora"):
        corpora.skip_if_missing(mark.args)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One embedded stack for all tests that do not disturb other tests."""
    stack = Stack(tmp_path_factory.mktemp("stack") / "data").start()
    yield stack
    stack.stop()


@pytest.fixture
def own_stack(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stack]:
    """A stack for a single test, with the settings in the fixture's parameter.

    Its workers look for lost jobs often. Leases are long, because a process on a busy machine may renew
    its lease late.
    """
    settings = {
        "COVEY_LEASE_SECONDS": "60",
        **getattr(request, "param", {}),
    }
    stack = Stack(tmp_path / "data", settings).start()
    yield stack
    stack.stop()
