"""Settings and fixtures of all tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import corpora
import durations
import postgres
import pytest
import required
import shared_stacks
from hypothesis import HealthCheck, is_hypothesis_test, settings
from shared_stacks import STACKS
from stack import Stack
from waiting import wait_for

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


def pytest_itemcollected(item: pytest.Item) -> None:
    """Make a group of the tests that share a stack."""
    if isinstance(item, pytest.Function) and item.get_closest_marker("xdist_group") is None:
        used = [name for name in shared_stacks.NAMES if name in item.fixturenames]
        for name in used[:1]:  # pytest-xdist would make a group of its own from two
            item.add_marker(pytest.mark.xdist_group(name))


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
    shared_stacks.start_needed(item.config.stash[STACKS], fixtures_of(item))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """No stack has started."""
    session.config.stash[STACKS] = {}


@pytest.hookimpl(trylast=True)  # after the fixtures of the test
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stop the stacks that the next test does not need."""
    shared_stacks.stop_others(item.config.stash[STACKS], fixtures_of(nextitem))


def fixtures_of(item: pytest.Item | None) -> list[str]:
    """Return the names of the fixtures of a test."""
    return item.fixturenames if isinstance(item, pytest.Function) else []


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.PostgresServer]:
    """A PostgreSQL server for the whole test session. Without one, its tests are skipped."""
    try:
        with postgres.server() as server:
            yield server
    except postgres.UnavailableError as error:
        required.missing(f"no PostgreSQL: {error}")


@pytest.fixture(scope="session")
def stack(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Stack:
    """One embedded stack for all tests that do not disturb other tests."""
    stack = Stack(tmp_path_factory.mktemp("stack") / "data").start()
    pytestconfig.stash[STACKS]["stack"] = stack
    return stack


KILLABLE = {
    # A process on a busy machine may renew its lease late.
    "COVEY_LEASE_SECONDS": "60",
    # Jobs write checkpoints only at the steps at which a test holds them.
    "COVEY_CHECKPOINT_SECONDS": "3600",
    "COVEY_JOB_ATTEMPTS": "2",
}
"""Settings of ``killable_stack``."""


@pytest.fixture
def killable_stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """A stack whose processes the test may kill, stop and start, as other tests did before it.

    All its processes run when the test begins. The data of other tests is still there, unless one has failed.
    """
    stacks = request.config.stash[STACKS]
    stack = stacks.get("killable_stack")
    if stack is None:
        stack = Stack(tmp_path_factory.mktemp("killable") / "data", KILLABLE).start()
        stacks["killable_stack"] = stack

    def has_all_processes() -> bool | None:
        return (stack.is_ready() and len(stack.worker_pids()) == 1) or None

    wait_for(has_all_processes, what="all processes of the stack")
    n_failed = request.session.testsfailed
    yield stack
    stack.release_all()
    if request.session.testsfailed > n_failed:
        stack.stop()
        del stacks["killable_stack"]
