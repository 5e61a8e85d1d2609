"""A database that is full or damaged."""

from __future__ import annotations

import time
from collections.abc import Iterator

import commands
import fault_injection

from benchmarks.attack.harness import (
    BODY,
    PREDICT,
    Result,
    Targets,
    attack,
    expect,
    holds,
    until,
)


@attack("reading while the disk of the database is full")
def full_disk(targets: Targets) -> Iterator[Result]:
    """Use keys for the first time, and again after a minute, on a full disk: nothing can be noted."""
    data = targets.new_folder() / "data"
    with fault_injection.small_disk(data, mib=64) as mounted:
        if not mounted:
            yield holds("this system can mount a disk", False)
            return
        with targets.new(data=data) as service:
            service.prepare()
            keys: dict[str, dict[str, str]] = {}
            for scope in ("admin", "read", "predict"):
                headers = keys.get("admin", {})
                body = {"name": scope, "scopes": [scope]}
                key = service.stack.call("POST", "/v1/api-keys", 201, json=body, headers=headers)
                keys[scope] = {"Authorization": f"Bearer {key['secret']}"}
            filler = data / "filler"
            with filler.open("wb", buffering=0) as file:
                try:
                    while file.write(bytes(1 << 12)):
                        pass
                except OSError:
                    pass
            yield expect("status of a list", service.get("/v1/models", headers=keys["read"]).status_code, 200)
            yield expect(
                "status for the admin", service.get("/v1/api-keys", headers=keys["admin"]).status_code, 200
            )
            response = service.post(PREDICT, json=BODY, headers=keys["predict"])
            yield expect("status of a prediction", response.status_code, 200)
            created = service.post("/v1/datasets", json={"name": "x"}, headers=keys["admin"])
            yield expect("status of a write", created.status_code, 201, 503)
            filler.unlink()
            seconds = until(
                lambda: (
                    service.post("/v1/datasets", json={"name": "x"}, headers=keys["admin"]).status_code == 201
                ),
                "a write",
                60,
            )
            yield holds("writes work again", seconds < 60, seconds)


@attack("a damaged SQLite file")
def damaged_file(targets: Targets) -> Iterator[Result]:
    """Overwrite the file of a running service, and start a service on it."""
    with targets.new() as service:
        service.prepare()
        file = service.stack.data / "covey.db"
        content = bytearray(file.read_bytes())
        content[:] = b"\xff" * len(content)
        file.write_bytes(content)
        for suffix in ("-wal", "-shm"):
            log = file.with_name(file.name + suffix)
            if log.exists():
                log.write_bytes(b"\xff" * log.stat().st_size)
        time.sleep(2.0)
        yield expect("status of readiness", service.get("/health/ready").status_code, 503)
        yield expect("status of a list", service.get("/v1/models").status_code, 503)
        data = service.stack.data
    result = commands.covey("serve", "--data", str(data), "--port", "0", check=False)
    yield holds("the start fails", result.returncode != 0, result.returncode)
    yield holds("the start prints no traceback", "Traceback" not in result.stderr, result.stderr[-300:])
