"""What attacks are made of: results with bounds, services to attack, and measurements of their processes."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import postgres
from dependencies import Dependencies, dependencies
from production import Production
from stack import Stack, cpu_seconds, departments
from waiting import LIMIT_SECONDS, wait_for

MIB = 1024 * 1024
MODEL, ROUTER = "attacked", "attacked"
PREDICT, MESSAGES = f"/v1/models/{MODEL}/predict", f"/v1/routers/{ROUTER}/messages"
TEXT = "the invoice is wrong and the card was charged twice"
FALLBACK = "front@example.org"
SETTINGS = {"COVEY_LOG_LEVEL": "warning", "COVEY_JOB_NICENESS": "0"}
"""Settings of all services. With a lower priority, jobs make little progress on a busy machine."""
QUICK = {"algorithm": "mp_boost", "rounds": 3}
"""A learner that trains in a moment."""
LONG = {"algorithm": "adaboost_lc", "rounds": 100_000, "smoothing": 0.01}
"""A learner that trains until it is cancelled."""
BODY = {"instances": [{"text": TEXT}]}


@dataclass(frozen=True)
class Result:
    """One statement that must hold.

    Attributes:
        what: what was measured.
        measured: the value, with its unit.
        bound: the bound, with its unit.
        held: whether the value is within the bound.
        timed: whether the value depends on other work on the machine. ``make test-faults`` ignores such
            results.
    """

    what: str
    measured: str
    bound: str
    held: bool
    timed: bool = False


def at_most(what: str, value: float, limit: float, unit: str) -> Result:
    """Require a number to be at most a limit."""
    return Result(what, f"{value:,.2f} {unit}", f"<= {limit:,g} {unit}", value <= limit)


def within(what: str, seconds: float, limit: float) -> Result:
    """Require a wait to end within a limit, in seconds, on a machine that does nothing else."""
    return Result(what, f"{seconds:,.2f} s", f"<= {limit:,g} s", seconds <= limit, timed=True)


def expect(what: str, value: object, *allowed: object) -> Result:
    """Require a value to be one of the allowed ones."""
    return Result(what, str(value)[:200], " or ".join(map(str, allowed))[:200], value in allowed)


def holds(what: str, condition: bool, measured: object = None) -> Result:
    """Require a condition."""
    return Result(what, str(condition if measured is None else measured)[:200], "true", condition)


@dataclass
class Cost:
    """What happened to a process while a block ran.

    Attributes:
        seconds: duration.
        cpu_seconds: CPU time of the process.
        grown_bytes: largest growth of its memory.
        longest_wait: longest duration of a health check meanwhile, in seconds.
    """

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    grown_bytes: int = 0
    longest_wait: float = 0.0

    @property
    def grown_mib(self) -> float:
        """The growth in MiB."""
        return self.grown_bytes / MIB


class Service:
    """A running service and its API process.

    Args:
        stack: the service.
        key: secret of the API key that requests send; None: no key.
    """

    def __init__(self, stack: Stack, key: str | None = None) -> None:
        self.stack = stack
        if key is not None:
            stack.http.headers["Authorization"] = f"Bearer {key}"

    @property
    def api(self) -> int:
        """Process id of the API."""
        if isinstance(self.stack, Production):
            assert self.stack.api is not None
            return self.stack.api.pid
        (pid,) = self.stack.api_pids()
        return pid

    @property
    def dataset(self) -> str:
        """Id of the data set that ``prepare`` created."""
        for dataset in self.stack.all("/v1/datasets"):
            if dataset["name"] == MODEL:
                return str(dataset["id"])
        raise LookupError("the service was not prepared")

    def prepare(self, n: int = 40) -> Service:
        """Create a data set, a model and a router."""
        dataset = self.stack.dataset(departments(n), name=MODEL)
        self.train(dataset["id"], MODEL)
        self.stack.call("PUT", f"/v1/routers/{ROUTER}", 200, json={"model": MODEL, "fallback": FALLBACK})
        return self

    def train(self, dataset_id: str, model: str, **request: Any) -> dict[str, Any]:
        """Train a version and return the job."""
        job = self.stack.finished(
            self.stack.train(dataset_id, **{"model": model, "learner": QUICK, **request})["id"]
        )
        assert job["state"] == "succeeded", job
        return job

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request."""
        return self.stack.http.request(method, path, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        """Send a GET request."""
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        """Send a POST request."""
        return self.request("POST", path, **options)

    def client(self, seconds: float = LIMIT_SECONDS) -> httpx.Client:
        """Return a client with connections of its own."""
        return httpx.Client(
            base_url=self.stack.url, headers=self.stack.http.headers, timeout=seconds, trust_env=False
        )

    def responds(self) -> bool:
        """Whether the API responds."""
        with suppress(httpx.HTTPError):
            return self.get("/health/live").status_code == 200
        return False

    @property
    def production(self) -> Production:
        """The service, if its processes were started one by one."""
        assert isinstance(self.stack, Production)
        return self.stack

    @contextmanager
    def watched(self) -> Iterator[Cost]:
        """Measure the API process while the block runs. Another client sends health checks."""
        cost, pid = Cost(), self.api
        stopped = threading.Event()

        def check() -> None:
            with self.client() as client:
                while not stopped.is_set():
                    began = time.monotonic()
                    with suppress(httpx.HTTPError):
                        client.get("/health/live")
                    cost.longest_wait = max(cost.longest_wait, time.monotonic() - began)
                    stopped.wait(0.02)

        checking = threading.Thread(target=check)
        reset_peak(pid)
        before, cpu, began = memory(pid, "VmRSS"), cpu_seconds(pid), time.monotonic()
        checking.start()
        try:
            yield cost
        finally:
            cost.seconds = time.monotonic() - began
            stopped.set()
            checking.join()
            cost.cpu_seconds = cpu_seconds(pid) - cpu
            cost.grown_bytes = max(0, memory(pid, "VmHWM") - before)

    def send_raw(self, content: bytes, *, shut: bool = False, timeout: float = LIMIT_SECONDS) -> bytes:
        """Send bytes on a connection of its own, and return what the service sends until it closes it.

        Args:
            content: the bytes.
            shut: whether to close the sending direction afterwards.
            timeout: seconds after which the connection counts as open; raises TimeoutError.
        """
        with self.connect() as connection:
            connection.settimeout(timeout)
            connection.sendall(content)
            if shut:
                connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def connect(self) -> socket.socket:
        """Open a connection."""
        address = urlsplit(self.stack.url)
        assert address.hostname is not None
        assert address.port is not None
        return socket.create_connection((address.hostname, address.port), timeout=LIMIT_SECONDS)


def memory(pid: int, which: str) -> int:
    """Return an entry of the status of a process, such as ``VmRSS``, in bytes."""
    found = re.search(rf"{which}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def reset_peak(pid: int) -> None:
    """Make the peak memory of a process its current memory."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def at_the_same_time(*functions: Callable[[], Any]) -> list[Any]:
    """Call functions in threads that start together. Returns their values, or the exceptions they raised."""
    barrier = threading.Barrier(len(functions))
    values: list[Any] = [None] * len(functions)

    def call(n: int) -> None:
        barrier.wait()
        try:
            values[n] = functions[n]()
        except Exception as error:  # noqa: BLE001 - the attack judges it
            values[n] = error

    threads = [threading.Thread(target=call, args=(n,)) for n in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return values


@dataclass
class Targets:
    """Services to attack. They start when an attack first asks for them.

    Args:
        folder: for the data of the services.
        running: a service with the default settings and without keys; None: start one if necessary.
    """

    folder: Path
    running: Stack | None = None
    _opened: ExitStack = field(default_factory=ExitStack)
    _shared: Service | None = None
    _n: int = 0

    @property
    def shared(self) -> Service:
        """A service with the default settings, without keys, with a data set, a model and a router."""
        if self._shared is None:
            stack = self.running
            if stack is None:
                stack = Stack(self.folder / "shared", SETTINGS).start()
                self._opened.callback(stack.stop)
            self._shared = Service(stack).prepare()
        return self._shared

    @contextmanager
    def new(self, settings: Mapping[str, str] | None = None, data: Path | None = None) -> Iterator[Service]:
        """Run another ``covey serve`` while the block lasts, on a data folder or on a new one."""
        folder = data or self.new_folder() / "data"
        stack = Stack(folder, SETTINGS | dict(settings or {})).start()
        try:
            yield Service(stack)
        finally:
            stack.stop()

    @contextmanager
    def with_dependencies(
        self, settings: Mapping[str, str] | None = None, workers: int = 1
    ) -> Iterator[tuple[Service, Dependencies]]:
        """Run an API and workers with PostgreSQL, a broker and a bucket behind proxies."""
        folder = self.new_folder()
        with dependencies(folder) as servers:
            stack = Production(folder, SETTINGS | servers.settings | dict(settings or {}), workers).start()
            try:
                yield Service(stack), servers
            finally:
                servers.heal()
                stack.stop()

    @contextmanager
    def with_postgres(self, settings: Mapping[str, str] | None = None) -> Iterator[tuple[Service, str]]:
        """Run a ``covey serve`` with PostgreSQL while the block lasts; yields it and the database's URL."""
        with postgres.server() as server:
            url = server.create()
            with self.new({"COVEY_DATABASE_URL": url, **(settings or {})}) as service:
                yield service, url

    def new_folder(self) -> Path:
        """Return a new empty folder."""
        self._n += 1
        folder = self.folder / str(self._n)
        folder.mkdir()
        return folder

    def close(self) -> None:
        """Stop the shared service."""
        self._opened.close()


@dataclass(frozen=True)
class Attack:
    """An attack.

    Attributes:
        name: what is attacked, in a few words.
        run: yields the results.
        short: whether ``make test-faults`` runs it.
    """

    name: str
    run: Callable[[Targets], Iterator[Result]]
    short: bool

    @property
    def area(self) -> str:
        """Name of the file that contains it."""
        return self.run.__module__.rpartition(".")[2]


ATTACKS: dict[str, Attack] = {}


def attack(
    name: str, *, short: bool = False
) -> Callable[[Callable[[Targets], Iterator[Result]]], Callable[[Targets], Iterator[Result]]]:
    """Register a function as an attack."""

    def register(run: Callable[[Targets], Iterator[Result]]) -> Callable[[Targets], Iterator[Result]]:
        if name in ATTACKS:
            raise ValueError(f"two attacks have the name {name!r}")
        ATTACKS[name] = Attack(name, run, short)
        return run

    return register


def attempt(one: Attack, targets: Targets) -> Iterator[Result]:
    """Yield the results of an attack; an exception is a result that does not hold."""
    try:
        yield from one.run(targets)
    except postgres.UnavailableError as error:
        yield Result("PostgreSQL", str(error), "available", False)
    except Exception as error:  # noqa: BLE001 - every exception is a regression
        yield Result("exception", f"{type(error).__name__}: {error}"[:500], "none", False)


def job_state(service: Service, kind: str, job_id: str) -> str:
    """Return the state of a job."""
    return str(service.stack.call("GET", f"/v1/{kind}/{job_id}", 200)["state"])


def until(condition: Callable[[], bool], what: str, seconds: float = LIMIT_SECONDS) -> float:
    """Wait until a condition holds, and return how long it took; the limit if it did not."""
    began = time.monotonic()
    with suppress(TimeoutError):
        wait_for(lambda: condition() or None, what=what, seconds=seconds)
        return time.monotonic() - began
    return seconds


def lines(examples: list[dict[str, Any]]) -> bytes:
    """Return examples as JSON lines."""
    return "".join(json.dumps(example) + "\n" for example in examples).encode()
