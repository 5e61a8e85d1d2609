"""Fault injection: processes die, disks fill, and servers are slow or away, while clients use the service.

``run`` starts the clients and injects faults at random. Then it checks from outside that everything that was
accepted is accounted for: it compares the API's responses and the checksums of files, and repeats every
prediction with the version that the response named.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import dependencies
import httpx
import psycopg
import redis
from dependencies import Dependencies
from stack import Stack, departments
from waiting import LIMIT_SECONDS, wait_for

from app.jobs.broker import socket_path
from models import artifact
from models.pipeline import Pipeline

QUICK = {
    "COVEY_LEASE_SECONDS": "3",
    "COVEY_CHECKPOINT_SECONDS": "0.3",
    "COVEY_COLLECT_SECONDS": "2",
    # With a lower priority, jobs make little progress on a busy machine.
    "COVEY_JOB_NICENESS": "0",
    "COVEY_LOG_LEVEL": "warning",
}
"""Settings with short intervals, so that many leases, checkpoints and cleanups fall into a short run."""

TEXTS = [
    "the invoice is wrong and the card was charged twice",
    "where is my parcel, the courier is late",
    "the login screen shows an error after the update",
    "a quote for a bulk order with a discount",
]
N_MODELS = 4
IN_FLIGHT = 3


@dataclass
class Account:
    """Counts of what happened.

    Attributes:
        faults: number of faults by kind.
        accepted: jobs that the API accepted with 202.
        succeeded: jobs that created a version.
        failed: number of failed jobs by error code.
        lost: jobs that did not end, that the API does not know, or that it did not accept but ran.
        done_twice: jobs that created more than one version.
        wrong_checksums: versions whose file has another checksum than the version states.
        broken_curves: succeeded jobs whose curve has missing or repeated points.
        predictions: responses to prediction requests.
        wrong_predictions: responses that differ from the prediction of the version that they name.
        retries: requests that were sent again after an error or a 503 response.
        restarts: number of further attempts of all jobs.
        resumed: number of times that a job continued from a checkpoint.
    """

    faults: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    succeeded: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    done_twice: int = 0
    wrong_checksums: int = 0
    broken_curves: int = 0
    predictions: int = 0
    wrong_predictions: int = 0
    retries: int = 0
    restarts: int = 0
    resumed: int = 0

    def __add__(self, other: Account) -> Account:
        """Return the sums of all counts."""
        return Account(
            **{name: value + getattr(other, name) for name, value in vars(self).items()},
        )

    @property
    def is_right(self) -> bool:
        """Whether nothing was lost, done twice or wrong."""
        wrong = (
            self.lost,
            self.done_twice,
            self.wrong_checksums,
            self.broken_curves,
            self.wrong_predictions,
            self.accepted - self.succeeded - sum(self.failed.values()),
            len(set(self.failed) - {"worker_lost"}),
        )
        return not any(wrong) and self.succeeded > 0 and self.predictions > 0

    def lines(self) -> list[str]:
        """Return the lines to print."""
        return [
            f"faults                                {sum(self.faults.values()):>7}  "
            + ", ".join(f"{kind} {n}" for kind, n in sorted(self.faults.items())),
            f"jobs accepted                         {self.accepted:>7}",
            f"  succeeded                           {self.succeeded:>7}",
            f"  failed with a reason                {sum(self.failed.values()):>7}  "
            + ", ".join(f"{code} {n}" for code, n in sorted(self.failed.items())),
            f"  lost                                {self.lost:>7}",
            f"  done twice                          {self.done_twice:>7}",
            f"  started again                       {self.restarts:>7}  resumed {self.resumed}",
            f"versions with a wrong checksum        {self.wrong_checksums:>7}",
            f"curves with missing or repeated points{self.broken_curves:>7}",
            f"predictions                           {self.predictions:>7}",
            f"  that differ from the named version  {self.wrong_predictions:>7}",
            f"requests that were retried            {self.retries:>7}",
        ]


@dataclass(frozen=True)
class _Prediction:
    model: str
    version: int
    text: int
    labels: list[str]
    ranking: list[tuple[str, float]]


class Traffic:
    """Clients that train and predict, and repeat a request that fails.

    Args:
        stack: the service.
        dataset_id: data set to train on.
        seed: seed of the requests.
    """

    def __init__(self, stack: Stack, dataset_id: str, seed: int) -> None:
        self.accepted: list[str] = []
        self.predictions: list[_Prediction] = []
        self.retries = 0
        self._stack = stack
        self._dataset_id = dataset_id
        self._stopping = threading.Event()
        self._failures: list[BaseException] = []
        work = {"train": self._train, "predict 1": self._predict, "predict 2": self._predict}
        self._threads = [
            threading.Thread(target=self._run_client, args=(do, random.Random(f"{seed} {name}")))  # noqa: S311
            for name, do in work.items()
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        if self._failures:
            raise self._failures[0]

    def _run_client(self, do: Callable[[random.Random], None], rng: random.Random) -> None:
        try:
            do(rng)
        except BaseException as error:  # noqa: BLE001 - raised when the traffic ends
            self._failures.append(error)

    def _send(self, client: httpx.Client, method: str, path: str, **options: Any) -> httpx.Response:
        """Repeat a request until the response is not a server error."""
        while True:
            try:
                response = client.request(method, path, **options)
                if response.status_code < 500:
                    return response
                assert response.status_code == 503, f"{method} {path}: {response.text[:500]}"
            except httpx.HTTPError:
                pass
            self.retries += 1
            time.sleep(0.2)

    def _client(self) -> httpx.Client:
        return httpx.Client(base_url=self._stack.url, timeout=LIMIT_SECONDS, trust_env=False)

    def _train(self, rng: random.Random) -> None:
        with self._client() as client:
            pending: list[str] = []
            n = 0
            while not self._stopping.is_set():
                pending = [
                    job_id
                    for job_id in pending
                    if self._send(client, "GET", f"/v1/training-jobs/{job_id}").json()["state"]
                    in ("queued", "running")
                ]
                if len(pending) >= IN_FLIGHT:
                    time.sleep(0.1)
                    continue
                n += 1
                body = {
                    "model": f"m{rng.randrange(N_MODELS)}",
                    "dataset_id": self._dataset_id,
                    "learner": {
                        "algorithm": "adaboost_lc",
                        "rounds": rng.choice([20, 200, 1000, 3000]),
                        "smoothing": 0.01,
                    },
                    "decision": {"kind": "sign"},
                    "promote": "always",
                    "seed": n,
                }
                headers = {"Idempotency-Key": f"job {n}"}
                response = self._send(client, "POST", "/v1/training-jobs", json=body, headers=headers)
                assert response.status_code == 202, response.text
                self.accepted.append(response.json()["id"])
                pending.append(self.accepted[-1])

    def _predict(self, rng: random.Random) -> None:
        with self._client() as client:
            while not self._stopping.is_set():
                model, text = f"m{rng.randrange(N_MODELS)}", rng.randrange(len(TEXTS))
                request = {"instances": [{"text": TEXTS[text]}]}
                response = self._send(client, "POST", f"/v1/models/{model}/predict", json=request)
                if response.status_code == 404:  # not trained yet
                    time.sleep(0.1)
                    continue
                assert response.status_code == 200, response.text
                body = response.json()
                (prediction,) = body["predictions"]
                ranking = [(item["label"], item["score"]) for item in prediction["ranking"]]
                self.predictions.append(
                    _Prediction(body["model"], body["version"], text, prediction["labels"], ranking)
                )
                time.sleep(0.02)


class Faults:
    """Injects faults at random.

    Args:
        stack: the service.
        seed: seed of the choices and pauses.
        disk: mount point of its storage, which is filled, read-only or missing at times; None: never.
        servers: its database, broker and bucket, which are slow or unavailable at times, and the database
            gets faults of its processes as well; None: never.
        longest: longest duration of a fault of the servers, in seconds.
    """

    def __init__(
        self, stack: Stack, seed: int, disk: Path | None, servers: Dependencies | None, longest: float
    ) -> None:
        self.injected: Counter[str] = Counter()
        self._stack = stack
        self._disk = disk
        self._servers = servers
        self._longest = longest
        self._rng = random.Random(f"{seed} faults")  # noqa: S311
        self._combinations = dependencies.combinations(self._rng)
        targets: dict[str, Callable[[], list[int]]] = {
            "job": lambda: [pid for worker in stack.worker_pids() for pid in stack.job_pids(worker)],
            **{
                role: lambda role=role: [  # type: ignore[misc]
                    pid for worker in stack.worker_pids() for pid in stack.worker_parts(worker, role)
                ]
                for role in ("pool", "guard", "maintenance")
            },
            "worker": stack.worker_pids,
            "broker": lambda: stack.processes("valkey-server"),
            "api": stack.api_pids,
        }
        self._kinds: list[tuple[str, Callable[[], bool]]] = []
        for name, find in targets.items():
            self._kinds.append((f"{name} killed", self._kill_one(find)))
            self._kinds.append((f"{name} stopped", self._stopping(find)))
        self._kinds.append(("broker emptied", self._empty_broker))
        # Killing a job is the most frequent fault.
        self._kinds += [("job killed", self._kill_one(targets["job"]))] * 2
        if disk is not None:
            self._kinds += [
                ("disk filled", self._fill_disk),
                ("disk read-only", self._make_disk_read_only),
                ("disk missing", self._unmount_disk),
            ]
        if servers is not None:
            self._kinds += [
                ("database killed", self._kill_database),
                ("database stopped", self._stop_database),
                ("database cut off", self._close_connections),
            ]

    def inject(self) -> None:
        """Inject one fault. A fault that finds no process does not count."""
        if self._servers is not None and self._rng.random() < 0.5:
            self._disturb_servers(self._servers)
        else:
            self._inject_into_process()
        time.sleep(self._rng.uniform(0.1, 1.5))

    def _inject_into_process(self) -> None:
        kind, inject = self._rng.choice(self._kinds)
        if inject():
            self.injected[kind] += 1

    def _disturb_servers(self, servers: Dependencies) -> None:
        """Make some servers slow or unavailable for a while; sometimes a process is killed meanwhile."""
        faults = next(self._combinations)
        dependencies.apply(servers, faults, self._rng)
        for name, fault in faults.items():
            if fault != "healthy":
                self.injected[f"{name} {fault}"] += 1
        time.sleep(self._rng.uniform(0.5, self._longest))
        # Without its database, no process can be found by it; all other faults can coincide.
        if faults["database"] == "healthy" and self._rng.random() < 0.3:
            self._inject_into_process()
        servers.heal()

    def _empty_broker(self) -> bool:
        """Delete all messages of the broker, if it can be reached."""
        url = self._stack.settings.get("COVEY_BROKER_URL")
        where = url or f"unix://{socket_path(self._stack.data)}"
        try:
            with redis.Redis.from_url(where, socket_timeout=2) as client:
                client.flushall()
        except redis.RedisError:
            return False
        return True

    def _kill_one(self, find: Callable[[], list[int]]) -> Callable[[], bool]:
        def inject() -> bool:
            victims = find()
            return bool(victims) and _signal(self._rng.choice(victims), signal.SIGKILL)

        return inject

    def _stopping(self, find: Callable[[], list[int]]) -> Callable[[], bool]:
        def inject() -> bool:
            victims = find()
            if not victims:
                return False
            victim = self._rng.choice(victims)
            if not _signal(victim, signal.SIGSTOP):
                return False
            time.sleep(self._rng.uniform(0.2, 5.0))
            _signal(victim, signal.SIGCONT)
            return True

        return inject

    def _fill_disk(self) -> bool:
        assert self._disk is not None
        filler = self._disk / "filler"
        try:
            with filler.open("wb", buffering=0) as file:
                while file.write(bytes(1 << 16)):
                    pass
        except OSError:
            time.sleep(self._rng.uniform(0.5, 3.0))
        finally:
            filler.unlink()
        return True

    def _make_disk_read_only(self) -> bool:
        assert self._disk is not None
        if not _mount("-o", "remount,ro", self._disk):  # files are open for writing
            return False
        time.sleep(self._rng.uniform(0.5, 3.0))
        assert _mount("-o", "remount,rw", self._disk)
        return True

    def _unmount_disk(self) -> bool:
        """Move the disk to another mount point, which leaves an empty folder."""
        assert self._disk is not None
        elsewhere = self._disk.with_name("elsewhere")
        elsewhere.mkdir(exist_ok=True)
        if not _mount("--move", self._disk, elsewhere):
            return False
        time.sleep(self._rng.uniform(0.5, 3.0))
        assert _mount("--move", elsewhere, self._disk)
        return True

    def _connect(self) -> psycopg.Connection:
        assert self._servers is not None
        return psycopg.connect(self._servers.database_url, connect_timeout=int(LIMIT_SECONDS))

    def _backends(self) -> list[int]:
        query = (
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        try:
            with self._connect() as connection:
                return [pid for (pid,) in connection.execute(query)]
        except psycopg.Error:
            return []

    def _kill_database(self) -> bool:
        # The server ends all sessions and recovers when one of its processes is killed.
        victims = self._backends()
        return bool(victims) and _signal(self._rng.choice(victims), signal.SIGKILL)

    def _stop_database(self) -> bool:
        stopped = [pid for pid in self._backends() if _signal(pid, signal.SIGSTOP)]
        time.sleep(self._rng.uniform(0.5, 5.0))
        for pid in stopped:
            _signal(pid, signal.SIGCONT)
        return bool(stopped)

    def _close_connections(self) -> bool:
        query = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        try:
            with self._connect() as connection:
                return bool(connection.execute(query).fetchall())
        except psycopg.Error:
            return False


def run(
    stack: Stack,
    *,
    seed: int,
    enough: Callable[[int], bool],
    disk: Path | None = None,
    servers: Dependencies | None = None,
    longest: float = 10.0,
) -> Account:
    """Run the clients and inject faults until there are enough, then check everything.

    Args:
        stack: a running service.
        seed: seed of all random choices.
        enough: receives the number of faults, and returns whether to end.
        disk: see ``Faults``.
        servers: see ``Faults``.
        longest: see ``Faults``.
    """
    dataset_id = stack.dataset(departments(400))["id"]
    faults = Faults(stack, seed, disk, servers, longest)
    with Traffic(stack, dataset_id, seed) as traffic:
        wait_for(lambda: True if traffic.predictions else None, what="the first prediction")
        while not enough(sum(faults.injected.values())):
            faults.inject()
    wait_for(lambda: True if stack.is_ready() else None, what="the service to be ready again")
    account = Account(faults=faults.injected, accepted=len(traffic.accepted), retries=traffic.retries)
    _count_jobs(stack, traffic.accepted, account)
    _check_versions(stack, traffic, account)
    return account


def _count_jobs(stack: Stack, accepted: list[str], account: Account) -> None:
    for job_id in accepted:
        try:
            job = stack.finished(job_id)
        except (TimeoutError, AssertionError):
            account.lost += 1
            continue
        account.restarts += job["attempt"] - 1
        path = f"/v1/training-jobs/{job_id}"
        events = stack.call("GET", f"{path}/events", 200, params={"limit": 500})["items"]
        account.resumed += sum(event["type"] == "resumed" for event in events)
        if job["state"] != "succeeded":
            account.failed[job["error"]["code"]] += 1
            continue
        account.succeeded += 1
        steps = [point["step"] for point in stack.all(f"{path}/curve")]
        account.broken_curves += steps != list(range(1, job["request"]["learner"]["rounds"] + 1))


def _check_versions(stack: Stack, traffic: Traffic, account: Account) -> None:
    versions_by_job: Counter[str] = Counter()
    pipelines: dict[tuple[str, int], Pipeline] = {}
    for n in range(N_MODELS):
        for version in stack.all(f"/v1/models/m{n}/versions"):
            versions_by_job[version["training_job_id"]] += 1
            file = stack.data.parent / f"m{n}.{version['version']}.covey"
            path = f"/v1/models/m{n}/versions/{version['version']}/artifact"
            file.write_bytes(stack.http.get(path).raise_for_status().content)
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            account.wrong_checksums += digest != version["artifact"]["sha256"]
            pipelines[f"m{n}", version["version"]] = artifact.load(file)
            file.unlink()
    account.done_twice = sum(times > 1 for times in versions_by_job.values())
    account.lost += sum(job_id not in set(traffic.accepted) for job_id in versions_by_job)
    account.predictions = len(traffic.predictions)
    repeated: dict[tuple[str, int, int], tuple[list[str], list[tuple[str, float]]]] = {}
    for sent in traffic.predictions:
        key = (sent.model, sent.version, sent.text)
        if key not in repeated:
            (prediction,) = pipelines[sent.model, sent.version].predictions([TEXTS[sent.text]])
            repeated[key] = (prediction.labels, prediction.ranking)
        account.wrong_predictions += repeated[key] != (sent.labels, sent.ranking)


@contextmanager
def small_disk(path: Path, mib: int) -> Iterator[bool]:
    """Mount a small disk at a folder; yields whether the system allows it."""
    path.mkdir(parents=True, exist_ok=True)
    mounted = _mount("-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", path)
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(path)], check=True)


def _mount(*words: str | Path) -> bool:
    return subprocess.run(["mount", *map(str, words)], check=False, capture_output=True).returncode == 0


def _signal(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
